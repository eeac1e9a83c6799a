import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_backend import (
    HELLO,
    QUEUE_TIMEOUT_S,
    Desk,
    Scripted,
    desk,
    failing,
    held,
    inquiry,
    read,
    request,
    text,
    until,
)
from virtual_time import VirtualClock, pass_time, run

from herdr.pool import pool as pool_module
from herdr.pool.canonical import canonical
from herdr.pool.failures import ModelError
from herdr.pool.names import Names
from herdr.pool.run import Inquiry


def play(main: Callable[[Desk], Awaitable[None]], *backends: Callable[[VirtualClock], Scripted]) -> None:
    clock = VirtualClock()
    it = desk(clock, *(make(clock) for make in backends))

    async def whole() -> None:
        await it.open_up()
        await main(it)
        await it.pool.stop()
        assert not it.pool._all and not it.pool._under_way

    run(whole(), clock)


def anthropic(clock: VirtualClock) -> Scripted:
    return Scripted(clock, "cloud", 4, kind="anthropic")


async def generations(it: Desk, one: Inquiry, other: Inquiry) -> int:
    """How many answers two inquiries make that come one after the other, while the first one runs."""
    release = asyncio.Event()
    it.backend.to_say.extend([held(release), held(release)])
    first = asyncio.create_task(it.read(one))
    await until(lambda: len(it.backend.jobs) == 1)
    second = asyncio.create_task(it.read(other))
    await pass_time(0.05)
    release.set()
    for chunks in await asyncio.gather(first, second):
        assert text(chunks) == "Hello"
    return len(it.outcomes)


# -- joining ------------------------------------------------------------------------------------------------

COLD = request("Hi", temperature=0.0)
WARM = request("Hi", temperature=0.8, stream=True)
WHOLE = request("Hi", temperature=0.8, stream=False)


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        (inquiry(COLD, "a"), inquiry(COLD, "b"), True),
        (inquiry(COLD, None), inquiry(COLD, None), True),
        (inquiry(COLD, "a"), inquiry(request("Ho", temperature=0.0), "a"), False),
        (inquiry(WARM, "a"), inquiry(WARM, "a"), False),
        (inquiry(WARM, "a"), inquiry(WARM, "a", retry=True), True),
        (inquiry(WARM, "a"), inquiry(WARM, "b", retry=True), False),
        (inquiry(WARM, None), inquiry(WARM, None, retry=True), False),
        # Claude Code asks again without streaming when a stream fails, and marks that in no way
        (inquiry(WARM, "a"), inquiry(WHOLE, "a"), True),
        (inquiry(WARM, "a"), inquiry(WHOLE, "b"), False),
        (inquiry(WHOLE, "a"), inquiry(WHOLE, "a"), False),
        (inquiry(WHOLE, "a"), inquiry(WARM, "a"), False),
    ],
)
def test_who_shares_an_answer(one: Inquiry, other: Inquiry, joined: bool) -> None:
    async def main(it: Desk) -> None:
        assert await generations(it, one, other) == (1 if joined else 2)

    play(main, lambda clock: Scripted(clock, total=2))


BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "temperature": 0,
    "max_tokens": 5,
}


@pytest.mark.parametrize(
    ("changes", "headers", "joined"),
    [
        ({}, {}, True),
        ({"stream": True}, {}, True),
        ({"metadata": {"user_id": "u"}}, {}, True),
        ({}, {"user-agent": "another"}, True),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {}, False),
        ({"service_tier": "auto"}, {}, False),
        ({"container": "c"}, {}, False),
        ({"context_management": {}}, {}, False),
        ({}, {"anthropic-beta": "new"}, False),
        ({}, {"anthropic-version": "2099-01-01"}, False),
    ],
)
def test_what_passes_through_is_shared_only_where_nothing_that_counts_differs(
    changes: dict[str, Any], headers: dict[str, str], joined: bool
) -> None:
    async def main(it: Desk) -> None:
        one = inquiry(COLD, "a", verbatim=json.dumps(BODY).encode())
        other = inquiry(COLD, "b", verbatim=json.dumps({**BODY, **changes}).encode(), headers=headers)
        assert await generations(it, one, other) == (1 if joined else 2)

    play(main, anthropic)


def test_elsewhere_only_the_prompt_and_its_terms_count() -> None:
    async def main(it: Desk) -> None:
        one = inquiry(COLD, "a", verbatim=json.dumps(BODY).encode())
        other = inquiry(COLD, "b", verbatim=json.dumps({**BODY, "service_tier": "auto"}).encode())
        assert await generations(it, one, other) == 1

    play(main, lambda clock: Scripted(clock, total=2))


def test_joining_raises_the_priority_of_the_one_that_waits() -> None:
    async def main(it: Desk) -> None:
        release = asyncio.Event()
        it.backend.to_say.append(held(release))
        running = asyncio.create_task(it.read(inquiry("Other", "other")))
        await until(it.busy)
        order: list[str] = []

        async def ask(name: str, asked: Inquiry) -> None:
            await it.read(asked)
            order.append(name)

        nine = asyncio.create_task(ask("nine", inquiry(COLD, "a", priority=9)))
        five = asyncio.create_task(ask("five", inquiry("Five", "b", priority=5)))
        await until(lambda: it.line.snapshot()["queue"]["by_priority"] == {"5": 1, "9": 1})
        zero = asyncio.create_task(ask("zero", inquiry(COLD, "c", priority=0)))
        await until(lambda: it.line.snapshot()["queue"]["by_priority"] == {"0": 1, "5": 1})
        release.set()
        await asyncio.gather(running, nine, five, zero)
        assert order[2] == "five" and set(order[:2]) == {"nine", "zero"}
        assert len(it.outcomes) == 3

    play(main)


def test_nobody_joins_what_is_given_up() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(held(asyncio.Event()))
        with it.pool.open(inquiry(COLD)):
            await until(it.busy)
        assert text(await it.read(inquiry(COLD))) == "Hello"
        assert [outcome.error for outcome in it.outcomes] == ["client_gone", None]

    play(main)


def test_an_answer_goes_on_until_its_last_reader_leaves() -> None:
    async def main(it: Desk) -> None:
        release = asyncio.Event()
        it.backend.to_say.append(held(release))
        with it.pool.open(inquiry(COLD)):
            await until(it.busy)
            staying = asyncio.create_task(it.read(inquiry(COLD, "b")))
            await pass_time(0)
        await pass_time(1.0)
        assert it.busy() and not it.outcomes
        release.set()
        assert await staying == list(HELLO)

    play(main)


# -- asking again -------------------------------------------------------------------------------------------


def test_who_was_turned_away_has_its_old_place_when_it_comes_back() -> None:
    async def main(it: Desk) -> None:
        release = asyncio.Event()
        it.backend.to_say.append(held(release))
        running = asyncio.create_task(it.read(inquiry("Other", "other")))
        await until(it.busy)
        with pytest.raises(ModelError) as told:
            await it.read(inquiry("Mine", "patient"))
        assert told.value.code == "queue_timeout"
        newer = asyncio.create_task(it.read(inquiry("New", "newcomer")))
        await until(lambda: it.line.snapshot()["queue"]["total"] == 1)
        again = asyncio.create_task(it.read(inquiry("Mine", "patient")))
        await until(lambda: it.line.snapshot()["queue"]["total"] == 2)
        release.set()
        await asyncio.gather(running, newer, again)
        asked = [job.request.messages[-1].parts[0] for job in it.backend.jobs]
        assert [part.text for part in asked] == ["Other", "Mine", "New"]  # type: ignore[union-attr]
        arrived = {o.inquiry.caller.agent: o.over - o.arrived for o in it.outcomes if o.error is None}
        assert arrived["patient"] < QUEUE_TIMEOUT_S, "its record counts from this attempt"

    play(main)


@pytest.mark.parametrize(("agent", "waits_s"), [("another", 0.0), ("patient", 200.0)])
def test_nobody_else_has_it_and_not_for_ever(agent: str, waits_s: float) -> None:
    async def main(it: Desk) -> None:
        release = asyncio.Event()
        it.backend.to_say.append(held(release))
        running_other = asyncio.create_task(it.read(inquiry("Other", "other")))
        await until(it.busy)
        with pytest.raises(ModelError, match="no slot"):
            await it.read(inquiry("Mine", "patient"))
        release.set()
        await running_other
        await pass_time(1.0 + waits_s)
        with it.pool.open(inquiry("Mine", agent)) as reader:
            (running,) = it.pool._all
            assert running.run.terms.ordered_by == running.run.terms.arrived == it.clock.now
            await read(reader)

    play(main)


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "RETRIES_KEPT", 3)

    async def main(it: Desk) -> None:
        release = asyncio.Event()
        it.backend.to_say.append(held(release))
        running = asyncio.create_task(it.read(inquiry("Other", "other")))
        await until(it.busy)
        asked = [it.read(inquiry(f"Q{n}", f"agent {n}")) for n in range(5)]
        assert all(isinstance(e, ModelError) for e in await asyncio.gather(*asked, return_exceptions=True))
        assert len(it.pool._turned_away) == 3
        release.set()
        await running

    play(main)


# -- the rest -----------------------------------------------------------------------------------------------


def test_without_a_backend_there_is_no_model() -> None:
    it = desk(VirtualClock())
    it.pool.names = Names({}, [])
    with pytest.raises(ModelError, match=r"models\.backends") as told, it.pool.open(inquiry()):
        pass
    assert told.value.code == "unknown_model"


def test_after_a_stop_nobody_is_let_in() -> None:
    async def main(it: Desk) -> None:
        await it.pool.stop()
        with pytest.raises(ModelError, match="stopping"), it.pool.open(inquiry()):
            pass

    play(main)


def test_tokens_are_counted_by_the_backend_or_estimated() -> None:
    async def main(it: Desk) -> None:
        asked = canonical(request("word " * 400)).request
        estimate = await it.pool.count(asked)
        assert 200 <= estimate <= 1000
        it.backend.to_count = 77
        assert await it.pool.count(asked) == 77
        it.backend.to_count = ModelError("backend_failed", "no")
        assert await it.pool.count(asked) == estimate
        it.backend.to_look.append(ModelError("backend_unreachable", "gone"))
        await it.line._lookout.look()
        it.backend.to_count = 77
        assert await it.pool.count(asked) == estimate, "one that is away is not asked"

    play(main)


def test_models_are_the_names_and_the_backends_once() -> None:
    clock = VirtualClock()
    backends = [Scripted(clock, name) for name in ("local", "cloud")]
    it = desk(clock, *backends, names={"gpt-*": "cloud", "big": "cloud", "local": "local"})
    assert it.pool.models() == ["big", "local", "cloud"]
    assert it.pool.snapshot()["names"] == {"gpt-*": "cloud", "big": "cloud", "local": "local"}


def test_troubles_name_no_address() -> None:
    async def main(it: Desk) -> None:
        assert it.pool.troubles == []
        it.backend.to_look.extend([ModelError("backend_unreachable", f"{it.backend.url} is gone")] * 9)
        await it.line._lookout.look()
        assert it.pool.troubles == ["the backend local is unreachable"]
        assert it.backend.url in it.pool.snapshot()["backends"][0]["detail"], "who may see the pool sees why"

    play(main)


def test_a_stop_waits_for_every_record() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.extend([held(asyncio.Event()), failing("backend_failed")])
        asked = [asyncio.create_task(it.read(inquiry(f"Q{n}", f"agent {n}"))) for n in range(3)]
        await until(it.busy)
        await it.pool.stop()
        assert len(it.outcomes) == 3
        await asyncio.gather(*asked, return_exceptions=True)

    play(main)
