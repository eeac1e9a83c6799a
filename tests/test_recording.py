import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from buses import FaultyLog, running_bus, until
from model_records import RECORD
from scripted_backend import HELLO, inquiry

from herdr import recording as recording_module
from herdr.bus.bus import Bus
from herdr.clock import SystemClock
from herdr.pool.chunk import Chunk, End, TextDelta, Usage
from herdr.pool.records import Audit
from herdr.pool.run import Outcome
from herdr.recording import CALLS_KEPT, Recording

CLOCK = SystemClock()


def outcome(call: str = "01J0", **changes: Any) -> Outcome:
    end = HELLO[-1]
    assert isinstance(end, End)
    fields: dict[str, Any] = {
        "call": call,
        "inquiry": inquiry(),
        "backend": "local",
        "slot": 3,
        "arrived": 10.0,
        "placed": 10.25,
        "first_token": 11.0,
        "over": 12.5,
        "usage": Usage(10, 4, 1),
        "chunks": HELLO,
        "end": end,
        "changed": None,
        "error": None,
        **changes,
    }
    return Outcome(**fields)


@asynccontextmanager
async def recorded(
    log: FaultyLog | None = None, audit: Audit = "turns", **settings: Any
) -> AsyncIterator[tuple[Recording, Bus, FaultyLog]]:
    log = log or FaultyLog()
    async with running_bus(log, settings=settings) as bus:
        rows = await log.load("call")
        yield Recording(bus.publisher, bus.remember, CLOCK, audit, rows), bus, log


async def events(log: FaultyLog) -> list[dict[str, Any]]:
    return [json.loads(event.body) for event in await log.read((0, 0, 0), 1000, 2**30)]


async def test_a_call_is_an_event_its_turns_and_a_row() -> None:
    async with recorded() as (recording, _, log):
        await recording(outcome())
        call, user, model = await events(log)
        assert [e["type"] for e in (call, user, model)] == [
            "model.call",
            "session.message",
            "session.message",
        ]
        assert call["data"] == recording.rows(10)[0]
        assert (user["data"]["content"], model["data"]["content"]) == ("said", "Hello")
        assert model["session"] == "agent" and model["priority"] == "P2"
        (row,) = (await log.load("call")).values()
        assert json.loads(row) == recording.rows(10)[0]


async def test_what_the_record_says() -> None:
    async with recorded() as (recording, _, _log):
        await recording(outcome())
        (row,) = recording.rows(10)
    assert row.pop("time").endswith("Z")
    assert row == {
        "call": "01J0",
        "agent": "agent",
        "session": None,
        "route": "primary_agent",
        "priority": 5,
        "backend": "local",
        "model": "any",
        "slot": 3,
        "queue_ms": 250,
        "first_token_ms": 1000,
        "total_ms": 2500,
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "output_tokens": 1,
        "stop_reason": "end_turn",
        "changed": None,
        "error": None,
    }


async def test_a_call_that_never_ran() -> None:
    never = {"backend": None, "slot": None, "placed": None, "first_token": None, "end": None, "chunks": ()}
    async with recorded() as (recording, _, _log):
        await recording(outcome(error="queue_timeout", **never))
        (row,) = recording.rows(10)
        assert (row["queue_ms"], row["first_token_ms"], row["stop_reason"]) == (None, None, None)
        assert row["error"] == "queue_timeout"
        assert recording.outcomes == {"queue_timeout": 1}


async def test_outcomes_and_numbers_count_every_call() -> None:
    async with recorded() as (recording, _, _log):
        await recording(outcome())
        await recording(outcome(error="client_gone"))
        await recording(outcome())
        assert recording.outcomes == {"ok": 2, "client_gone": 1}
        assert recording.numbers.prompt_tokens == 30


# -- rows ---------------------------------------------------------------------------------------------------


async def test_rows_are_the_newest_first_and_can_be_chosen() -> None:
    async with recorded(audit="metadata") as (recording, _, _log):
        for n in range(6):
            await recording(outcome(f"01J{n}", inquiry=inquiry(agent="ab"[n % 2], route="xyz"[n % 3])))
        calls = [row["call"] for row in recording.rows(10)]
        assert calls == ["01J5", "01J4", "01J3", "01J2", "01J1", "01J0"]
        assert [row["call"] for row in recording.rows(2)] == ["01J5", "01J4"]
        assert [row["call"] for row in recording.rows(10, agent="a")] == ["01J4", "01J2", "01J0"]
        assert [row["call"] for row in recording.rows(10, route="x", agent="b")] == ["01J3"]
        assert [row["call"] for row in recording.rows(10, after="01J3")] == ["01J5", "01J4"]
        assert recording.rows(10, after="01J5") == []
        assert len(recording.rows(10, after="gone long ago")) == 6


async def test_rows_survive_a_restart() -> None:
    log = FaultyLog()
    async with recorded(log, "metadata") as (recording, _, _log):
        for n in range(3):
            await recording(outcome(f"01J{n}"))
    async with recorded(log, "metadata") as (recording, _, _log):
        assert [row["call"] for row in recording.rows(10)] == ["01J2", "01J1", "01J0"]
        await recording(outcome("01J3"))
        assert len(await log.load("call")) == 4, "it does not overwrite what is not the oldest"


async def test_the_ring_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "CALLS_KEPT", 3)
    log = FaultyLog()
    for first in (0, 2, 4):  # a restart after every second call
        async with recorded(log, "metadata") as (recording, _, _log):
            await recording(outcome(f"01J{first}"))
            await recording(outcome(f"01J{first + 1}"))
    rows = {place: json.loads(row)["call"] for place, row in (await log.load("call")).items()}
    assert sorted(rows.values()) == ["01J3", "01J4", "01J5"] and set(rows) == {"0000", "0001", "0002"}


async def test_memory_holds_as_many_rows_as_the_ring() -> None:
    rows = {
        f"{n:04d}": msgspec.json.encode(msgspec.structs.replace(RECORD, call=f"01J{n:05d}"))
        for n in range(CALLS_KEPT)
    }
    async with running_bus(FaultyLog()) as bus:
        recording = Recording(bus.publisher, bus.remember, CLOCK, "metadata", rows)
        await recording(outcome("01K"))
        assert len(recording.rows(10_000)) == CALLS_KEPT
        assert recording.rows(1)[0]["call"] == "01K"


@pytest.mark.parametrize(
    "row",
    [b'{"call":"01J1"}', b"no json", b"[]", b"\xff", b'{"call":7}', msgspec.json.encode({"unknown": 1})],
)
async def test_rows_of_another_version_are_left_out(row: bytes) -> None:
    good = msgspec.json.encode(RECORD)
    more = msgspec.json.encode({**msgspec.to_builtins(RECORD), "call": "01Z", "new_field": 1})
    async with running_bus(FaultyLog()) as bus:
        rows = {"0000": good, "0001": row, "0002": more}
        recording = Recording(bus.publisher, bus.remember, CLOCK, "metadata", rows)
        assert [kept["call"] for kept in recording.rows(10)] == ["01Z", "01J"]


# -- what cannot be recorded --------------------------------------------------------------------------------


async def test_a_record_that_is_dropped_is_said(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultyLog()
    log.held = asyncio.Event()
    async with recorded(log, "metadata", buffer_size=1) as (recording, bus, _log):
        first = [asyncio.create_task(recording(outcome(f"01J{n}"))) for n in range(4)]
        await until(lambda: bus.publisher.dropped.get("overloaded"))
        log.held.set()
        await asyncio.gather(*first)
        assert len(recording.rows(10)) == 4, "the answer's row is there all the same"
    assert "is not in the log: too many events wait" in caplog.text


async def test_turns_that_are_dropped_cost_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultyLog()
    log.held = asyncio.Event()
    async with recorded(log, "turns", buffer_size=1) as (recording, bus, _log):
        task = asyncio.create_task(recording(outcome()))
        await until(lambda: bus.publisher.dropped.get("overloaded"))
        log.held.set()
        await task
        assert [e["type"] for e in await events(log)] == ["model.call"]
    assert "is not in the log" not in caplog.text


async def test_a_log_that_cannot_be_written_costs_the_record_and_not_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = FaultyLog()
    async with recorded(log) as (recording, _, _log):
        log.fails = lambda: True
        await recording(outcome())
        log.fails = lambda: False
        assert recording.rows(10)[0]["call"] == "01J0"
    assert "call 01J0 was not recorded: the disk is full" in caplog.text


async def test_a_log_that_hangs_is_not_waited_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_module, "COMMIT_S", 0.01)
    log = FaultyLog()
    log.held = asyncio.Event()
    async with recorded(log) as (recording, _, _log):
        await recording(outcome())
        log.held.set()
    assert "call 01J0 was not recorded: no commit within 0.01 s" in caplog.text


async def test_full_records_stay_within_an_event() -> None:
    control = "\x00" * 70_000
    chunks: list[Chunk] = [TextDelta(control), *HELLO]
    async with recorded(audit="full") as (recording, _, log):
        await recording(outcome(chunks=chunks, inquiry=inquiry(control * 3)))
        assert max(len(event.body) for event in await log.read((0, 0, 0), 1000, 2**30)) < 1024 * 1024


async def test_a_models_name_makes_no_large_record() -> None:
    asked = inquiry()
    canonical = msgspec.structs.replace(
        asked.canonical, request=msgspec.structs.replace(asked.canonical.request, model="m" * 2_000_000)
    )
    async with recorded(audit="metadata") as (recording, _, log):
        await recording(outcome(inquiry=msgspec.structs.replace(asked, canonical=canonical)))
        assert max(len(event.body) for event in await log.read((0, 0, 0), 1000, 2**30)) < 1024 * 1024


async def test_logging_names_no_word_of_the_prompt(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with recorded() as (recording, _, _log):
            await recording(outcome(inquiry=inquiry("a very private matter")))
    assert "private" not in caplog.text
