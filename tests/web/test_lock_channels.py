"""Locks over the WebSocket: beside everything else that it does, and ended with it where they are bound."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from buses import FaultyLog, running_bus, until
from fake_desk import FakeDesk

from herdr.bus.bus import Bus
from herdr.clock import SystemClock
from herdr.errors import LogUnavailable
from herdr.locks.lock import Wanted
from herdr.locks.refusals import Deadlock, Locked
from herdr.locks.views import Taken
from herdr.web.asgi import NO_PONG, Message
from herdr.web.auth import Access, make_token
from herdr.web.connect import Connect
from herdr.web.lock_channels import ASKS_KEPT, ASKS_MAX, OTHERS_MAX
from herdr.web.streams import Streams

TOKENS = [
    make_token("worker", "worker", ["locks"]),
    make_token("both", "both", ["locks", "events:publish"]),
    make_token("teller", "teller", ["events:publish"]),
]


class Client:
    """One WebSocket in the test's hands."""

    def __init__(self, app: Connect, token: str = "", packed: bool = False) -> None:
        self.frames: list[dict[str, Any]] = []
        self.takes = asyncio.Event()
        self.takes.set()
        self.breaks = False
        """Whether what is written does not arrive any more."""
        self._packed = packed
        self._sent: asyncio.Queue[Message] = asyncio.Queue()
        self._sent.put_nowait({"type": "websocket.connect"})
        self._named = bool(token)
        scope = {
            "type": "websocket",
            "headers": [(b"authorization", f"Bearer {token}".encode())] if token else [],
            "subprotocols": ["herdr.v1.msgpack" if packed else "herdr.v1.json"],
        }
        self.task = asyncio.create_task(app(scope, self._sent.get, self._receive))

    async def _receive(self, message: Message) -> None:
        await self.takes.wait()
        if self.breaks:
            raise ConnectionResetError("the connection was cut")
        if message["type"] == "websocket.send":
            packed = self._packed
            self.frames.append(
                msgspec.msgpack.decode(message["bytes"]) if packed else json.loads(message["text"])
            )

    def send(self, op: str, **fields: Any) -> None:
        owner = {"owner": "o"} if op in ("lock", "wait") and not self._named else {}
        frame = {"op": op, **owner, **fields}
        self._sent.put_nowait(
            {"type": "websocket.receive", "bytes": msgspec.msgpack.encode(frame)}
            if self._packed
            else {"type": "websocket.receive", "text": json.dumps(frame)}
        )

    async def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        seen = len(self.frames)
        self.send(op, **fields)
        await until(lambda: len(self.frames) > seen)
        return self.frames[seen]

    async def close(self) -> None:
        self.begin_close()
        await self.task

    def begin_close(self, code: int = 1000) -> None:
        self._sent.put_nowait({"type": "websocket.disconnect", "code": code})


class World:
    def __init__(self, bus: Bus, log: FaultyLog) -> None:
        self.bus = bus
        self.log = log
        self.desk = FakeDesk()
        self.streams = Streams(10, 30.0, SystemClock(), lambda: 0.0)
        self.open = Connect(bus, self.streams, Access([]), 1000, self.desk)
        self.closed = Connect(bus, self.streams, Access(TOKENS), 1000, self.desk)

    def client(self, token: str = "", packed: bool = False) -> Client:
        return Client(self.closed if token else self.open, token, packed)

    def said(self, *ops: str) -> list[tuple[Any, ...]]:
        return [said for said in self.desk.said if said[0] in ops]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    log = FaultyLog()
    async with running_bus(log) as bus:
        yield World(bus, log)


@pytest.mark.parametrize("packed", [False, True], ids=["json", "msgpack"])
async def test_every_operation_is_passed_on_and_answered(world: World, packed: bool) -> None:
    client = world.client(packed=packed)
    asked = await client.ask(
        "lock", ref=1, paths=["a"], owner="o", ttl_s=5, mode="intent", purpose="p", session="s"
    )
    assert world.said("lock") == [("lock", "default", ["a"], "o", "intent", 5, 0, "p", "s")]
    answer = msgspec.to_builtins(
        world.desk.leased("L7", 7, owner="o", mode="intent", ttl_s=5.0, purpose="p", session="s")
    )
    assert asked == {"op": "lock", "ref": 1, **answer, "paths": ["a"]}
    renewed = await client.ask("renew", ref="r", lock="L7", token=7, ttl_s=9)
    assert (renewed["op"], renewed["ref"], renewed["token"], renewed["ttl_s"]) == ("renew", "r", 7, 9)
    assert await client.ask("unlock", ref=2, lock="L7", token=7) == {"op": "unlock", "ref": 2}
    wait = await client.ask("wait", ref=3, owner="o", on="b", purpose="p")
    assert (wait["op"], wait["ref"], wait["wait"]) == ("wait", 3, "W-o-b")
    assert await client.ask("unwait", ref=4, wait="W-o-b") == {"op": "unwait", "ref": 4}
    assert world.desk.said[1:] == [
        ("renew", "L7", 7, 9),
        ("release", "L7", 7, "released"),
        ("declare", "o", "b", "p", 600.0),
        ("end_wait", "W-o-b"),
    ]
    await client.close()


async def test_refusals_carry_what_http_says(world: World) -> None:
    client = world.client()
    world.desk.refuses = Locked("held", [{"path": "a", "owner": "b"}], 17)
    assert await client.ask("lock", ref=1, paths=["a"]) == {
        **{"op": "error", "ref": 1, "code": "locked", "detail": "held"},
        **{"conflicts": [{"path": "a", "owner": "b"}], "retry_after_s": 17},
    }
    world.desk.refuses = Deadlock("never", ["a", "b", "a"])
    for op, fields in (("lock", {"paths": ["a"]}), ("wait", {"on": "b"})):
        said = await client.ask(op, ref=2, **fields)
        assert said == {
            "op": "error",
            "ref": 2,
            "code": "deadlock",
            "detail": "never",
            "cycle": ["a", "b", "a"],
        }
    world.desk.refuses = LogUnavailable("full")
    assert (await client.ask("renew", ref=3, lock="L", token=1))["retry_after_s"] == 1
    await client.close()


async def test_a_defect_is_told_and_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    client = world.client()
    world.desk.refuses = ZeroDivisionError("planted")  # type: ignore[assignment]
    said = await client.ask("renew", ref=3, lock="L", token=1)
    assert (said["ref"], said["code"]) == (3, "internal")
    assert "planted" in caplog.text and "planted" not in said["detail"]
    await client.close()


WRONG: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("lock", {}, "invalid_request", "paths"),
    ("lock", {"paths": ["a"], "colour": 1}, "invalid_request", "colour"),
    ("lock", {"paths": ["a"], "ttl_s": True}, "invalid_request", "ttl_s"),
    ("lock", {"paths": ["a"], "bound": 1}, "invalid_request", "bound"),
    ("renew", {"lock": "L"}, "invalid_request", "token"),
    ("renew", {"lock": "L", "token": 1, "bound": True}, "invalid_request", "bound"),
    ("unlock", {}, "invalid_request", "token"),
    ("unlock", {"lock": "L"}, "invalid_request", "token"),
    ("unlock", {"lock": "L", "token": 1, "cancel": 2}, "invalid_request", "cancel"),
    ("unlock", {"cancel": True}, "invalid_request", "cancel"),
    ("unlock", {"cancel": 99}, "unknown_ref", None),
    ("wait", {"owner": "a"}, "invalid_request", "on"),
    ("wait", {"on": "a", "ttl_s": 0}, "invalid_request", "ttl_s"),
    ("unwait", {"owner": "a"}, "invalid_request", "owner"),
]


@pytest.mark.parametrize(
    ("op", "fields", "code", "field"), WRONG, ids=[f"{row[0]} {row[1]}" for row in WRONG]
)
async def test_a_wrong_frame_names_its_field(
    world: World, op: str, fields: dict[str, Any], code: str, field: str | None
) -> None:
    client = world.client()
    said = await client.ask(op, ref=5, **fields)
    assert (said["op"], said["ref"], said["code"]) == ("error", 5, code)
    assert [entry["field"] for entry in said.get("errors", [])] == ([] if field is None else [field])
    assert world.desk.said == []
    assert (await client.ask(op, **fields))["code"] in ("bad_frame", "invalid_request")
    await client.close()


async def test_each_operation_asks_for_the_scope(world: World) -> None:
    teller = world.client("teller")
    for op, fields in (
        ("lock", {"paths": ["a"]}),
        ("unlock", {"lock": "L", "token": 1}),
        ("renew", {"lock": "L", "token": 1}),
        ("wait", {"on": "b"}),
        ("unwait", {"wait": "W"}),
        ("publish", {"events": [], "tokens": [7]}),
    ):
        assert (await teller.ask(op, ref=1, **fields))["code"] == "missing_scope"
    assert world.desk.said == []
    worker = world.client("worker")
    assert (await worker.ask("lock", ref=1, paths=["a"]))["owner"] == "worker"
    assert (await worker.ask("publish", ref=2, events=[]))["code"] == "missing_scope"
    await teller.close()
    await worker.close()


async def test_asks_that_wait_hold_up_nothing(world: World) -> None:
    client = world.client()
    for ref in range(ASKS_MAX):
        client.send("lock", ref=ref, paths=["a"], wait_s=30)
    await until(lambda: world.desk.waiting == ASKS_MAX)
    assert await client.ask("ping", ref="p") == {"op": "pong", "ref": "p"}
    receipts = await client.ask("publish", ref="e", events=[{"type": "a.b"}])
    assert receipts["results"][0]["status"] == "accepted"
    refused = await client.ask("lock", ref="more", paths=["a"])
    assert (refused["ref"], refused["code"], refused["retry_after_s"]) == ("more", "too_many_waiters", 1)
    assert (await client.ask("renew", ref="r", lock="L", token=1))["op"] == "renew"
    assert (await client.ask("unlock", ref="u", cancel=0)) == {"op": "unlock", "ref": "u"}
    assert (await client.ask("lock", ref="more", paths=["a"]))["op"] == "lock"
    await client.close()
    assert world.desk.waiting == 0


async def test_the_other_operations_have_their_bound_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = asyncio.Event()

    async def slow(wait: str) -> None:
        await held.wait()

    monkeypatch.setattr(world.desk, "end_wait", slow)
    client = world.client()
    for ref in range(OTHERS_MAX):
        client.send("unwait", ref=ref, wait="W")
    assert (await client.ask("renew", ref="r", lock="L", token=1))["code"] == "too_many_waiters"
    held.set()
    await until(lambda: len(client.frames) == OTHERS_MAX + 1)
    assert (await client.ask("renew", ref="r", lock="L", token=1))["op"] == "renew"
    await client.close()


async def test_a_ref_asks_for_one_thing_at_a_time(world: World) -> None:
    client = world.client()
    client.send("lock", ref=1, paths=["a"], wait_s=30)
    await until(lambda: world.desk.waiting)
    assert (await client.ask("lock", ref=1, paths=["b"]))["code"] == "bad_frame"
    world.desk.gate.set()
    await until(lambda: len(client.frames) == 2)
    assert (await client.ask("lock", ref=1, paths=["b"]))["paths"] == ["b"]
    await client.close()


async def test_giving_up_leaves_the_line_and_only_the_unlock_is_answered(world: World) -> None:
    client = world.client()
    client.send("lock", ref=1, paths=["a"], wait_s=30)
    await until(lambda: world.desk.waiting)
    assert await client.ask("unlock", ref=2, cancel=1) == {"op": "unlock", "ref": 2}
    assert world.desk.said[-1] == ("withdrawn", ["a"])
    assert await client.ask("unlock", ref=3, cancel=1) == {"op": "unlock", "ref": 3}
    assert await client.ask("ping") == {"op": "pong"} and len(client.frames) == 3
    await client.close()


async def test_giving_up_what_was_just_granted_releases_it(world: World) -> None:
    client = world.client()
    await client.ask("lock", ref=1, paths=["a"], bound=True)
    assert await client.ask("unlock", ref=2, cancel=1) == {"op": "unlock", "ref": 2}
    assert world.said("release") == [("release", "L7", 7, "released")]
    await client.close()
    assert len(world.said("release")) == 1


async def test_giving_up_a_grant_whose_answer_is_on_its_way(world: World) -> None:
    client = world.client()
    await client.ask("ping")
    client.takes.clear()
    client.send("lock", ref=1, paths=["a"])
    await until(lambda: world.desk.held)
    client.send("unlock", ref=2, cancel=1)
    await until(lambda: world.said("release"))
    client.takes.set()
    await until(lambda: {"op": "unlock", "ref": 2} in client.frames)
    assert world.desk.held == set()
    await client.close()


async def test_giving_up_does_not_take_what_was_held_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second ask only extends the lock of the first, or one of another connection."""

    async def extends(_wanted: Wanted) -> Any:
        return Taken(world.desk.leased("L7", 7), is_new=False)

    client = world.client()
    await client.ask("lock", ref=1, paths=["a"])
    monkeypatch.setattr(world.desk, "lock", extends)
    await client.ask("lock", ref=2, paths=["a"])
    await client.ask("unlock", ref=3, cancel=2)
    assert world.desk.held == {7}
    other = world.client()
    await other.ask("lock", ref=1, paths=["a"])
    await other.ask("unlock", ref=2, cancel=1)
    assert world.desk.held == {7}
    await client.close()
    await other.close()


async def test_what_was_asked_for_long_ago_is_forgotten(world: World) -> None:
    client = world.client()
    for ref in range(ASKS_KEPT + 2):
        await client.ask("lock", ref=ref, paths=["a"])
    assert (await client.ask("unlock", ref="u", cancel=0))["code"] == "unknown_ref"
    assert (await client.ask("unlock", ref="u", cancel=ASKS_KEPT))["op"] == "unlock"
    await client.close()


@pytest.mark.parametrize(("code", "kept"), [(1000, False), (1005, False), (NO_PONG, True)])
async def test_a_client_that_is_silent_keeps_what_is_bound(world: World, code: int, kept: bool) -> None:
    """It may be halted, and go on where it was; one that has ended has closed its socket."""
    client = world.client()
    await client.ask("lock", ref=1, paths=["a"], bound=True)
    client.begin_close(code)
    await client.task
    assert (world.said("release") == []) == kept


async def test_a_client_that_is_silent_in_the_middle_of_an_answer_keeps_it_too(world: World) -> None:
    """A halted client's buffers are full, so the write of an answer is what fails first."""
    client = world.client()
    await client.ask("lock", ref=1, paths=["a"], bound=True)
    client.breaks = True
    client.send("ping")
    client.begin_close(NO_PONG)
    await client.task
    assert world.said("release", "give_back") == []


async def test_what_is_bound_ends_with_the_connection_and_nothing_else(world: World) -> None:
    client = world.client()
    await client.ask("lock", ref=1, paths=["a"], bound=True)
    await client.ask("lock", ref=2, paths=["b"])
    await client.ask("lock", ref=3, paths=["c"], bound=True)
    await client.ask("unlock", ref=4, lock="L9", token=9)
    await client.ask("wait", ref=5, owner="o", on="b", bound=True)
    await client.ask("wait", ref=6, owner="o", on="c")
    await client.ask("wait", ref=7, owner="o", on="d", bound=True)
    await client.ask("unwait", ref=8, wait="W-o-d")
    before = len(world.desk.said)
    await client.close()
    assert sorted(world.desk.said[before:]) == [
        ("end_wait", "W-o-b"),
        ("release", "L7", 7, "connection_closed"),
    ]


async def test_who_waits_leaves_the_line_when_the_connection_ends(world: World) -> None:
    client = world.client()
    client.send("lock", ref=1, paths=["a"], wait_s=30)
    await until(lambda: world.desk.waiting)
    await client.close()
    assert world.desk.said[-1] == ("withdrawn", ["a"])


@pytest.mark.parametrize("bound", [True, False])
async def test_a_lock_that_comes_when_the_connection_ends_is_released(world: World, bound: bool) -> None:
    client = world.client()
    await client.ask("ping")
    client.takes.clear()  # so that its answer is on the way, and nobody has heard of it
    client.send("lock", ref=1, paths=["a"], wait_s=30, bound=bound)
    await until(lambda: world.desk.waiting)
    world.desk.gate.set()
    await until(lambda: world.desk.held)
    client.begin_close()
    await client.task
    given_back = ("release", "L7", 7, "connection_closed") if bound else ("give_back", "L7")
    assert world.said("release", "give_back") == [given_back]


async def test_a_wait_that_is_declared_when_the_connection_ends_ends_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = asyncio.Event()

    async def slow(owner: str, on: str, purpose: str | None, ttl_s: float) -> dict[str, Any]:
        world.desk.said.append(("declare",))
        await committed.wait()
        return {"wait": "W1"}

    monkeypatch.setattr(world.desk, "declare", slow)
    client = world.client()
    client.send("wait", ref=1, on="b", bound=True)
    await until(lambda: world.said("declare"))
    client.begin_close()
    await until(lambda: world.streams.websocket == 0)
    committed.set()
    await client.task
    assert world.desk.said[-1] == ("end_wait", "W1")


async def test_a_lock_that_two_connections_hold_ends_with_the_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two programs that go by one name hold one lock; it is not over when one of them ends."""
    first, second = world.client(), world.client()
    await first.ask("lock", ref=1, paths=["a"], bound=True)
    world.desk.extends = True
    world.desk.next_token = 7
    await second.ask("lock", ref=1, paths=["a"], bound=True)
    await second.close()
    assert world.said("release") == []
    await first.close()
    assert world.said("release") == [("release", "L7", 7, "connection_closed")]


async def test_a_client_that_comes_back_early_keeps_what_it_holds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old connection is found dead only later, and must not take the lock along."""
    old, new = world.client(), world.client()
    await old.ask("lock", ref=1, paths=["a"], bound=True)

    async def extends(_wanted: Wanted) -> Any:
        return Taken(world.desk.leased("L7", 7), is_new=False)

    monkeypatch.setattr(world.desk, "lock", extends)
    await new.ask("lock", ref=1, paths=["a"], bound=True)
    await old.close()
    assert world.said("release") == []
    await new.close()
    assert world.said("release") == [("release", "L7", 7, "connection_closed")]


async def test_a_stop_keeps_what_is_bound_and_ends_the_waiting(world: World) -> None:
    client = world.client()
    await client.ask("lock", ref=1, paths=["a"], bound=True)
    await client.ask("wait", ref=2, on="b", bound=True)
    client.send("lock", ref=3, paths=["c"], wait_s=30, bound=True)
    await until(lambda: world.desk.waiting)
    goodbye = asyncio.create_task(world.streams.say_goodbye())
    await until(lambda: client.frames[-1]["op"] == "bye")
    assert world.desk.said[-1] == ("withdrawn", ["c"])
    client.send("lock", ref=4, paths=["d"])
    await client.close()
    await goodbye
    assert world.said("release", "end_wait") == [] and len(world.said("lock")) == 2
    assert [frame["ref"] for frame in client.frames if "ref" in frame] == [1, 2]


async def test_a_stop_waits_for_what_is_about_to_be_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = asyncio.Event()
    grant = world.desk.lock

    async def slow(*args: Any, **fields: Any) -> Any:
        world.desk.said.append(("asked",))
        await committed.wait()
        return await grant(*args, **fields)

    monkeypatch.setattr(world.desk, "lock", slow)
    client = world.client()
    client.send("lock", ref=1, paths=["a"])
    await until(lambda: world.said("asked"))
    goodbye = asyncio.create_task(world.streams.say_goodbye())
    await until(lambda: world.streams.stopping)
    assert client.frames == []
    committed.set()
    await goodbye
    assert [frame["op"] for frame in client.frames] == ["lock", "bye"]
    await client.close()


async def test_a_release_that_fails_leaves_the_others_be(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    client = world.client()
    await client.ask("lock", ref=1, paths=["a"], bound=True)
    await client.ask("lock", ref=2, paths=["b"], bound=True)
    world.desk.refuses = LogUnavailable("the disk is full")
    await client.close()
    assert len(world.said("release")) == 2
    assert "the disk is full" in caplog.text


async def test_what_has_ended_before_is_no_trouble(world: World, caplog: pytest.LogCaptureFixture) -> None:
    client = world.client()
    await client.ask("lock", ref=1, paths=["a"], bound=True)
    world.desk.held.clear()  # its lease has run out
    await client.close()
    assert world.said("release") == [("release", "L7", 7, "connection_closed")]
    assert caplog.text == ""


async def test_a_publish_renews_the_leases_that_it_names(world: World) -> None:
    world.desk.held = {7, 8}
    client = world.client()
    done = await client.ask("publish", ref=1, events=[{"type": "a.b"}], tokens=[7, 8])
    assert done["results"][0]["status"] == "accepted" and world.desk.said == [("carried", 7, 8)]
    head = world.bus.log.head
    assert (await client.ask("publish", ref=2, events=[{"type": "a.b"}], tokens=[9]))["code"] == "fenced"
    for wrong in ([0], ["7"], [7] * 17, 7, [True]):
        said = await client.ask("publish", ref=3, events=[{"type": "a.b"}], tokens=wrong)
        assert (said["op"], said["ref"], said["code"]) == ("error", 3, "bad_frame")
        assert said["errors"][0]["message"].startswith("expected at most 16 whole numbers")
    assert world.bus.log.head == head
    await client.close()
