"""The follows of one WebSocket: each a channel of its own, with a ref that the client chose."""

import asyncio
import contextlib
import logging

import msgspec

from herdr.bus.beside import Beside
from herdr.bus.cursor import format_cursor
from herdr.bus.follow import Follower, Gap
from herdr.bus.page import Page
from herdr.bus.subscriptions import Subscriptions
from herdr.errors import HerdrError, InvalidInput
from herdr.event import Positions
from herdr.web.frames import Ack, Follow, Ref
from herdr.web.query import check_attributes, parse_fields
from herdr.web.socket import Socket
from herdr.web.sse import event_json, gap_data
from herdr.web.streams import KEEP_ALIVE_S, Streams

FOLLOWS_MAX = 64  # channels of one connection: a tool follows a handful

_log = logging.getLogger("herdr.web")
_encode = msgspec.json.Encoder().encode


class Channel:
    """One follow that is under way."""

    __slots__ = ("attrs", "cursor", "follower", "looked_at", "ref", "task")

    def __init__(self, ref: Ref, follower: Follower, attrs: dict[str, str], now: float) -> None:
        self.ref = ref
        self.follower = follower
        self.attrs = attrs
        """Those of the follow itself, which win over the connection's."""
        self.cursor = ""
        """The last one that the client was told."""
        self.looked_at = now
        """Monotonic seconds when it last wrote, or found after a silence that there is nothing to say."""
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """End it."""
        if self.task is not None:
            self.task.cancel()


class Channels:
    """Opens, feeds and closes them. Implements `herdr.web.streams.Stream`: together they count as one."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        streams: Streams,
        socket: Socket,
        epoch: str,
        beside: Beside | None = None,
    ) -> None:
        self._subscriptions = subscriptions
        self._streams = streams
        self._socket = socket
        self._epoch = epoch
        self._beside = beside or Beside()
        self._open: dict[Ref, Channel] = {}
        self._attrs: dict[str, str] = {}

    @property
    def written_at(self) -> float:
        """See `Stream.written_at`."""
        return min((c.looked_at for c in self._open.values()), default=self._streams.now())

    @property
    def writing_since(self) -> float | None:
        """See `Stream.writing_since`."""
        return self._socket.writing_since

    def poke(self) -> None:
        """See `Stream.poke`."""
        now = self._streams.now()
        for channel in self._open.values():
            if now - channel.looked_at >= KEEP_ALIVE_S:
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
        query = parse_fields(frame.fields)
        own = dict(query.selection.attrs)
        selection = msgspec.structs.replace(query.selection, attrs=_sorted(self._attrs | own))
        if not self._open and not self._streams.enter(self):
            await self._socket.answer(
                {"op": "busy", "ref": frame.ref, "retry_ms": self._streams.busy_retry_ms()}
            )
            return
        try:
            follower = await self._subscriptions.open(selection, query.after)
        except HerdrError:
            self._leave_if_idle()
            raise
        channel = self._open[frame.ref] = Channel(frame.ref, follower, own, self._streams.now())
        channel.task = asyncio.create_task(self._run(channel))

    def close(self, ref: Ref) -> None:
        """End one follow; raises InvalidInput when there is none of that ref."""
        self._found(ref).cancel()
        del self._open[ref]
        self._leave_if_idle()

    def close_all(self) -> None:
        """End all of them: the client has gone."""
        self._streams.leave(self)
        for channel in self._open.values():
            channel.cancel()

    async def ack(self, frame: Ack) -> None:
        """Acknowledge, and answer once that is committed; raises HerdrError."""
        target = self._found(frame.ref).follower.selection.target
        if target is None:
            raise InvalidInput("only a follow with `as` has a place to acknowledge", "bad_frame")
        await self._subscriptions.ack(target, frame.cursor)
        await self._socket.answer({"op": "ack", "ref": frame.ref, "cursor": frame.cursor})

    def set_attributes(self, attrs: dict[str, str]) -> None:
        """Replace the connection's attributes, for the follows of now and of later; raises InvalidInput."""
        check_attributes(attrs)
        self._attrs = attrs
        for channel in self._open.values():
            channel.follower.set_attributes(attrs | channel.attrs)

    async def _run(self, channel: Channel) -> None:
        with contextlib.suppress(OSError):  # the client has gone; the receiving side hears of it too
            try:
                await self._deliver(channel)
            except HerdrError as error:
                await self._end(channel, error)
            except OSError:
                raise
            except Exception:  # noqa: BLE001 - told to the client; the other channels go on
                _log.exception("a follow has failed")
                await self._end(channel, HerdrError("the gateway made a mistake; its log says which"))

    async def _end(self, channel: Channel, error: HerdrError) -> None:
        self._open.pop(channel.ref, None)
        self._leave_if_idle()
        await self._socket.answer_error(error, channel.ref)

    async def _deliver(self, channel: Channel) -> None:
        follower = channel.follower
        await self._write_events(channel, b"", channel.follower.positions)
        while True:
            got = await follower.next()
            if isinstance(got, Gap):
                await self._write_gap(channel, got)
            elif got.wants_context:
                await self._write_with_context(channel, got)
            elif got.items:
                await self._write_page(channel, got)
            elif format_cursor(self._epoch, follower.positions) != channel.cursor:
                await self._write_events(channel, b"", channel.follower.positions)
            else:
                channel.looked_at = self._streams.now()

    async def _write_page(self, channel: Channel, page: Page) -> None:
        await self._write_events(channel, _encoded(page, self._epoch), page.end)
        self._subscriptions.wrote(page, channel.follower.selection.target)

    async def _write_with_context(self, channel: Channel, page: Page) -> None:
        with self._beside.looking(page) as looking:
            for piece in page.pieces():
                await self._write_page(channel, await looking.beside(piece, channel.follower))

    async def _write_events(self, channel: Channel, events: bytes, place: Positions) -> None:
        cursor = format_cursor(self._epoch, place)
        frame = b'{"op":"events","ref":%s,"events":[%s],"cursor":"%s"}'
        await self._socket.write(frame % (_encode(channel.ref), events, cursor.encode()))
        self._wrote(channel, cursor)

    async def _write_gap(self, channel: Channel, gap: Gap) -> None:
        cursor = format_cursor(self._epoch, gap.positions)
        await self._socket.answer({"op": "gap", "ref": channel.ref, "gap": gap_data(gap), "cursor": cursor})
        self._wrote(channel, cursor)

    def _wrote(self, channel: Channel, cursor: str) -> None:
        channel.cursor = cursor
        channel.looked_at = self._streams.now()

    def _found(self, ref: Ref) -> Channel:
        found = self._open.get(ref)
        if found is None:
            raise InvalidInput(f"nothing follows under the ref {ref!r}", "unknown_ref")
        return found

    def _leave_if_idle(self) -> None:
        if not self._open:
            self._streams.leave(self)


def _sorted(attrs: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(attrs.items()))


def _encoded(page: Page, epoch: str) -> bytes:
    """Return a page's events, encoded once for all that share it."""
    events = page.encodings.get("events")
    if events is None:
        shown = [event_json(i.event, epoch, i.form, i.context) for i in page.items]
        events = page.encodings["events"] = b",".join(shown)
    return events
