"""The way in: what is held, dropped or let through, before any writer has seen it."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from buses import FaultyLog, running_bus, until

from herdr.bus import intake as module
from herdr.bus.bus import Bus
from herdr.bus.debounce import Debounce
from herdr.bus.envelope import OWN_TIMEOUT_MS
from herdr.bus.intake import Intake
from herdr.bus.lanes import Lanes
from herdr.bus.overflow import Overflow
from herdr.bus.pending import Pending, Submission
from herdr.bus.rate_limit import FairBucket
from herdr.bus.route import DEFAULT_TIMEOUT_MS, RoutingTable
from herdr.config import RouteRule
from herdr.event import Delivery, Draft, Event, Lane, Receipt

NOW = 1000.0
LATER = NOW + 60.0


class World:
    """An intake over lanes that nobody empties but the test."""

    def __init__(self, buffer_size: int = 100, p2_per_s: float = 0.0, debounces: bool = True) -> None:
        self.known: dict[tuple[str, str], int] = {}
        self.lanes: Lanes[Pending] = Lanes(buffer_size)
        self.made = 0
        self.intake = Intake(
            self.lanes,
            Debounce(0.5, 5.0, 10),
            Overflow(),
            FairBucket(p2_per_s),
            self._new_id,
            lambda source, event_id: self.known.get((source, event_id)),
            debounces,
        )

    def _new_id(self) -> str:
        self.made += 1
        return f"made-{self.made}"

    def take_in(self, type_: str, id_: str | None = None, now: float = NOW, **fields: Any) -> Receipt | None:
        """Return the receipt that the draft got at once; None for one that is in its lane."""
        fields |= {} if id_ is None else {"id": id_}
        submission = Submission(1, asyncio.get_running_loop().create_future())
        draft = msgspec.convert({"type": type_, **fields}, Draft)
        assert self.intake.take_in(draft, "s", submission, 0, now) is None
        return submission.receipts[0]

    def waiting(self) -> list[Event]:
        events = []
        while batch := self.lanes.take():
            events += [pending.event for pending in batch]
        return events


async def test_an_event_enters_the_lane_that_its_type_its_wish_and_the_rules_say() -> None:
    world = World()
    world.intake.table = RoutingTable([RouteRule(event="b", target="t", priority="P0")])
    for type_, wish in (
        ("user.message", None),
        ("a", None),
        ("index.updated", None),
        ("a", "P2"),
        ("b", "P2"),
    ):
        assert world.take_in(type_, priority=wish) is None
    assert world.lanes.depths == (2, 1, 2)
    user, routed, *_ = world.waiting()
    assert (user.class_, user.id) == ("user", "made-1")
    assert json.loads(user.body)["tags"] == ["instruction"]
    assert routed.deliveries == (Delivery("t", DEFAULT_TIMEOUT_MS[0]),)


async def test_own_tags_come_before_the_publishers() -> None:
    world = World()
    world.take_in("test.failed", tags=["red", "failure"])
    (event,) = world.waiting()
    assert json.loads(event.body)["tags"] == ["failure", "red"]


async def test_a_file_change_is_held_until_its_window_closes() -> None:
    world = World()
    for number in range(3):
        receipt = world.take_in("file.changed", f"f{number}", subject="a.py")
        assert receipt == Receipt("deferred", f"f{number}")
    assert world.take_in("file.changed") is None  # about nothing in particular, so there is nothing to join
    assert [event.id for event in world.waiting()] == ["made-1"]
    assert world.intake.next_due() == NOW + 0.5
    assert world.intake.due(NOW + 0.5)
    (event,) = world.waiting()
    assert (event.id, event.replaced_ids) == ("f2", ("f0", "f1"))


async def test_without_debouncing_a_file_change_goes_straight_on() -> None:
    world = World(debounces=False)
    assert world.take_in("file.changed", subject="a.py") is None
    assert world.lanes.depths == (0, 0, 1)


@pytest.mark.parametrize("type_", ["file.changed", "user.message"])
async def test_p0_passes_debounce_and_rate_limit(type_: str) -> None:
    world = World(p2_per_s=1)
    for number in range(20):
        assert world.take_in(type_, f"{number}", subject="a.py", priority="P0") is None
    assert world.lanes.depths == (20, 0, 0)


async def test_over_the_rate_p2_is_dropped_and_file_changes_join_one_event() -> None:
    world = World(p2_per_s=1)
    while world.take_in("index.updated", "x") is None:
        pass
    assert world.take_in("index.updated", "y") == Receipt("dropped", "y", reason="rate_limited")
    assert world.intake.dropped == {"rate_limited": 2}
    for number in range(3):
        receipt = world.take_in("file.changed", f"f{number}", subject=f"{number}.py", workspace="w")
        assert receipt == Receipt("deferred", f"f{number}")
    world.waiting()
    assert world.intake.due(NOW + 1)
    (event,) = world.waiting()
    assert (event.type, event.source, event.workspace, event.lane) == ("files.changed", "s", "w", Lane.P2)
    assert event.replaced_ids == ("f0", "f1", "f2")
    assert json.loads(event.body)["data"] == {
        "count": 3,
        "paths": ["0.py", "1.py", "2.py"],
        "truncated": False,
        "cause": "rate",
    }
    assert json.loads(event.body)["tags"] == ["change"]


async def test_a_save_that_joins_an_open_window_costs_no_place_under_the_rate() -> None:
    world = World(p2_per_s=1)
    for number in range(10):
        world.take_in("file.changed", f"f{number}", subject="a.py")
    assert world.intake.due(NOW + 0.5)
    (event,) = world.waiting()
    assert len(event.replaced_ids) == 9


async def test_what_is_known_goes_straight_on_to_be_told_so() -> None:
    world = World(p2_per_s=1)
    world.known["s", "old"] = 7
    while world.take_in("index.updated", "x") is None:
        pass
    world.waiting()
    assert world.take_in("index.updated", "old") is None
    assert world.take_in("file.changed", "old", subject="a.py") is None
    assert [event.id for event in world.waiting()] == ["old", "old"]
    assert world.intake.next_due() is None


async def test_the_writer_hears_which_ids_the_gateway_made_itself() -> None:
    world = World(p2_per_s=1)
    world.take_in("a")
    world.take_in("a", "given")
    world.take_in("file.changed", subject="a.py")
    world.take_in("file.changed", "held", subject="b.py")
    world.take_in("file.changed", "joined", subject="c.py")
    world.intake.flush()
    pending = world.lanes.take()
    assert [(item.event.type, item.event.id, item.made_id) for item in pending] == [
        ("a", "made-1", True),
        ("a", "given", False),
        ("file.changed", "made-2", True),
        ("files.changed", "made-3", True),
    ]
    assert pending[3].event.replaced_ids == ("held", "joined")


async def test_a_known_id_of_another_source_is_none() -> None:
    world = World()
    world.known["t", "old"] = 7
    assert world.take_in("file.changed", "old", subject="a.py") == Receipt("deferred", "old")


async def test_what_was_deferred_waits_for_room_and_is_never_refused() -> None:
    world = World(buffer_size=2)
    for number in range(4):
        world.take_in("file.changed", f"f{number}", subject=f"{number}.py")
    for number in range(2):
        world.take_in("a", f"a{number}")
    assert world.take_in("index.updated", "late") == Receipt("dropped", "late", reason="overloaded")
    assert not world.intake.due(LATER)
    assert [event.id for event in world.waiting()] == ["a0", "a1"]
    assert world.intake.due(LATER)  # all at once, and more of them than the lanes would take
    assert [event.id for event in world.waiting()] == ["f0", "f1", "f2", "f3"]


async def test_a_stop_lets_go_of_everything_however_full_the_lanes_are() -> None:
    world = World(buffer_size=1, p2_per_s=1)
    world.take_in("file.changed", "kept", subject="kept.py")
    while world.take_in("index.updated") is None:
        pass
    world.take_in("file.changed", "joined", subject="joined.py")
    world.take_in("tool.result")
    assert world.lanes.is_full
    world.intake.flush()
    held = [event for event in world.waiting() if event.type.startswith("file")]
    assert [(event.type, event.id, event.replaced_ids) for event in held] == [
        ("file.changed", "kept", ()),
        ("files.changed", held[1].id, ("joined",)),
    ]
    assert world.intake.next_due() is None


def test_the_gateways_own_events_are_routed_like_any_other() -> None:
    world = World()
    rules = [
        RouteRule(event="conflict.*", target="reviewer", format="summary"),
        RouteRule(event="conflict.*", target="a"),
        RouteRule(event="conflict.*", target="elsewhere", match={"workspace": "other"}),
        RouteRule(event="*", target="own", match={"source": "herdr", "class": "tool"}),
    ]
    world.intake.table = RoutingTable(rules)
    event = world.intake.own("conflict.detected", {"x": 1}, to=("a", "b"), subject="x.py", workspace="w")
    assert (event.source, event.id, event.lane, event.subject, event.workspace) == (
        "herdr",
        "made-1",
        Lane.P1,
        "x.py",
        "w",
    )
    assert json.loads(event.body)["data"] == {"x": 1}
    assert event.deliveries[:2] == (Delivery("a", OWN_TIMEOUT_MS), Delivery("b", OWN_TIMEOUT_MS))
    assert sorted(d.target for d in event.deliveries) == ["a", "b", "own", "reviewer"]


def test_a_rule_does_not_move_the_gateways_own_event_to_another_lane() -> None:
    world = World()
    world.intake.table = RoutingTable([RouteRule(event="*", target="t", priority="P2")])
    assert world.intake.own("conflict.detected", {}, lane=Lane.P0).lane is Lane.P0
    assert world.intake.own("herdr.redacted", {}).lane is Lane.P1


async def test_what_it_remembers_by_type_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TYPES_CACHED_MAX", 3)
    world = World()
    for number in range(20):
        world.take_in(f"test.{number}")
        world.take_in("user.message")
    assert len(world.intake._kinds) <= 3
    events = world.waiting()
    assert {event.class_ for event in events[:20]} == {"user"}
    assert {event.class_ for event in events[20:]} == {"environment"}


async def answered(bus: Bus, **fields: Any) -> Receipt:
    (receipt,) = await bus.publisher.publish([msgspec.convert(fields, Draft)], "s")
    return receipt


async def test_over_the_rate_a_retry_is_still_a_duplicate() -> None:
    async with running_bus(FaultyLog(), settings={"p2_per_s": 1}) as bus:
        first = await answered(bus, type="index.updated", id="1")
        while (await answered(bus, type="index.updated")).status == "accepted":
            pass
        assert (await answered(bus, type="index.updated", id="2")).status == "dropped"
        again = await answered(bus, type="index.updated", id="1")
    assert (first.status, first.seq, again.status, again.seq) == ("accepted", 1, "duplicate", 1)


async def test_a_retried_file_change_is_a_duplicate_and_not_deferred_again() -> None:
    log = FaultyLog()
    async with running_bus(log, settings={"p2_per_s": 1, "debounce_ms": 1}) as bus:
        save = {"type": "file.changed", "subject": "a.py"}
        for id_ in ("1", "2"):
            assert (await answered(bus, **save, id=id_)).status == "deferred"
        await until(lambda: bus.head)
        while (await answered(bus, type="index.updated")).status == "accepted":
            pass
        again = [await answered(bus, **save, id=id_) for id_ in ("1", "2")]
    assert {(r.status, r.seq) for r in again} == {("duplicate", 1)}
