"""`GET /v1/connect`: one WebSocket for everything a tool does, as many logical channels as it likes."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from herdr.bus.bus import Bus
from herdr.bus.cursor import format_cursor
from herdr.bus.follow import Follower, Gap
from herdr.errors import HerdrError, InvalidInput
from herdr.web.asgi import ABORT, Receive, Scope, Send, refuse_handshake
from herdr.web.auth import Access, Caller
from herdr.web.drafts import check_sizes
from herdr.web.frames import (
    JSON_PROTOCOL,
    MSGPACK_PROTOCOL,
    Ack,
    Attrs,
    BadFrame,
    Follow,
    Ping,
    Publish,
    Ref,
    Unfollow,
    from_msgpack,
    parse_frame,
    to_msgpack,
)
from herdr.web.problems import Refused, problem_of
from herdr.web.publish import check_wishes
from herdr.web.query import parse_fields
from herdr.web.sse import event_json, gap_data
from herdr.web.streams import Streams

PUBLISHES_MAX = 64  # frames of one connection that wait for their commit; then its socket is not read
FOLLOWS_MAX = 64  # channels of one connection: a tool follows a handful

_encode = msgspec.json.Encoder().encode


class Connect:
    """The WebSocket application of `/v1/connect`."""

    def __init__(self, bus: Bus, streams: Streams, access: Access, data_max: int) -> None:
        self._bus = bus
        self._streams = streams
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
        channel = Connection(self._bus, self._streams, caller, send, self._data_max, binary, scope.get(ABORT))
        self._streams.websocket += 1
        try:
            await channel.run(receive)
        finally:
            self._streams.websocket -= 1

    def _scope_needed(self, scope: Scope) -> str:
        """A token that may only follow, or only publish, may connect; each op is judged again."""
        for needed in ("events:publish", "events:follow"):
            with contextlib.suppress(Refused):
                self._access.admit(scope, needed)
                return needed
        return "events:follow"


async def _until_gone(work: Coroutine[Any, Any, None]) -> None:
    """Run work whose answer nobody may be there to hear (the server's ClientDisconnected is an OSError)."""
    with contextlib.suppress(OSError):
        await work


class Connection:
    """One WebSocket. Implements `herdr.web.streams.Stream`."""

    def __init__(
        self,
        bus: Bus,
        streams: Streams,
        caller: Caller,
        send: Send,
        data_max: int,
        binary: bool,
        abort: Callable[[], None] | None,
    ) -> None:
        self.written_at = streams.now()
        self.writing_since: float | None = None
        self._publisher = bus.publisher
        self._subscriptions = bus.subscriptions
        self._epoch = bus.epoch
        self._streams = streams
        self._caller = caller
        self._send = send
        self._data_max = data_max
        self._binary = binary
        self._abort = abort
        self._follows: dict[Ref, tuple[asyncio.Task[None], Follower]] = {}
        self._attrs: dict[str, str] = {}
        self._room = asyncio.Semaphore(PUBLISHES_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    def poke(self) -> None:
        """See `Stream.poke`."""
        if self._streams.stopping:
            self._spawn(self._say_goodbye())
        for _, follower in self._follows.values():
            follower.poke()

    def abort(self) -> None:
        """See `Stream.abort`."""
        if self._abort is not None:
            self._abort()

    async def run(self, receive: Receive) -> None:
        """Carry out frames until the client leaves."""
        try:
            while True:
                message = await receive()
                if message["type"] == "websocket.disconnect":
                    return
                await self._handle(message)
        finally:
            self._streams.leave(self)
            for task in (*self._tasks, *(task for task, _ in self._follows.values())):
                task.cancel()

    async def _handle(self, message: Any) -> None:
        text = message.get("text")
        data = text.encode() if text is not None else message["bytes"]
        await self._publisher.decoding_turn(len(data))
        try:
            frame = parse_frame(from_msgpack(data) if self._binary else data)
            if isinstance(frame, Publish):
                await self._room.acquire()
                self._spawn(self._publish(frame))
            else:
                await self._carry_out(frame)
        except BadFrame as bad:
            await self._answer_error(bad.error, bad.ref)

    async def _carry_out(self, frame: Ack | Attrs | Follow | Ping | Unfollow) -> None:
        try:
            if isinstance(frame, Follow):
                await self._follow(frame)
            elif isinstance(frame, Ack):
                self._spawn(self._ack(frame))
            elif isinstance(frame, Unfollow):
                self._unfollow(frame.ref)
            elif isinstance(frame, Attrs):
                self._attrs = frame.attrs
                for _, follower in self._follows.values():
                    follower.set_attributes({**dict(follower.selection.attrs), **frame.attrs})
            else:
                await self._answer({"op": "pong"} if frame.ref is None else {"op": "pong", "ref": frame.ref})
        except HerdrError as error:
            raise BadFrame(error, getattr(frame, "ref", None)) from None

    async def _publish(self, frame: Publish) -> None:
        try:
            self._need("events:publish")
            check_sizes(frame.events, self._data_max)
            check_wishes(frame.events, self._caller)
            receipts = await self._publisher.publish(frame.events, self._caller.name)
        except HerdrError as error:
            await self._answer_error(error, frame.ref)
        else:
            await self._write(
                b'{"op":"receipts","ref":%s,"results":%s}' % (_encode(frame.ref), _encode(receipts))
            )
        finally:
            self._room.release()

    async def _ack(self, frame: Ack) -> None:
        try:
            _, follower = self._found(frame.ref)
            target = follower.selection.target
            if target is None:
                raise InvalidInput("only a follow with `as` has a place to acknowledge", "bad_frame")
            await self._subscriptions.ack(target, frame.cursor)
        except HerdrError as error:
            await self._answer_error(error, frame.ref)
        else:
            await self._answer({"op": "ack", "ref": frame.ref, "cursor": frame.cursor})

    async def _follow(self, frame: Follow) -> None:
        self._need("events:follow")
        if frame.ref in self._follows:
            raise InvalidInput(f"the ref {frame.ref!r} follows already; unfollow it first", "bad_frame")
        if len(self._follows) >= FOLLOWS_MAX:
            raise InvalidInput(f"one connection has at most {FOLLOWS_MAX} follows", "too_many_follows")
        given = frame.fields.get("attrs")
        attrs = {**self._attrs, **given} if isinstance(given, dict) else self._attrs
        query = parse_fields({**frame.fields, "attrs": attrs} if attrs else frame.fields)
        if not self._follows and not self._streams.enter(self):
            await self._answer({"op": "busy", "ref": frame.ref, "retry_ms": self._streams.busy_retry_ms()})
            return
        try:
            follower = await self._subscriptions.open(query.selection, query.after)
        except HerdrError:
            self._leave_if_idle()
            raise
        task = asyncio.create_task(self._run_follow(frame.ref, follower))
        self._follows[frame.ref] = (task, follower)

    async def _run_follow(self, ref: Ref, follower: Follower) -> None:
        try:
            await self._deliver(ref, follower)
        except HerdrError as error:
            self._follows.pop(ref, None)
            self._leave_if_idle()
            await self._answer_error(error, ref)
        except OSError:
            pass  # the client has gone; `run` hears of it too

    async def _deliver(self, ref: Ref, follower: Follower) -> None:
        ref_json = _encode(ref)
        await self._write_events(ref_json, b"", follower)
        while True:
            got = await follower.next()
            if isinstance(got, Gap):
                cursor = format_cursor(self._epoch, got.positions)
                await self._answer({"op": "gap", "ref": ref, "gap": gap_data(got), "cursor": cursor})
                continue
            if got.items:
                events = got.encodings.get("events")
                if events is None:
                    events = b",".join([event_json(item.event, self._epoch, item.form) for item in got.items])
                    got.encodings["events"] = events
                await self._write_events(ref_json, events, follower)
                self._subscriptions.wrote(got, follower.selection.target)
            elif self._streams.now() - self.written_at >= 1.0:
                await self._write_events(ref_json, b"", follower)

    async def _write_events(self, ref_json: bytes, events: bytes, follower: Follower) -> None:
        cursor = format_cursor(self._epoch, follower.positions).encode()
        await self._write(
            b'{"op":"events","ref":%s,"events":[%s],"cursor":"%s"}' % (ref_json, events, cursor)
        )

    def _unfollow(self, ref: Ref) -> None:
        task, _ = self._found(ref)
        task.cancel()
        del self._follows[ref]
        self._leave_if_idle()

    def _found(self, ref: Ref) -> tuple[asyncio.Task[None], Follower]:
        found = self._follows.get(ref)
        if found is None:
            raise InvalidInput(f"nothing follows under the ref {ref!r}", "unknown_ref")
        return found

    def _leave_if_idle(self) -> None:
        if not self._follows:
            self._streams.leave(self)

    def _need(self, scope: str) -> None:
        if not self._caller.may(scope):
            raise Refused("missing_scope", f"the token {self._caller.name!r} lacks the scope {scope!r}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_until_gone(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _say_goodbye(self) -> None:
        await self._answer({"op": "bye", "retry_ms": self._streams.retry_ms()})
        await self._send({"type": "websocket.close", "code": 1012, "reason": "the gateway stops"})

    async def _answer_error(self, error: HerdrError, ref: Ref | None) -> None:
        problem = problem_of(error)
        said = {"op": "error", "ref": ref, "code": problem.code, "detail": problem.detail}
        await self._answer({**said, "errors": problem.errors} if problem.errors else said)

    async def _answer(self, frame: dict[str, Any]) -> None:
        await self._write(_encode(frame))

    async def _write(self, frame: bytes) -> None:
        self.writing_since = self._streams.now()
        if self._binary:
            await self._send({"type": "websocket.send", "bytes": to_msgpack(frame)})
        else:
            await self._send({"type": "websocket.send", "text": frame.decode()})
        self.writing_since = None
        self.written_at = self._streams.now()
