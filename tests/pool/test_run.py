import asyncio
import contextlib
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from scripted_backend import (
    HELLO,
    Desk,
    Scripted,
    desk,
    failing,
    held,
    inquiry,
    read,
    request,
    saying,
    text,
    until,
)
from virtual_time import VirtualClock, pass_time, run

from herdr.pool.backend import Emit, Job, Sight
from herdr.pool.chunk import (
    Chunk,
    End,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    ToolEnd,
    ToolStart,
    Usage,
    Verbatim,
)
from herdr.pool.failures import RETRY_AFTER_S, ModelError
from herdr.pool.generation import Place, Reader
from herdr.pool.run import PAUSE_MIN_S

DONE = End("end_turn", Usage(10, 0, 1))


def play(main: Callable[[Desk], Awaitable[None]], **schedule: Any) -> None:
    """Run a test against one backend with one slot."""
    clock = VirtualClock()
    it = desk(clock, **schedule)

    async def whole() -> None:
        await it.open_up()
        await main(it)
        await it.pool.stop()
        assert it.line.snapshot()["running"] == 0

    run(whole(), clock)


async def failure_of(it: Desk, asked: Any = "Hi") -> ModelError:
    with pytest.raises(ModelError) as caught:
        await it.read(asked if not isinstance(asked, str) else inquiry(asked))
    return caught.value


def slot(it: Desk) -> tuple[str, str | None, int]:
    (view,) = it.line.schedule.snapshot(it.clock.now).slots
    return view.state, view.agent, view.cached_tokens


# -- a good call --------------------------------------------------------------------------------------------


def test_a_call_is_answered_and_recorded() -> None:
    async def main(it: Desk) -> None:
        assert await it.read(inquiry()) == list(HELLO)
        (outcome,) = it.outcomes
        assert (outcome.backend, outcome.slot, outcome.error) == ("local", 0, None)
        assert outcome.end == HELLO[-1] and outcome.usage == Usage(10, 0, 1)
        assert outcome.arrived <= (outcome.placed or 0) <= (outcome.first_token or 0) <= outcome.over
        assert slot(it) == ("warm", "agent", 11)

    play(main)


def test_the_end_is_seen_only_once_the_call_is_recorded() -> None:
    async def main(it: Desk) -> None:
        with it.pool.open(inquiry()) as reader:
            seen: list[Chunk] = []
            while not reader.finished:
                await reader.moved()
                seen += reader.take()
                assert bool(it.outcomes) >= any(isinstance(chunk, End) for chunk in seen)

    play(main)


def test_a_record_that_cannot_be_made_leaves_no_reader_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def main(it: Desk) -> None:
        it.fails_to_record = True
        assert text(await it.read(inquiry())) == "Hello"
        it.backend.to_say.append(failing("backend_failed"))
        assert (await failure_of(it)).code == "backend_failed"
        it.fails_to_record = False

    play(main)


@pytest.mark.parametrize(
    ("chunks", "code"),
    [([], "backend_failed"), ([TextDelta("half")], "backend_failed")],
)
def test_an_answer_without_an_end_is_a_failure(chunks: list[Chunk], code: str) -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(saying(*chunks))
        assert (await failure_of(it)).code == code

    play(main)


def test_a_mistake_of_the_gateway_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(job: Job, emit: Emit) -> bool:
        raise KeyError("secret detail")

    async def main(it: Desk) -> None:
        it.backend.to_say.append(broken)
        error = await failure_of(it)
        assert error.code == "internal" and "secret detail" not in error.detail
        assert "secret detail" in caplog.text, "the log has all of it"
        assert text(await it.read(inquiry())) == "Hello"

    play(main)


# -- max_tokens ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "context", "sent"),
    [(None, None, 512), (100, None, 100), (0, None, 1), (900, 300, 300), (None, 300, 300)],
)
def test_how_long_an_answer_may_be(asked: int | None, context: int | None, sent: int) -> None:
    clock = VirtualClock()
    backend = Scripted(clock)
    backend.sight = Sight(1, context, False)
    it = desk(clock, backend)

    async def main() -> None:
        await it.open_up()
        await it.read(inquiry(request(max_tokens=asked)))
        assert backend.jobs[0].max_tokens == sent
        await it.pool.stop()

    run(main(), clock)


def test_who_asks_for_no_token_gets_none() -> None:
    said = [
        Progress(5, 0, 5),
        ThinkingDelta("h"),
        TextDelta("x"),
        ToolStart("t", "n"),
        ToolDelta("{}"),
        ToolEnd(),
        DONE,
    ]

    async def main(it: Desk) -> None:
        it.backend.to_say.append(saying(*said))
        assert await it.read(inquiry(request(max_tokens=0))) == [said[0], DONE]
        assert slot(it) == ("warm", "agent", 11), "that is what one does it for"

    play(main)


# -- stop sequences and cut answers -------------------------------------------------------------------------


def test_after_a_stop_sequence_the_slot_is_free_only_when_the_backend_says_so() -> None:
    async def main(it: Desk) -> None:
        idle = asyncio.Event()
        it.backend.to_say.append(saying(*HELLO, whole=False))
        it.backend.to_settle.append(idle)
        assert text(await it.read(inquiry())) == "Hello", "the answer does not wait for that"
        await pass_time(5.0)
        assert it.busy() == [0]
        idle.set()
        await until(lambda: not it.busy())
        assert slot(it) == ("warm", "agent", 11)
        assert it.backend.looks == 1, "nothing failed"

    play(main)


def test_what_was_said_before_a_cut_counts_as_the_slots_content() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(held(asyncio.Event(), Progress(40, 0, 40), TextDelta("Hel"), DONE))
        with it.pool.open(inquiry()) as reader:
            await until(lambda: reader.generation.chunks)
        await until(lambda: not it.busy())
        assert it.backend.settled == [0]
        assert slot(it) == ("warm", "agent", 40)
        assert it.outcomes[0].error == "client_gone"

    play(main)


def test_what_was_cut_before_its_first_word_leaves_nothing_to_count_on() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(held(asyncio.Event(), Progress(40, 0, 10), DONE))
        with it.pool.open(inquiry()) as reader:
            await until(lambda: reader.generation.chunks)
        await until(lambda: not it.busy())
        assert slot(it) == ("free", None, 0)

    play(main)


# -- quotas -------------------------------------------------------------------------------------------------


def test_a_quota_stops_the_queue_before_the_slot_goes_to_another() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(failing("rate_limited", wait_s=10.0))
        await asyncio.gather(*(it.read(inquiry(f"Question {n}", f"agent {n}")) for n in range(4)))
        first, *later = it.backend.asked_at
        assert len(later) == 4 and min(later) >= first + 10.0

    play(main)


def test_a_call_that_met_a_quota_has_lost_its_place() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(failing("rate_limited", wait_s=10.0))
        with it.pool.open(inquiry()) as reader:
            await until(lambda: it.line.state == "paused")
            await pass_time(1.0)
            assert reader.generation.place is None, "its headers can still be a refusal"
            await read(reader)
            place = reader.generation.place
        assert place is not None and place.queue_ms >= 10_000
        assert it.outcomes[0].placed is not None
        assert it.outcomes[0].placed - it.outcomes[0].arrived >= 10.0

    play(main)


@pytest.mark.parametrize(
    ("wait_s", "paused_s"),
    [(0.001, PAUSE_MIN_S), (0.0, PAUSE_MIN_S), (None, RETRY_AFTER_S), (12.0, 12.0)],
)
def test_how_long_a_quota_pauses(wait_s: float | None, paused_s: float) -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.extend([failing("rate_limited", wait_s=wait_s)] * 2)
        await it.read(inquiry())
        one, two, three = it.backend.asked_at
        assert two - one == pytest.approx(paused_s, abs=0.01)
        assert three - two == pytest.approx(paused_s, abs=0.01)

    play(main)


def test_a_quota_that_outlasts_the_deadline_is_told_at_once() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(failing("rate_limited", wait_s=600.0))
        error = await failure_of(it)
        assert (error.code, error.wait_s) == ("rate_limited", 600.0)
        assert it.clock.now < 1.0 and len(it.backend.jobs) == 1

    play(main)


SPOKEN: list[tuple[str, list[Chunk]]] = [
    ("its event", [Verbatim("message_start", b"{}"), Progress(5, 0, 5)]),
    ("text", [TextDelta("Hel")]),
    ("thought", [ThinkingDelta("Hm")]),
    ("call", [ToolStart("t", "n")]),
]


@pytest.mark.parametrize("chunks", [c for _, c in SPOKEN], ids=[name for name, _ in SPOKEN])
def test_a_quota_after_the_first_word_is_not_asked_away(chunks: list[Chunk]) -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(failing("rate_limited", *chunks, wait_s=3.0))
        with it.pool.open(inquiry()) as reader, pytest.raises(ModelError, match="rate_limited"):
            await read(reader)
        assert len(it.backend.jobs) == 1
        assert reader.generation.chunks == chunks
        await until(lambda: not it.busy())
        assert it.backend.settled == [0]

    play(main)


def test_a_quota_after_mere_progress_is() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(failing("rate_limited", Progress(5, 0, 5), wait_s=3.0))
        assert text(await it.read(inquiry())) == "Hello"
        assert len(it.backend.jobs) == 2

    play(main)


# -- refusals and failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["backend_refused", "prompt_too_long", "unsupported_input", "unknown_model"])
def test_a_refusal_leaves_the_conversation_its_warm_slot(code: str) -> None:
    async def main(it: Desk) -> None:
        await it.read(inquiry())
        it.backend.to_say.append(failing(code))
        assert (await failure_of(it)).code == code
        assert slot(it) == ("warm", "agent", 11)
        assert it.backend.settled == [], "nothing ran"

    play(main)


def test_a_refusal_of_another_agent_leaves_the_content_to_whoever_comes() -> None:
    async def main(it: Desk) -> None:
        await it.read(inquiry())
        it.backend.to_say.append(failing("backend_refused"))
        with pytest.raises(ModelError):
            await it.read(inquiry("Other", "other"))
        assert slot(it) == ("free", None, 11)

    play(main)


@pytest.mark.parametrize("code", ["backend_failed", "backend_timeout", "overloaded"])
@pytest.mark.parametrize("spoken", [True, False])
def test_after_a_failure_the_slot_waits_and_the_backend_is_looked_at(code: str, spoken: bool) -> None:
    async def main(it: Desk) -> None:
        await it.read(inquiry())
        it.backend.to_say.append(failing(code, *([Progress(30, 0, 30), TextDelta("x")] if spoken else [])))
        assert (await failure_of(it)).code == code
        await until(lambda: not it.busy())
        assert it.backend.settled == [0] and it.backend.looks == 2
        assert slot(it) == (("warm", "agent", 30) if spoken else ("free", None, 0))

    play(main)


# -- fallbacks ----------------------------------------------------------------------------------------------


async def with_two(main: Callable[[Desk], Awaitable[None]], clock: VirtualClock) -> None:
    first, second = Scripted(clock, "first"), Scripted(clock, "second")
    it = desk(clock, first, second, names={"second": "second"}, fallbacks={"first": "second"})
    await it.open_up()
    await main(it)
    await it.pool.stop()


def test_a_fallback_takes_over_from_one_that_cannot_be_reached() -> None:
    async def main(it: Desk) -> None:
        it.backends["first"].to_say.append(failing("backend_unreachable"))
        assert text(await it.read(inquiry())) == "Hello"
        assert it.outcomes[0].backend == "second"
        assert len(it.backends["second"].jobs) == 1

    clock = VirtualClock()
    run(with_two(main, clock), clock)


def test_a_call_that_falls_back_has_lost_its_place() -> None:
    async def main(it: Desk) -> None:
        release = asyncio.Event()
        it.backends["first"].to_say.append(failing("backend_unreachable"))
        it.backends["second"].to_say.append(held(release))
        other = msgspec.structs.replace(request("Other"), model="second")
        running = asyncio.create_task(it.read(inquiry(other, "other")))
        await until(lambda: it.backends["second"].jobs)
        with it.pool.open(inquiry()) as reader:
            await until(lambda: it.lines["second"].snapshot()["queue"]["total"] == 1)
            assert reader.generation.place is None, "it waits again, and may be refused yet"
            release.set()
            await read(reader)
        await running

    clock = VirtualClock()
    run(with_two(main, clock), clock)


@pytest.mark.parametrize(
    ("code", "before"),
    [("backend_failed", ()), ("rate_limited", ()), ("backend_unreachable", (TextDelta("x"),))],
)
def test_no_other_failure_is_answered_by_a_fallback(code: str, before: tuple[Chunk, ...]) -> None:
    async def main(it: Desk) -> None:
        it.backends["first"].to_say.append(failing(code, *before, wait_s=600.0))
        assert (await failure_of(it)).code == code
        assert it.backends["second"].jobs == []

    clock = VirtualClock()
    run(with_two(main, clock), clock)


def test_when_the_fallback_is_away_too_that_is_told() -> None:
    async def main(it: Desk) -> None:
        for backend in it.backends.values():
            backend.to_say.append(failing("backend_unreachable"))
        assert (await failure_of(it)).code == "backend_unreachable"
        assert it.outcomes[0].backend == "second"

    clock = VirtualClock()
    run(with_two(main, clock), clock)


# -- being stopped ------------------------------------------------------------------------------------------


def test_a_stop_is_recorded_as_one() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(held(asyncio.Event()))
        asked = [asyncio.create_task(it.read(inquiry(f"Q{n}", f"agent {n}"))) for n in range(3)]
        await until(lambda: it.busy() and it.line.snapshot()["queue"]["total"] == 2)
        await it.pool.stop()
        said = await asyncio.gather(*asked, return_exceptions=True)
        assert {getattr(error, "code", None) for error in said} == {"stopping"}
        assert [outcome.error for outcome in it.outcomes] == ["stopping"] * 3

    play(main)


def test_who_leaves_while_the_gateway_says_goodbye_was_stopped() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(held(asyncio.Event()))
        with it.pool.open(inquiry()) as reader:
            await until(lambda: reader.generation.chunks)
            it.stopping = True
        await until(lambda: it.outcomes)
        assert it.outcomes[0].error == "stopping"

    play(main)


def test_a_stop_after_the_last_word_changes_nothing() -> None:
    async def main(it: Desk) -> None:
        with it.pool.open(inquiry()) as reader:
            await until(lambda: it.outcomes or reader.generation.chunks)
        await until(lambda: it.outcomes)
        assert it.outcomes[0].error in (None, "client_gone")
        assert (it.outcomes[0].error is None) == (it.outcomes[0].end is not None)

    play(main)


def test_a_call_that_is_stopped_before_it_ever_ran_is_recorded() -> None:
    async def main(it: Desk) -> None:
        with it.pool.open(inquiry()):
            pass
        await until(lambda: it.outcomes)
        assert it.outcomes[0].error == "client_gone" and it.outcomes[0].backend is None
        assert it.backend.jobs == []

    play(main)


# -- files of slots -----------------------------------------------------------------------------------------


def test_a_slot_is_saved_for_its_loser_and_restored_for_it() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(
            saying(Progress(900, 0, 900), TextDelta("x"), End("end_turn", Usage(900, 0, 1)))
        )
        await it.read(inquiry("Long", "one"))
        await it.read(inquiry("Short", "two"))
        assert it.backend.saved == [(0, 0)] and it.backend.restored == []
        it.backend.to_say.append(saying(TextDelta("x"), End("end_turn", Usage(1100, 1000, 1))))
        await it.read(inquiry(request("Long", "x", "More"), "one"))
        assert it.backend.restored == [(0, 0)]
        assert it.line.snapshot()["restores"]

    play(main, spill=True)


def test_a_restore_that_shows_nothing_is_not_believed_again() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(
            saying(Progress(900, 0, 900), TextDelta("x"), End("end_turn", Usage(900, 0, 1)))
        )
        await it.read(inquiry("Long", "one"))
        await it.read(inquiry("Short", "two"))
        it.backend.to_say.append(saying(TextDelta("x"), End("end_turn", Usage(1100, 0, 1))))
        await it.read(inquiry(request("Long", "x", "More"), "one"))
        assert it.backend.restored == [(0, 0)]
        assert not it.line.snapshot()["restores"]

    play(main, spill=True)


def test_a_file_that_cannot_be_restored_is_forgotten_and_others_are_still_believed() -> None:
    async def main(it: Desk) -> None:
        long = saying(Progress(900, 0, 900), TextDelta("x"), End("end_turn", Usage(900, 0, 1)))
        it.backend.to_say.append(long)
        await it.read(inquiry("Long", "one"))
        await it.read(inquiry("Short", "two"))
        it.backend.claims = 0
        await it.read(inquiry(request("Long", "x", "More"), "one"))
        await it.read(inquiry("Short", "two"))
        await it.read(inquiry(request("Long", "x", "More", "x", "Yet more"), "one"))
        assert it.backend.restored == [(0, 0)], "it is not there, so it is not asked for again"
        assert it.line.snapshot()["restores"]

    play(main, spill=True)


def test_a_second_attempt_does_not_answer_for_the_first_ones_restore() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(
            saying(Progress(900, 0, 900), TextDelta("x"), End("end_turn", Usage(900, 0, 1)))
        )
        await it.read(inquiry("Long", "one"))
        await it.read(inquiry("Short", "two"))
        it.backend.to_say.append(failing("rate_limited", wait_s=3.0))
        again = asyncio.create_task(it.read(inquiry(request("Long", "x", "More"), "one")))
        await until(lambda: it.line.state == "paused")
        it.line.schedule.forget_all()  # the server restarts meanwhile: nothing is cached, and rightly so
        await again
        assert it.backend.restored == [(0, 0)] and len(it.backend.jobs) == 4
        assert it.line.snapshot()["restores"]

    play(main, spill=True)


# -- what changed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "changed"),
    [(("Hi", "Hello", "More"), None), (("Hi there", "Hello", "More"), "message 1"), (("Hi",), None)],
)
def test_the_first_section_that_changed_is_told(turns: tuple[str, ...], changed: str | None) -> None:
    async def main(it: Desk) -> None:
        await it.read(inquiry())
        await it.read(inquiry(request(*turns)))
        assert [outcome.changed for outcome in it.outcomes] == [None, changed]

    play(main)


# -- a place, and what a job is -----------------------------------------------------------------------------


def test_a_backend_without_slots_has_no_slot_and_only_anthropics_passes_through() -> None:
    clock = VirtualClock()
    kinds = ("anthropic", "openai", "llamacpp")
    it = desk(
        clock, *(Scripted(clock, kind, kind=kind) for kind in kinds), names={kind: kind for kind in kinds}
    )

    async def place(kind: str) -> Place:
        asked = inquiry(request(), verbatim=b'{"model":"x"}', headers={"anthropic-beta": "b"})
        asked_for = inquiry(
            type(request())(kind, request().messages), verbatim=asked.verbatim, headers=asked.headers
        )
        with it.pool.open(asked_for) as reader:
            await read(reader)
            assert reader.generation.place is not None
            return reader.generation.place

    async def main() -> None:
        await it.open_up()
        assert await place("anthropic") == Place(None, 0, True)
        assert await place("openai") == Place(None, 0, False)
        assert await place("llamacpp") == Place(0, 0, False)
        assert it.backends["anthropic"].jobs[0].verbatim == b'{"model":"x"}'
        assert it.backends["llamacpp"].jobs[0].verbatim is None
        assert it.backends["anthropic"].jobs[0].headers == {"anthropic-beta": "b"}
        await it.pool.stop()

    run(main(), clock)


# -- memory -------------------------------------------------------------------------------------------------


async def read_or_fail(reader: Reader) -> None:
    with contextlib.suppress(ModelError):
        await read(reader)


class Headers(dict[str, str]):
    """Headers that can be watched; an `Inquiry` has no weak references of its own."""


BADLY = ("fails", "refused", "away", "stays away", "leaves", "times out", "quota")


@pytest.mark.parametrize("how", ["ends", *BADLY])
def test_a_call_that_is_over_is_forgotten_without_the_collector(how: str) -> None:
    answers = {
        "fails": failing("backend_failed", TextDelta("x")),
        "refused": failing("backend_refused"),
        "away": failing("backend_unreachable"),
        "leaves": held(asyncio.Event()),
        "quota": failing("rate_limited", wait_s=600.0),
        "ends": saying(*HELLO),
    }
    clock = VirtualClock()

    async def call(it: Desk) -> "weakref.ref[Headers]":
        headers = Headers({"x": "y"})
        asked = inquiry("Hi" * 100, headers=headers)
        with it.pool.open(asked) as reader:
            if how == "leaves":
                await until(lambda: reader.generation.chunks)
            else:
                await read_or_fail(reader)
        it.outcomes.clear()
        return weakref.ref(headers)

    async def main() -> None:
        it = desk(clock)
        await it.open_up()
        release = asyncio.Event()
        blocking = None
        if how == "times out":
            it.backend.to_say.append(held(release))
            blocking = asyncio.create_task(it.read(inquiry("Other", "other")))
            await until(it.busy)
        elif how == "stays away":
            it.backend.to_look.extend([ModelError("backend_unreachable", "gone")] * 1000)
            await it.line._lookout.look()
            await pass_time(0.1)  # the next look comes later, and has another error
        else:
            it.backend.to_say.append(answers[how])
        kept = await call(it)
        release.set()
        if blocking is not None:
            await blocking
        await until(lambda: not it.busy())
        await pass_time(0.05)
        it.backend.jobs.clear()
        it.outcomes.clear()
        assert kept() is None, gc.get_referrers(kept())
        await it.pool.stop()

    gc.collect()
    gc.disable()
    try:
        run(main(), clock)
    finally:
        gc.enable()
