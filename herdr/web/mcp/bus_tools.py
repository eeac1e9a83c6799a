"""The tools `register`, `publish` and `events`."""

from typing import Any

import msgspec

from herdr.bus.bus import Bus
from herdr.bus.cursor import format_cursor
from herdr.bus.page import EVENTS_MAX as PAGE_MAX
from herdr.bus.select import Selection
from herdr.clock import rfc3339
from herdr.errors import HerdrError
from herdr.event import Draft, Event, Receipt
from herdr.web.drafts import check_all, unreadable
from herdr.web.mcp import arguments, words
from herdr.web.mcp.agents import Agents, Who
from herdr.web.mcp.around import Said, Tool, Workspaces, without_nothing
from herdr.web.publish import check_wishes

LOOKED_BACK = 4096  # events of the log in which the newest are looked for; older ones need a cursor
DATA_SHOWN_MAX = 2048  # bytes of one event's payload; the rest is under /v1/events/{seq}
TEXT_DATA_MAX = 200  # characters of it in the text

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_draft = msgspec.json.Decoder(Draft).decode


class BusTools:
    """Who one is, what one tells, and what happened."""

    def __init__(self, bus: Bus, agents: Agents, workspaces: Workspaces, data_max: int) -> None:
        """`data_max`: bytes of an event's payload."""
        self._bus = bus
        self._agents = agents
        self._workspaces = workspaces
        self._data_max = data_max

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool("register", arguments.Register, words.REGISTER, None, False, self.register),
            Tool("publish", arguments.Publish, words.PUBLISH, "events:publish", False, self.publish),
            Tool("events", arguments.Events, words.EVENTS, "events:follow", True, self.events),
        ]

    async def register(self, who: Who, asked: arguments.Register) -> Said:
        """Give a handle."""
        workspace = asked.workspace
        if workspace is None and asked.folder is not None:
            workspace = self._workspaces.holding(asked.folder)
        agent = await self._agents.register(who.caller, asked.name, workspace, asked.session)
        known = self._workspaces.names()
        where = agent.workspace or (known[0] if len(known) == 1 else None)
        place = (
            f", workspace {where}"
            if where
            else f"; name the workspace in each call: {', '.join(known)}"
            if known
            else ""
        )
        text = f"You are {agent.name}{place}. Pass agent={agent.handle} in every call."
        data = {"agent": agent.handle, "name": agent.name, "workspace": where, "workspaces": known}
        return Said(text, without_nothing(data))

    async def publish(self, who: Who, asked: arguments.Publish) -> Said:
        """Publish one event."""
        fields = {
            "type": asked.type,
            "source": who.named(),
            "workspace": self._workspaces.of(asked.workspace, who),
            "session": asked.session or who.session,
            **{name: getattr(asked, name) for name in ("subject", "priority", "task", "tags", "based_on")},
        }
        try:
            draft = _draft(_encode({**fields, "data": asked.data}))
        except msgspec.DecodeError as error:
            raise unreadable(error) from None
        check_all([draft], self._data_max)
        check_wishes([draft], who.caller)
        (receipt,) = await self._bus.publisher.publish([draft], who.named())
        return _receipt(receipt)

    async def events(self, who: Who, asked: arguments.Events) -> Said:
        """Return the newest events that fit, or those after a cursor."""
        selection = Selection(
            type=_only(asked.type),
            subject=_only(asked.subject),
            source=_only(asked.source),
            session=_only(asked.session),
            workspace=() if asked.mine else (self._workspaces.of(asked.workspace, who),),
            target=who.named() if asked.mine else None,
        )
        found, cursor = await self._read(selection, asked.after, asked.limit)
        shown = [_shown(event) for event in found]
        lines = [_line(event) for event in shown] or ["Nothing."]
        return Said("\n".join([*lines, f"cursor: {cursor}"]), {"events": shown, "cursor": cursor})

    async def _read(self, selection: Selection, after: str | None, limit: int) -> tuple[list[Event], str]:
        head = self._bus.head
        start = after if after is not None else str(max(self._bus.log.first - 1, head - LOOKED_BACK, 0))
        follower = await self._bus.subscriptions.open(selection, start)
        found: list[Event] = []
        while min(follower.positions) < head and (after is None or len(found) < limit):
            _gap, page = await follower.read(PAGE_MAX if after is None else limit - len(found))
            found.extend(item.event for item in page.items)
            found = sorted(found, key=lambda event: event.seq)[-limit:]
        return found, format_cursor(self._bus.epoch, follower.positions)


def _only(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def _receipt(receipt: Receipt) -> Said:
    if receipt.reason == "overloaded":
        raise HerdrError("too many events wait for the log; publish it again in a second", "overloaded")
    if receipt.conflict is not None and receipt.status == "stale":
        newer = receipt.conflict
        raise HerdrError(
            f"{newer.subject} is newer: seq {newer.seq} by {newer.source}, {newer.time}. Look at it, and publish "
            f"again with based_on={newer.seq}",
            "stale",
        )
    data = without_nothing(msgspec.to_builtins(receipt))
    text = f"{receipt.status}" + (f", seq {receipt.seq}" if receipt.seq is not None else "")
    if receipt.conflict is not None:
        text += f"; it was based on an old version: {receipt.conflict.source} has changed it meanwhile"
    return Said(text, data)


def _shown(event: Event) -> dict[str, Any]:
    if event.corrupt:
        return {"seq": event.seq, "type": event.type}
    body = _decode(event.body)
    names = ("type", "source", "subject", "session", "task", "data")
    shown = {name: body.get(name) for name in names}
    if (size := len(_encode(shown["data"]))) > DATA_SHOWN_MAX:
        del shown["data"]
        shown["data_bytes"] = size
    told: dict[str, Any] = without_nothing({"seq": event.seq, "time": rfc3339(event.accepted_us), **shown})
    return told


def _line(event: dict[str, Any]) -> str:
    said = f"#{event['seq']} {event['type']}"
    said += f" {event['subject']}" if "subject" in event else ""
    said += f" by {event['source']}" if "source" in event else ""
    if "data_bytes" in event:
        return f"{said} ({event['data_bytes']} bytes of data)"
    data = _encode(event["data"]).decode() if "data" in event else ""
    return f"{said} {data[:TEXT_DATA_MAX]}{'…' if len(data) > TEXT_DATA_MAX else ''}".rstrip()
