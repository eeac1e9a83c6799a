"""A small gateway that keeps its word about the wire and breaks the connection on demand."""

import asyncio
import inspect
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import WSCloseCode, WSMsgType, web

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import the parts of the small gateway

from fake_locks import LockDesk

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"


class Asked(NamedTuple):
    """One plain HTTP request, its address as it was sent."""

    method: str
    address: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Follower:
    """One follow of one socket: reads the log in pages from its position."""

    def __init__(self, gateway: "FaultGateway", socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        self.gateway = gateway
        self.socket = socket
        self.frame = frame
        self.ref = frame["ref"]

    def start(self) -> int:
        after = self.frame.get("after")
        if after is None:
            default = len(self.gateway.log)
            return self.gateway.targets.get(self.frame.get("as"), default)
        return int(after.split(":")[-1])

    def matches(self, event: dict[str, Any]) -> bool:
        wanted = self.frame.get("type", "*")
        return any(fnmatchcase(event["type"], w) for w in ([wanted] if isinstance(wanted, str) else wanted))

    async def run(self) -> None:
        position = self.start()
        gateway = self.gateway
        after = self.frame.get("after", "")
        if ":" in after and not after.startswith(gateway.epoch):
            gap = {"reason": "epoch", "from": position, "to": 0}
            position = 0
            await self.send({"op": "gap", "ref": self.ref, "gap": gap, "cursor": gateway.cursor(0)})
        else:
            await self.send(
                {"op": "events", "ref": self.ref, "events": [], "cursor": gateway.cursor(position)}
            )
        while True:
            async with gateway.appended:
                await gateway.appended.wait_for(lambda at=position: len(gateway.log) > at)
            page = gateway.log[position : position + gateway.page]
            position += len(page)
            events = [event for event in page if self.matches(event)]
            frame = {"op": "events", "ref": self.ref, "events": events, "cursor": gateway.cursor(position)}
            if gateway.cut_frames and events:
                gateway.cut_frames -= 1
                await self.cut(frame)
                return
            await self.send(frame)
            gateway.events_sent += len(events)
            async with gateway.heard:
                gateway.heard.notify_all()

    async def send(self, frame: dict[str, Any]) -> None:
        await self.socket.send_str(json.dumps(frame))

    async def cut(self, frame: dict[str, Any]) -> None:
        """Write the first half of the frame and hang up."""
        payload = json.dumps(frame).encode()
        assert 125 < len(payload) < 65536
        whole = bytes([0x81, 126]) + len(payload).to_bytes(2, "big") + payload
        self.gateway.transport(self.socket).write(whole[: len(whole) // 2])
        self.gateway.transport(self.socket).close()


class FaultGateway:
    """Stores events once per (source, id); every fault is a counter or switch that a test sets."""

    def __init__(self) -> None:
        self.url = ""
        self.epoch = "0a0b0c0d"
        self.page = 3
        self.log: list[dict[str, Any]] = []
        self.seqs: dict[tuple[Any, str], int] = {}
        self.targets: dict[str, int] = {}
        self.frames: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.asked: list[Asked] = []
        self.expected: list[str] = []
        self.answer: Callable[[Asked], Any] = lambda asked: web.Response(status=404, text="nothing here")
        """What plain HTTP gets: a response, a value for JSON, or a coroutine of either."""
        self.refuse_body: web.Response | None = None  # the answer to who asks whether to send a large body
        self.events_sent = 0
        self.desk = LockDesk(self)
        self.told: set[asyncio.Task[None]] = set()
        self.appended = asyncio.Condition()
        self.heard = asyncio.Condition()
        # faults
        self.refuse_status: int | None = None
        self.subprotocols = ("herdr.v1.json",)
        self.lose_receipts = 0  # store the next publishes, then hang up instead of answering
        self.lose_publishes = 0  # hang up on the next publishes without storing them
        self.silent = False  # store and never answer
        self.cut_frames = 0  # hang up in the middle of the next frames of events
        self.busy = 0
        self.refusal: Any = None  # a function: publish frame -> error frame or None
        self.close_next: int | None = None  # a close code instead of the next publish's answer
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._loop = asyncio.get_running_loop()

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/v1/connect", self.connect)
        app.router.add_route("*", "/v1/{rest:.*}", self.plain, expect_handler=self.expect)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = site._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        for socket in self.sockets:
            self.hang_up(socket)
        if self._runner is not None:
            await self._runner.cleanup()

    def cursor(self, position: int) -> str:
        return f"{self.epoch}:{position}"

    def transport(self, socket: web.WebSocketResponse) -> asyncio.Transport:
        return socket._req.transport

    def hang_up(self, socket: web.WebSocketResponse | None = None) -> None:
        for one in [socket] if socket else self.sockets:
            if (transport := self.transport(one)) is not None:
                transport.abort()

    def tell(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        task = asyncio.create_task(socket.send_json(frame))
        self.told.add(task)
        task.add_done_callback(self.told.discard)

    def hang_up_soon(self) -> None:
        """Hang up, called from another thread."""
        self._loop.call_soon_threadsafe(self.hang_up)

    def of(self, op: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["op"] == op]

    async def wait(self, predicate: Any) -> None:
        async with self.heard:
            await asyncio.wait_for(self.heard.wait_for(predicate), 20)

    async def append(self, *events: dict[str, Any]) -> list[dict[str, Any]]:
        receipts = []
        for event in events:
            key = (event.get("source"), event["id"])
            if (seq := self.seqs.get(key)) is not None:
                receipts.append({"status": "duplicate", "id": event["id"], "seq": seq, "epoch": self.epoch})
                continue
            seq = self.seqs[key] = len(self.log) + 1
            self.log.append({"seq": seq, "epoch": self.epoch, "class": "tool", "priority": "P1", **event})
            receipts.append({"status": "accepted", "id": event["id"], "seq": seq, "epoch": self.epoch})
        async with self.appended:
            self.appended.notify_all()
        return receipts

    async def connect(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if self.refuse_status is not None:
            async with self.heard:
                self.heard.notify_all()
            return web.Response(status=self.refuse_status)
        socket = web.WebSocketResponse(protocols=self.subprotocols, max_msg_size=16 * 1024 * 1024)
        await socket.prepare(request)
        self.sockets.append(socket)
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self.handle(socket, json.loads(message.data), tasks)
        except ConnectionError:
            pass
        finally:
            self.sockets.remove(socket)
            self.desk.closed(socket)
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        return socket

    async def expect(self, request: web.Request) -> web.Response | None:
        self.expected.append(request.raw_path)
        if self.refuse_body is None and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self.refuse_body

    async def plain(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(request.method, request.raw_path, headers, await request.read())
        self.asked.append(asked)
        answer = self.answer(asked)
        answer = await answer if inspect.isawaitable(answer) else answer
        return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)

    async def handle(self, socket: web.WebSocketResponse, frame: dict[str, Any], tasks: Any) -> None:
        self.frames.append(frame)
        if frame["op"] == "publish":
            await self.publish(socket, frame)
        elif frame["op"] == "follow":
            if self.busy:
                self.busy -= 1
                await socket.send_json({"op": "busy", "ref": frame["ref"], "retry_ms": 20})
            else:
                tasks[frame["ref"]] = asyncio.create_task(Follower(self, socket, frame).run())
        elif frame["op"] == "unfollow":
            tasks.pop(frame["ref"]).cancel()  # a KeyError ends the connection: nobody may leave what is not
        elif frame["op"] == "ack":
            await self.ack(socket, frame, tasks)
        elif frame["op"] in ("lock", "unlock", "renew", "wait", "unwait"):
            await self.desk.handle(socket, frame)
        async with self.heard:
            self.heard.notify_all()

    async def publish(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        if self.lose_publishes:
            self.lose_publishes -= 1
            self.hang_up(socket)
            raise ConnectionError  # frames that have arrived already are lost too
        if self.close_next is not None:
            code, self.close_next = self.close_next, None
            await socket.close(code=WSCloseCode(code))
            return
        if self.refusal is not None and (error := self.refusal(frame)) is not None:
            await socket.send_json({"op": "error", "ref": frame["ref"], **error})
            return
        receipts = await self.append(*frame["events"])
        if self.lose_receipts:
            self.lose_receipts -= 1
            self.hang_up(socket)
            raise ConnectionError
        elif not self.silent:
            await socket.send_json({"op": "receipts", "ref": frame["ref"], "results": receipts})

    async def ack(self, socket: web.WebSocketResponse, frame: dict[str, Any], tasks: Any) -> None:
        if frame["ref"] not in tasks:
            detail = f"{frame['ref']} is no follow of this connection"
            await socket.send_json(
                {"op": "error", "ref": frame["ref"], "code": "unknown_ref", "detail": detail}
            )
            return
        target = next(f["as"] for f in reversed(self.of("follow")) if f["ref"] == frame["ref"])
        self.targets[target] = int(frame["cursor"].split(":")[-1])
        await socket.send_json({"op": "ack", "ref": frame["ref"], "cursor": frame["cursor"]})

    async def say_bye(self, retry_ms: int) -> None:
        for socket in self.sockets:
            await socket.send_json({"op": "bye", "retry_ms": retry_ms})

    async def close(self) -> None:
        for socket in list(self.sockets):
            await socket.close()


@pytest.fixture
async def faulty(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaultGateway]:
    gateway = FaultGateway()
    await gateway.start()
    monkeypatch.setenv("HERDR_GATEWAY_URL", gateway.url)
    monkeypatch.delenv("HERDR_GATEWAY_TOKEN", raising=False)
    monkeypatch.setattr("herdr_sdk.backoff.MAX_S", 0.02)  # a test loses more connections than a day
    yield gateway
    await gateway.stop()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Wait for something that nobody announces."""

    async def wait(predicate: Callable[[], bool]) -> None:
        while not predicate():  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    return wait


@pytest.fixture
def examples() -> Any:
    """Read one of the example files that the gateway's tests read too."""
    return lambda name: json.loads((EXAMPLES / name).read_text())
