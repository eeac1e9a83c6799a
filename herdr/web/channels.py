"""The follows of one WebSocket: each a channel of its own, with a ref that the client chose."""

import asyncio
import contextlib
from typing import NamedTuple

import msgspec

from herdr.bus.cursor import format_cursor
from herdr.bus.follow import Follower, Gap
from herdr.bus.page import Page
from herdr.bus.subscriptions import Subscriptions
from herdr.errors import HerdrError, InvalidInput
from herdr.web.frames import Ack, Follow, Ref
from herdr.web.query import parse_fields
from herdr.web.socket import Socket
from herdr.web.sse import event_json, gap_data
from herdr.web.streams import Streams

FOLLOWS_MAX = 64  # channels of one connection: a tool follows a handful

_encode = msgspec.json.Encoder().encode


class Channel(NamedTuple):
    """One follow that is under way."""

    follower: Follower
    task: "asyncio.Task[None]"


class Channels:
    """Opens, feeds and closes them. Implements `herdr.web.streams.Stream`: together they count as one."""

    def __init__(self, subscriptions: Subscriptions, streams: Streams, socket: Socket, epoch: str) -> None:
        self._subscriptions = subscriptions
        self._streams = streams
        self._socket = socket
        self._epoch = epoch
        self._open: dict[Ref, Channel] = {}
        self._attrs: dict[str, str] = {}
        self._goodbye: asyncio.Task[None] | None = None

    @property
    def written_at(self) -> float:
        """See `Stream.written_at`."""
        return self._socket.written_at

    @property
    def writing_since(self) -> float | None:
        """See `Stream.writing_since`."""
        return self._socket.writing_since

    def poke(self) -> None:
        """See `Stream.poke`."""
        if self._streams.stopping and self._goodbye is None:
            self._goodbye = asyncio.create_task(self._say_goodbye())
        for channel in self._open.values():
            channel.follower.poke()

    def abort(self) -> None:
        """See `Stream.abort`."""
        self._socket.abort()

    async def open(self, frame: Follow) -> None:
        """Begin a follow, or answer `busy`; raises HerdrError."""
        if frame.ref in self._open:
            raise InvalidInput(f"the ref {frame.ref!r} follows already; unfollow it first", "bad_frame")
        if len(self._open) >= FOLLOWS_MAX:
            raise InvalidInput(f"one connection has at most {FOLLOWS_MAX} follows", "too_many_follows")
        given = frame.fields.get("attrs")
        attrs = {**self._attrs, **given} if isinstance(given, dict) else self._attrs
        query = parse_fields({**frame.fields, "attrs": attrs} if attrs else frame.fields)
        if not self._open and not self._streams.enter(self):
            await self._socket.answer(
                {"op": "busy", "ref": frame.ref, "retry_ms": self._streams.busy_retry_ms()}
            )
            return
        try:
            follower = await self._subscriptions.open(query.selection, query.after)
        except HerdrError:
            self._leave_if_idle()
            raise
        self._open[frame.ref] = Channel(follower, asyncio.create_task(self._run(frame.ref, follower)))

    def close(self, ref: Ref) -> None:
        """End one follow; raises InvalidInput when there is none of that ref."""
        self._found(ref).task.cancel()
        del self._open[ref]
        self._leave_if_idle()

    def close_all(self) -> None:
        """End all of them: the client has gone."""
        self._streams.leave(self)
        for channel in self._open.values():
            channel.task.cancel()

    async def ack(self, frame: Ack) -> None:
        """Acknowledge, and answer once that is committed; raises HerdrError."""
        target = self._found(frame.ref).follower.selection.target
        if target is None:
            raise InvalidInput("only a follow with `as` has a place to acknowledge", "bad_frame")
        await self._subscriptions.ack(target, frame.cursor)
        await self._socket.answer({"op": "ack", "ref": frame.ref, "cursor": frame.cursor})

    def set_attributes(self, attrs: dict[str, str]) -> None:
        """Change the subscriber's attributes, for the follows of now and of later."""
        self._attrs = attrs
        for channel in self._open.values():
            channel.follower.set_attributes({**dict(channel.follower.selection.attrs), **attrs})

    async def _run(self, ref: Ref, follower: Follower) -> None:
        try:
            await self._deliver(ref, follower)
        except HerdrError as error:
            self._open.pop(ref, None)
            self._leave_if_idle()
            await self._socket.answer_error(error, ref)
        except OSError:
            pass  # the client has gone; the receiving side hears of it too

    async def _deliver(self, ref: Ref, follower: Follower) -> None:
        ref_json = _encode(ref)
        await self._write_events(ref_json, b"", follower)
        while True:
            got = await follower.next()
            if isinstance(got, Gap):
                cursor = format_cursor(self._epoch, got.positions)
                await self._socket.answer({"op": "gap", "ref": ref, "gap": gap_data(got), "cursor": cursor})
            elif got.items:
                await self._write_events(ref_json, self._encoded(got), follower)
                self._subscriptions.wrote(got, follower.selection.target)
            elif self._streams.now() - self.written_at >= 1.0:
                await self._write_events(ref_json, b"", follower)

    def _encoded(self, page: Page) -> bytes:
        events = page.encodings.get("events")
        if events is None:
            events = b",".join([event_json(item.event, self._epoch, item.form) for item in page.items])
            page.encodings["events"] = events
        return events

    async def _write_events(self, ref_json: bytes, events: bytes, follower: Follower) -> None:
        cursor = format_cursor(self._epoch, follower.positions).encode()
        await self._socket.write(
            b'{"op":"events","ref":%s,"events":[%s],"cursor":"%s"}' % (ref_json, events, cursor)
        )

    async def _say_goodbye(self) -> None:
        with contextlib.suppress(OSError):  # the client was faster
            await self._socket.say_goodbye(self._streams.retry_ms())

    def _found(self, ref: Ref) -> Channel:
        found = self._open.get(ref)
        if found is None:
            raise InvalidInput(f"nothing follows under the ref {ref!r}", "unknown_ref")
        return found

    def _leave_if_idle(self) -> None:
        if not self._open:
            self._streams.leave(self)
