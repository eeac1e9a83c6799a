import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_backend import QUEUE_TIMEOUT_S, Scripted, line_to, until
from virtual_time import VirtualClock, pass_time, run

from herdr.pool import line as line_module
from herdr.pool.backend import Sight
from herdr.pool.failures import ModelError
from herdr.pool.line import SETTLE_AGAIN_S
from herdr.pool.lookout import LOOK_AGAIN_S
from herdr.pool.schedule import Ask, Start

CHAIN = (b"system", b"tools", b"one")
AWAY = ModelError("backend_unreachable", "no connection")
LOADING = ModelError("overloaded", "it loads", 5.0)
SLOW = ModelError("backend_timeout", "too slow")


class Counter:
    """A line, and who asks at it."""

    def __init__(self, total: int = 1, **schedule: Any) -> None:
        self.clock = VirtualClock()
        self.backend = Scripted(self.clock, total=total)
        self.line = line_to(self.backend, self.clock, **schedule)
        self.numbers = 0

    async def ready(self) -> None:
        self.line.start()
        await until(lambda: self.line.state == "ready")

    def ask(
        self, agent: str = "a", priority: int = 5, call: str = "", wait_s: float = QUEUE_TIMEOUT_S
    ) -> Ask:
        self.numbers += 1
        now = self.clock.now
        return Ask(
            call=call or f"call {self.numbers}",
            route="primary_agent",
            priority=priority,
            agent=agent,
            prefix="p",
            chain=(*CHAIN, agent.encode()),
            arrived=now,
            deadline=now + wait_s,
            side=False,
        )

    def entering(self, *args: Any, **more: Any) -> "asyncio.Task[Start]":
        return asyncio.create_task(self.line.enter(self.ask(*args, **more)))

    def slots(self) -> list[tuple[str, str | None, int]]:
        """State, agent and tokens of each slot."""
        seen = self.line.schedule.snapshot(self.clock.now).slots
        return [(view.state, view.agent, view.cached_tokens) for view in seen]

    def queue(self) -> int:
        return int(self.line.snapshot()["queue"]["total"])


def play(main: Callable[[Counter], Awaitable[None]], total: int = 1, **schedule: Any) -> None:
    it = Counter(total, **schedule)

    async def whole() -> None:
        await it.ready()
        await main(it)
        assert it.line.snapshot()["running"] == 0
        assert not it.line._waiting
        await it.line.stop()

    run(whole(), it.clock)


def test_a_call_gets_a_free_slot_at_once_and_the_next_one_waits() -> None:
    async def main(it: Counter) -> None:
        first = await it.line.enter(it.ask("a"))
        second = it.entering("b")
        await until(lambda: it.queue() == 1)
        assert it.line.snapshot()["running"] == 1
        it.line.leave(first, CHAIN, 50)
        start = await second
        assert start.slot == first.slot
        it.line.leave(start, CHAIN, 50)

    play(main)


def test_before_the_first_look_nobody_is_called_up() -> None:
    it = Counter()

    async def main() -> None:
        waiting = it.entering()
        await pass_time(1.0)
        assert not waiting.done() and it.line.state == "starting"
        it.line.start()
        it.line.leave(await waiting, None, 0)
        await it.line.stop()

    run(main(), it.clock)


def test_who_waits_too_long_is_told_when_to_come_back() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        with pytest.raises(ModelError, match="no slot of the backend local was free for 30 s") as told:
            await it.line.enter(it.ask("b"))
        assert it.clock.now >= QUEUE_TIMEOUT_S
        assert told.value.code == "queue_timeout" and told.value.retry_after_s is not None
        it.line.leave(start, CHAIN, 0)

    play(main)


def test_why_it_waited() -> None:
    it = Counter()

    async def main() -> None:
        with pytest.raises(ModelError, match="was not ready for 30 s"):
            await it.line.enter(it.ask())
        await it.line.stop()

    run(main(), it.clock)


def test_the_line_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "WAITING_MAX", 2)

    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        waiting = [it.entering("b"), it.entering("c")]
        await until(lambda: it.queue() == 2)
        with pytest.raises(ModelError, match="2 calls wait") as told:
            await it.line.enter(it.ask("d"))
        assert told.value.code == "overloaded" and told.value.retry_after_s is not None
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        it.line.leave(start, CHAIN, 0)

    play(main)


# -- leaving ------------------------------------------------------------------------------------------------


def test_who_leaves_the_queue_is_not_called_up() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        gone, stays = it.entering("b"), it.entering("c")
        await until(lambda: it.queue() == 2)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert it.queue() == 1
        it.line.leave(start, CHAIN, 0)
        it.line.leave(await stays, CHAIN, 0)

    play(main)


def test_who_leaves_in_the_turn_in_which_it_is_called_up_gives_its_place_back() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        gone = it.entering("b")
        await until(lambda: it.queue() == 1)
        it.line.leave(start, CHAIN, 70)  # b is called up, and has not heard of it
        assert it.line.snapshot()["running"] == 1
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert gone.cancelled()
        assert it.line.snapshot()["running"] == 0
        assert it.slots() == [("free", None, 70)], "what a left there is there still"
        it.line.leave(await it.line.enter(it.ask("c")), None, 0)

    play(main)


def test_who_left_just_before_it_is_called_up_gives_its_place_to_the_next() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        gone, stays = it.entering("b"), it.entering("c")
        await until(lambda: it.queue() == 2)
        gone.cancel()  # its future is cancelled, and its task has not run
        it.line.leave(start, CHAIN, 70)
        it.line.leave(await stays, CHAIN, 0)
        await asyncio.gather(gone, return_exceptions=True)
        assert gone.cancelled()

    play(main)


def test_a_place_that_is_given_back_holds_what_it_held() -> None:
    async def main(it: Counter) -> None:
        it.line.leave(await it.line.enter(it.ask("a")), CHAIN, 70)
        again = await it.line.enter(it.ask("a"))
        assert again.shared == len(CHAIN)
        it.line.give_back(again)
        assert it.slots() == [("warm", "a", 70)]

    play(main)


# -- cut generations ----------------------------------------------------------------------------------------


def test_a_cut_generation_holds_its_slot_until_the_backend_says_that_it_is_idle() -> None:
    async def main(it: Counter) -> None:
        idle = asyncio.Event()
        it.backend.to_settle.append(idle)
        start = await it.line.enter(it.ask("a"))
        it.line.leave_when_idle(start, CHAIN, 30, failed=False)
        waiting = it.entering("b")
        await until(lambda: it.queue() == 1)
        await pass_time(5.0)
        assert not waiting.done() and it.slots()[0][0] == "busy"
        idle.set()
        it.line.leave(await waiting, None, 0)
        assert it.backend.settled == [0]

    play(main)


@pytest.mark.parametrize("error", [SLOW, LOADING, ModelError("backend_failed", "500")])
def test_a_backend_that_cannot_say_is_asked_again(error: ModelError) -> None:
    async def main(it: Counter) -> None:
        it.backend.to_settle.extend([error] * 4)
        start = await it.line.enter(it.ask("a"))
        began = it.clock.now
        it.line.leave_when_idle(start, CHAIN, 30, failed=False)
        await until(lambda: len(it.backend.settled) == 4)
        assert it.slots()[0][0] == "busy", "it may still generate"
        await until(lambda: it.slots()[0][0] != "busy")
        assert it.backend.settled == [0] * 5
        assert it.clock.now - began >= 4 * SETTLE_AGAIN_S
        assert it.slots() == [("warm", "a", 30)]

    play(main)


def test_nothing_runs_on_a_backend_that_is_gone() -> None:
    async def main(it: Counter) -> None:
        it.backend.to_settle.append(AWAY)
        start = await it.line.enter(it.ask("a"))
        looks = it.backend.looks
        it.line.leave_when_idle(start, CHAIN, 30, failed=False)
        await until(lambda: it.slots()[0][0] != "busy")
        assert it.backend.settled == [0]
        assert it.backend.looks == looks + 1, "it may be another one now"
        assert it.slots() == [("free", None, 0)], "its content is unknown"

    play(main)


@pytest.mark.parametrize(("failed", "looks"), [(True, 1), (False, 0)])
def test_after_a_failure_of_the_backend_it_is_looked_at(failed: bool, looks: int) -> None:
    async def main(it: Counter) -> None:
        before = it.backend.looks
        start = await it.line.enter(it.ask("a"))
        it.line.leave_when_idle(start, CHAIN, 30, failed=failed)
        await until(lambda: it.slots()[0][0] != "busy")
        assert it.backend.looks - before == looks

    play(main)


def test_a_stop_does_not_wait_for_what_does_not_settle() -> None:
    it = Counter()

    async def main() -> None:
        await it.ready()
        it.backend.to_settle.append(asyncio.Event())
        it.line.leave_when_idle(await it.line.enter(it.ask("a")), CHAIN, 30, failed=False)
        waiting = it.entering("b")
        await until(lambda: it.queue() == 1)
        await it.line.stop()
        with pytest.raises(ModelError, match="stopping"):
            await waiting

    run(main(), it.clock)


# -- the backend's state ------------------------------------------------------------------------------------


def test_calls_after_a_silence_look_once() -> None:
    async def main(it: Counter) -> None:
        await pass_time(LOOK_AGAIN_S + 0.1)
        looks = it.backend.looks
        for start in await asyncio.gather(*(it.entering(f"agent {n}") for n in range(20))):
            it.line.leave(start, None, 0)
        assert it.backend.looks == looks + 1

    play(main, total=20)


def test_while_a_call_runs_there_is_no_silence() -> None:
    async def main(it: Counter) -> None:
        running = await it.line.enter(it.ask("a"))
        looks = it.backend.looks
        await pass_time(10 * LOOK_AGAIN_S)
        it.line.leave(await it.line.enter(it.ask("b")), None, 0)
        it.line.leave(running, None, 0)
        assert it.backend.looks == looks

    play(main, total=2)


def test_calls_wait_for_a_backend_that_was_away_and_loads_now() -> None:
    async def main(it: Counter) -> None:
        it.backend.to_look.extend([AWAY, LOADING, LOADING, LOADING])
        await pass_time(LOOK_AGAIN_S + 0.1)
        with pytest.raises(ModelError, match="no connection"):
            await it.line.enter(it.ask())
        await until(lambda: it.line.state == "starting")
        it.line.leave(await it.line.enter(it.ask()), None, 0)
        assert it.line.state == "ready"

    play(main)


def test_who_waits_is_told_at_once_that_the_backend_is_gone() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        waiting = [it.entering("b"), it.entering("c")]
        await until(lambda: it.queue() == 2)
        it.backend.to_look.append(AWAY)
        it.line.leave_when_idle(start, None, 0, failed=True)
        said = await asyncio.gather(*waiting, return_exceptions=True)
        assert [getattr(error, "code", None) for error in said] == ["backend_unreachable"] * 2
        assert said[0] is not said[1], "one that is raised twice drags all its frames along"
        await until(lambda: it.line.state == "ready")

    play(main)


def test_a_restart_makes_every_slot_cold() -> None:
    async def main(it: Counter) -> None:
        it.line.leave(await it.line.enter(it.ask("a")), CHAIN, 70)
        assert it.slots() == [("warm", "a", 70)]
        it.backend.to_look.append(Sight(1, None, False, restarted=True))
        await pass_time(LOOK_AGAIN_S + 0.1)
        start = await it.line.enter(it.ask("a"))
        assert start.shared == 0
        it.line.leave(start, CHAIN, 10)

    play(main)


def test_other_slots_are_taken_as_they_are() -> None:
    async def main(it: Counter) -> None:
        it.backend.sight = Sight(3, 4096, False)
        await pass_time(LOOK_AGAIN_S + 0.1)
        starts = [await it.line.enter(it.ask(f"agent {n}")) for n in range(3)]
        assert sorted(start.slot for start in starts) == [0, 1, 2]
        assert it.line.context == 4096
        for start in starts:
            it.line.leave(start, None, 0)

    play(main)


# -- priority and pause -------------------------------------------------------------------------------------


def test_who_is_promoted_comes_first() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        five, nine = it.entering("b", 5), it.entering("c", 9, call="nine")
        await until(lambda: it.queue() == 2)
        it.line.promote("nine", 0)
        it.line.leave(start, None, 0)
        it.line.leave(await nine, None, 0)
        assert not five.done()
        it.line.leave(await five, None, 0)

    play(main)


def test_a_pause_starts_nothing_and_ends_by_itself() -> None:
    async def main(it: Counter) -> None:
        it.line.pause(7.0)
        paused_at = it.clock.now
        assert it.line.state == "paused" and it.line.snapshot()["paused_s"] == 7.0
        it.line.leave(await it.line.enter(it.ask()), None, 0)
        assert it.clock.now == pytest.approx(paused_at + 7.0)
        assert it.line.state == "ready"

    play(main)


def test_who_cannot_outwait_a_pause_is_told_at_once() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        short, long = it.entering("b", wait_s=30.0), it.entering("c", wait_s=90.0)
        await until(lambda: it.queue() == 2)
        it.line.pause(60.0)
        with pytest.raises(ModelError, match="asks everybody to wait for 60 s more") as told:
            await short
        assert told.value.code == "rate_limited" and told.value.wait_s == pytest.approx(60.0)
        with pytest.raises(ModelError, match="asks everybody to wait"):
            await it.line.enter(it.ask("d"))
        assert it.clock.now < 1.0 and it.queue() == 1
        it.line.leave(start, None, 0)
        it.line.leave(await long, None, 0)
        assert it.clock.now >= 60.0

    play(main)


def test_what_the_pool_shows_of_it() -> None:
    async def main(it: Counter) -> None:
        start = await it.line.enter(it.ask("a"))
        waiting = it.entering("b", 9)
        await until(lambda: it.queue() == 1)
        shown = it.line.snapshot()
        assert (shown["name"], shown["kind"], shown["state"], shown["detail"]) == (
            "local",
            "llamacpp",
            "ready",
            None,
        )
        assert (shown["running"], shown["concurrency"]) == (1, 1)
        assert shown["queue"] == {"total": 1, "by_priority": {"9": 1}}
        assert shown["slots"][0]["agent"] == "a" and shown["slots"][0]["call"] == "call 1"
        it.line.leave(start, CHAIN, 5)
        it.line.leave(await waiting, CHAIN, 5)
        assert it.line.snapshot()["slots"][0]["idle_s"] == 0.0

    play(main)


def test_a_backend_without_slots_shows_none() -> None:
    clock = VirtualClock()

    async def main() -> None:
        line = line_to(Scripted(clock, kind="openai", total=4), clock)
        line.start()
        await until(lambda: line.state == "ready")
        assert line.snapshot()["slots"] == [] and line.snapshot()["concurrency"] == 4
        assert not line.snapshot()["restores"]
        await line.stop()

    run(main(), clock)
