import asyncio
from collections.abc import Awaitable, Callable

import pytest
from scripted_backend import Scripted, until
from virtual_time import VirtualClock, pass_time, run

from herdr.pool.backend import Sight
from herdr.pool.failures import ModelError
from herdr.pool.lookout import LOOK_AGAIN_S, RETRY_MAX_S, Lookout

AWAY = ModelError("backend_unreachable", "no connection")
LOADING = ModelError("overloaded", "it loads", 5.0)
SLOW = ModelError("backend_timeout", "too slow")


class Watched:
    """A lookout, and what it told."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.backend = Scripted(self.clock, total=2)
        self.lookout = Lookout(self.backend, self.clock)
        self.found: list[bool] = []
        self.lost: list[str] = []

    def start(self) -> None:
        self.lookout.start(self.found.append, lambda error: self.lost.append(error.code))

    async def ready(self) -> None:
        await until(lambda: self.lookout.state == "ready")


def play(main: Callable[[Watched], Awaitable[None]]) -> None:
    """Run a test, and stop the lookout after it."""
    it = Watched()

    async def whole() -> None:
        await main(it)
        await it.lookout.stop()

    run(whole(), it.clock)


def test_a_backend_is_starting_until_it_was_seen() -> None:
    async def main(it: Watched) -> None:
        assert it.lookout.state == "starting"
        it.start()
        await it.ready()
        assert it.lookout.sight.total == 2 and it.found == [True]

    play(main)


def test_it_is_looked_for_until_it_is_there_and_then_no_more() -> None:
    async def main(it: Watched) -> None:
        it.backend.to_look.extend([AWAY] * 5)
        it.start()
        await until(lambda: it.backend.looks == 1 and it.lookout.state == "unreachable")
        assert it.lookout.trouble is not None and it.lookout.trouble.detail == "no connection"
        await it.ready()
        assert it.lookout.trouble is None
        assert it.backend.looks == 6 and it.lost == ["backend_unreachable"] * 5
        before = it.clock.now
        await pass_time(100.0)
        assert it.backend.looks == 6
        assert before < 6 * RETRY_MAX_S

    play(main)


def test_one_that_was_away_and_now_loads_is_starting() -> None:
    async def main(it: Watched) -> None:
        it.backend.to_look.extend([AWAY, LOADING, LOADING])
        it.start()
        await until(lambda: it.lookout.state == "unreachable")
        await until(lambda: it.lookout.state == "starting")
        assert it.lookout.trouble is None, "calls may wait for it"
        await it.ready()
        assert it.lost == ["backend_unreachable"]

    play(main)


def test_a_slow_answer_of_one_that_was_ready_is_no_news() -> None:
    async def main(it: Watched) -> None:
        it.start()
        await it.ready()
        it.backend.to_look.append(SLOW)
        await it.lookout.look()
        assert it.lookout.state == "ready" and it.lost == [] and it.found == [True]

    play(main)


def test_a_slow_answer_of_one_that_was_never_seen_is_trouble() -> None:
    async def main(it: Watched) -> None:
        it.backend.to_look.append(SLOW)
        it.start()
        await until(lambda: it.lookout.state == "unreachable")
        await it.ready()

    play(main)


def test_a_ready_one_that_fails_is_watched_until_it_is_back() -> None:
    async def main(it: Watched) -> None:
        it.start()
        await it.ready()
        it.backend.to_look.extend([AWAY, AWAY])
        await it.lookout.look()
        assert it.lookout.state == "unreachable"
        await it.ready()
        assert it.backend.looks == 4 and it.found == [True, True]

    play(main)


@pytest.mark.parametrize(
    ("sight", "is_new"),
    [
        (Sight(2, None, False), False),
        (Sight(2, 4096, True), False),
        (Sight(3, None, False), True),
        (Sight(2, None, False, restarted=True), True),
    ],
)
def test_what_makes_its_slots_new(sight: Sight, is_new: bool) -> None:
    async def main(it: Watched) -> None:
        it.start()
        await it.ready()
        it.backend.to_look.append(sight)
        await it.lookout.look()
        assert it.found == [True, is_new]
        assert it.lookout.sight == sight

    play(main)


def test_silence_begins_when_it_was_heard_last() -> None:
    async def main(it: Watched) -> None:
        assert not it.lookout.is_silent(), "it was never ready"
        it.start()
        await it.ready()
        assert not it.lookout.is_silent()
        await pass_time(LOOK_AGAIN_S + 0.1)
        assert it.lookout.is_silent()
        it.lookout.heard()
        assert not it.lookout.is_silent()

    play(main)


def test_a_cloud_is_never_silent() -> None:
    clock = VirtualClock()

    async def main() -> None:
        backend = Scripted(clock, kind="openai")
        lookout = Lookout(backend, clock)
        lookout.start(lambda is_new: None, lambda error: None)
        await until(lambda: lookout.state == "ready")
        await pass_time(1000.0)
        assert not lookout.is_silent()
        await lookout.stop()

    run(main(), clock)


def test_looks_wait_for_each_other_and_the_later_ones_may_not_be_needed_any_more() -> None:
    async def main(it: Watched) -> None:
        it.start()
        await it.ready()
        await pass_time(LOOK_AGAIN_S + 0.1)
        await asyncio.gather(*(it.lookout.look(it.lookout.is_silent) for _ in range(20)))
        assert it.backend.looks == 2
        await asyncio.gather(*(it.lookout.look() for _ in range(3)))
        assert it.backend.looks == 5, "who does not ask has its look"

    play(main)


def test_a_stop_ends_the_watch() -> None:
    async def main(it: Watched) -> None:
        it.backend.to_look.extend([AWAY] * 1000)
        it.start()
        await pass_time(10.0)
        await it.lookout.stop()
        looks = it.backend.looks
        await pass_time(100.0)
        assert it.backend.looks == looks

    play(main)
