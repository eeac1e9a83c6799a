"""Questions beside each other all wait for what was reported before them."""

import asyncio
from collections.abc import Iterable
from typing import cast

from virtual_time import VirtualClock

from herdr.context.watch.watcher import Watcher
from herdr.sharing.looking import DIRTY_MAX, Looking


class FakeWatcher:
    """A watcher whose looks end when the test says so."""

    root = "/tree"

    def __init__(self) -> None:
        self.verified_at = 0.0
        self.asked: list[tuple[set[str], float]] = []
        self.seen = asyncio.Event()

    async def verify(self, paths: Iterable[str], max_age_s: float) -> None:
        self.asked.append((set(paths), max_age_s))
        await self.seen.wait()


async def begun(*tasks: "asyncio.Task[None]") -> None:
    await asyncio.wait(tasks, timeout=0)
    for _ in range(5):
        await asyncio.sleep(0)


def looking(watcher: FakeWatcher, clock: VirtualClock | None = None) -> Looking:
    return Looking(cast(Watcher, watcher), 60.0, clock or VirtualClock())


async def test_a_second_question_waits_for_the_look_that_the_first_began() -> None:
    watcher = FakeWatcher()
    watcher.verified_at = 1e9
    one = looking(watcher)
    one.report("a.py")
    questions = [asyncio.create_task(one.done()) for _ in range(2)]
    await begun(*questions)
    assert [question.done() for question in questions] == [False, False]
    watcher.seen.set()
    await asyncio.gather(*questions)
    assert watcher.asked == [({"/tree/a.py"}, 60.0)]


async def test_a_look_goes_on_when_its_question_is_given_up() -> None:
    watcher = FakeWatcher()
    watcher.verified_at = 1e9
    one = looking(watcher)
    one.report("a.py")
    first = asyncio.create_task(one.done())
    await begun(first)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.create_task(one.done())
    await begun(second)
    assert not second.done()
    watcher.seen.set()
    await second
    assert len(watcher.asked) == 1


async def test_nothing_reported_and_a_recent_look_cost_nothing() -> None:
    watcher = FakeWatcher()
    watcher.verified_at = 1e9
    await looking(watcher).done()
    assert watcher.asked == []


async def test_an_old_look_is_made_anew_once_for_all_that_ask() -> None:
    watcher = FakeWatcher()
    watcher.verified_at = -1e9
    one = looking(watcher)
    questions = [asyncio.create_task(one.done()) for _ in range(20)]
    await begun(*questions)
    watcher.seen.set()
    await asyncio.gather(*questions)
    assert watcher.asked == [(set(), 60.0)]


async def test_too_many_reports_have_everything_looked_at() -> None:
    watcher = FakeWatcher()
    watcher.verified_at = 1e9
    watcher.seen.set()
    one = looking(watcher)
    for number in range(DIRTY_MAX + 100):
        one.report(f"{number}.py")
    await one.done()
    ((paths, max_age_s),) = watcher.asked
    assert (len(paths), max_age_s) == (DIRTY_MAX, 0.0)


async def test_a_watcher_that_ends_gives_its_questions_up_to_nobody() -> None:
    watcher = FakeWatcher()
    watcher.verified_at = 1e9

    async def ended(paths: Iterable[str], max_age_s: float) -> None:
        raise asyncio.CancelledError

    watcher.verify = ended  # type: ignore[method-assign]
    one = looking(watcher)
    one.report("a.py")
    await one.done()  # whoever is asked next knows that the workspace is gone
