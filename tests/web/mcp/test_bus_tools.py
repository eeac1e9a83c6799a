"""Events as models see them: few tokens, whatever is in them."""

import json
from typing import Any
from unittest.mock import MagicMock

from herdr.bus.page import Item, Page
from herdr.event import Event, corrupt_event
from herdr.hooks.words import bodies_of
from herdr.web.auth import ANYONE
from herdr.web.mcp.agents import Who
from herdr.web.mcp.arguments import Events
from herdr.web.mcp.around import Said
from herdr.web.mcp.bus_tools import BusTools


def stored(seq: int, data: Any, **fields: Any) -> Event:
    body = json.dumps({"type": "note.x", "source": "ci", "data": data, **fields}).encode()
    return Event(1, "id", "note.x", "ci", "default", "tool", body, seq=seq)


async def shown(*events: Event) -> Said:
    async def read(limit: int) -> tuple[None, Page]:
        follower.positions = (9, 9, 9)
        return None, Page([Item(event, (9, 9, 9), None) for event in events], (9, 9, 9), True)

    async def open_(selection: Any, after: str) -> Any:
        return follower

    follower = MagicMock(positions=(0, 0, 0), read=read)
    bus = MagicMock(head=9, epoch="00000000")
    bus.log.first, bus.subscriptions.open = 1, open_
    workspaces = MagicMock()
    workspaces.of.return_value = "default"
    return await BusTools(bus, MagicMock(), workspaces, 0).events(Who(ANYONE, None), Events())


async def test_an_event_is_a_line() -> None:
    said = await shown(stored(7, {"n": 1}, subject="a.py"))
    assert said.text == '#7 note.x a.py by ci {"n":1}\ncursor: 00000000:9-9-9'
    (event,) = said.data["events"]
    assert event["data"] == {"n": 1} and "session" not in event


async def test_events_stand_in_their_order_though_p0_overtakes() -> None:
    said = await shown(stored(8, 1), stored(7, 2))
    assert [event["seq"] for event in said.data["events"]] == [7, 8]


async def test_a_large_payload_is_only_counted_and_a_longer_one_cut() -> None:
    large, long = await shown(stored(7, "x" * 3000)), await shown(stored(7, "x" * 1000))
    assert "(3002 bytes of data)" in large.text and "data" not in large.data["events"][0]
    assert large.data["events"][0]["data_bytes"] == 3002
    assert "…" in long.text and len(long.text) < 300 and len(long.data["events"][0]["data"]) == 1000


async def test_nothing_is_said_as_such() -> None:
    assert (await shown()).text.startswith("Nothing.\n")


async def test_an_event_that_is_damaged_is_no_trouble() -> None:
    damaged = corrupt_event(7, 1, 0)
    assert (await shown(damaged)).data["events"] == [{"seq": 7, "type": "herdr.corrupt"}]
    assert bodies_of([damaged, stored(8, 1)]) == [{"type": "note.x", "subject": None, "data": 1}]
