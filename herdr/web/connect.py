"""`GET /v1/connect`: one WebSocket for everything a tool does, as many logical channels as it likes."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from herdr.bus.beside import Beside
from herdr.bus.bus import Bus
from herdr.bus.publish import Publisher
from herdr.errors import HerdrError
from herdr.web.asgi import ABORT, NO_PONG, Receive, Scope, Send, refuse_handshake
from herdr.web.auth import Access, Caller
from herdr.web.channels import Channels
from herdr.web.frames import (
    JSON_PROTOCOL,
    MSGPACK_PROTOCOL,
    Ack,
    Attrs,
    BadFrame,
    Follow,
    LockFrame,
    Ping,
    Publish,
    Unfollow,
    from_msgpack,
    parse_frame,
)
from herdr.web.lock_channels import Bindings, LockChannels
from herdr.web.lock_desk import Desk
from herdr.web.problems import Refused
from herdr.web.publish import check_wishes
from herdr.web.socket import Socket
from herdr.web.streams import Streams
from herdr.web.surface import LOCKS

PUBLISHES_MAX = 64  # frames of one connection that wait for their commit; then its socket is not read
RECEIPTS_S = 1.0  # that a goodbye waits for them: a commit takes milliseconds, a failing log for ever

_encode = msgspec.json.Encoder().encode


class Connect:
    """The WebSocket application of `/v1/connect`."""

    def __init__(
        self,
        bus: Bus,
        streams: Streams,
        access: Access,
        data_max: int,
        desk: Desk,
        beside: Beside | None = None,
    ) -> None:
        self._bus = bus
        self._beside = beside or Beside()
        self._streams = streams
        self._desk = desk
        self._bindings: Bindings = {}
        self._access = access
        self._data_max = data_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection from handshake to close."""
        await receive()  # websocket.connect
        try:
            caller = self._access.admit(scope, self._scope_needed(scope))
        except Refused as error:
            await refuse_handshake(send, error)
            return
        offered = scope.get("subprotocols") or []
        chosen = next((p for p in offered if p in (JSON_PROTOCOL, MSGPACK_PROTOCOL)), None)
        await send({"type": "websocket.accept", "subprotocol": chosen})
        binary = chosen == MSGPACK_PROTOCOL
        socket = Socket(send, self._streams.now, binary, scope.get(ABORT))
        channels = Channels(self._bus.subscriptions, self._streams, socket, self._bus.epoch, self._beside)
        locks = LockChannels(self._desk, socket, caller, self._bindings)
        connection = Connection(
            self._bus.publisher,
            channels,
            locks,
            socket,
            caller,
            self._data_max,
            binary,
            self._streams.retry_ms,
        )
        try:
            with self._streams.connected(connection):
                await connection.run(receive)
        finally:
            await locks.end(keeps_bound=connection.leaving or connection.silent or socket.cut)

    def _scope_needed(self, scope: Scope) -> str:
        """A token that may do one thing only may connect; each op is judged again."""
        for needed in ("events:publish", "events:follow", LOCKS):
            with contextlib.suppress(Refused):
                self._access.admit(scope, needed)
                return needed
        return "events:follow"


class Connection:
    """The receiving side of one WebSocket: carries out its frames in order.

    Implements `herdr.web.streams.Talker`.
    """

    def __init__(
        self,
        publisher: Publisher,
        channels: Channels,
        locks: LockChannels,
        socket: Socket,
        caller: Caller,
        data_max: int,
        binary: bool,
        retry_ms: Callable[[], int],
    ) -> None:
        self._publisher = publisher
        self._channels = channels
        self._locks = locks
        self._socket = socket
        self._caller = caller
        self._data_max = data_max
        self._binary = binary
        self._retry_ms = retry_ms
        self.leaving = False
        """Whether the gateway has begun to end the connection."""
        self.silent = False
        """Whether it ended because the client did not answer: it may be halted, and go on where it was."""
        self._room = asyncio.Semaphore(PUBLISHES_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, receive: Receive) -> None:
        """Carry out frames until the client leaves."""
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                if not self.leaving:
                    with contextlib.suppress(OSError):  # it has left while an answer was on its way
                        await self._handle(message)
            self.silent = message.get("code") == NO_PONG
        finally:
            self._channels.close_all()
            for task in self._tasks:
                task.cancel()

    async def say_goodbye(self) -> None:
        """See `Talker.say_goodbye`. What comes from now on is not carried out, so the client repeats it."""
        self.leaving = True
        self._locks.stop_waiting()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RECEIPTS_S):
                while tasks := self._tasks | self._locks.tasks:
                    await asyncio.wait(tasks)
        with contextlib.suppress(OSError):  # the client was faster
            await self._socket.say_goodbye(self._retry_ms())

    async def _handle(self, message: Any) -> None:
        text = message.get("text")
        data = text.encode() if text is not None else message["bytes"]
        await self._publisher.decoding_turn(data)
        ref = None
        try:
            frame = parse_frame(from_msgpack(data) if self._binary else data, self._data_max)
            ref = getattr(frame, "ref", None)
            if isinstance(frame, Publish | Ack):
                await self._room.acquire()
                self._spawn(self._publish(frame) if isinstance(frame, Publish) else self._ack(frame))
            elif isinstance(frame, LockFrame):
                self._locks.begin(frame)
            else:
                await self._carry_out(frame)
        except BadFrame as bad:
            await self._socket.answer_error(bad.error, bad.ref)
        except HerdrError as error:
            await self._socket.answer_error(error, ref)

    async def _carry_out(self, frame: Attrs | Follow | Ping | Unfollow) -> None:
        if isinstance(frame, Follow):
            self._need("events:follow")
            await self._channels.open(frame)
        elif isinstance(frame, Unfollow):
            self._channels.close(frame.ref)
        elif isinstance(frame, Attrs):
            self._channels.set_attributes(frame.attrs)
        else:
            await self._socket.answer(
                {"op": "pong"} if frame.ref is None else {"op": "pong", "ref": frame.ref}
            )

    async def _publish(self, frame: Publish) -> None:
        try:
            self._need("events:publish")
            check_wishes(frame.events, self._caller)
            if frame.tokens:
                await self._locks.carried(frame.tokens)
            receipts = await self._publisher.publish(frame.events, self._caller.name)
        except HerdrError as error:
            await self._socket.answer_error(error, frame.ref)
        else:
            answer = b'{"op":"receipts","ref":%s,"results":%s}' % (_encode(frame.ref), _encode(receipts))
            await self._socket.write(answer)

    async def _ack(self, frame: Ack) -> None:
        try:
            await self._channels.ack(frame)
        except HerdrError as error:
            await self._socket.answer_error(error, frame.ref)

    def _need(self, scope: str) -> None:
        if not self._caller.may(scope):
            raise Refused("missing_scope", f"the token {self._caller.name!r} lacks the scope {scope!r}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that has its room already."""
        task = asyncio.create_task(_until_gone(work))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()


async def _until_gone(work: Coroutine[Any, Any, None]) -> None:
    """Run work whose answer nobody may be there to hear (the server's ClientDisconnected is an OSError)."""
    with contextlib.suppress(OSError):
        await work
