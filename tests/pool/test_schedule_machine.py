"""Any history of a schedule, watched by a model that only knows the rules and is too simple to be fast."""

import random
from collections import Counter
from math import floor

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from herdr.pool import chain as chains
from herdr.pool.schedule import Ask, Conversation, Schedule, Start

AGEING_S, AFFINITY_S, IDLE_S, TIMEOUT_S = 3.0, 2.0, 300.0, 30.0
STEPS = 10_000
PRIORITIES = st.integers(0, 9)
WAITS_S = st.sampled_from([0.0, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 3.0, 7.0, 29.0, 301.0])
SHARES: tuple[dict[str, float], ...] = ({"owner": 0.6}, {"owner": 0.3, "second": 0.3}, {})
ANSWER = b"answer"
TURNS = ((b"a",), (b"a", ANSWER, b"b"), (b"a", ANSWER, b"b", ANSWER, b"c"), (b"a", ANSWER, b"z"), (b"q",))


class Run:
    """A call that runs, as the model sees it."""

    def __init__(self, ask: Ask, start: Start) -> None:
        self.ask, self.start = ask, start
        self.is_doubtful = False


class Warm:
    """What the model knows of a warm slot."""

    def __init__(self, run: Run, chain: tuple[bytes, ...], used_at: float) -> None:
        self.conversation, self.route = run.start.conversation, run.ask.route
        self.chain, self.used_at = chain, used_at


class Watched:
    """A schedule that is checked after every step."""

    def __init__(
        self,
        total: int,
        shares: dict[str, float],
        background_max: int = 2,
        per_agent: int = 2,
        *,
        sticky: bool = True,
        spill: bool = True,
    ) -> None:
        self.total, self.shares = total, shares
        self.background_max, self.per_agent, self.sticky = background_max, per_agent, sticky
        self.schedule = Schedule(
            total,
            shares=shares,
            background_max=background_max,
            per_agent=per_agent,
            ageing_s=AGEING_S,
            affinity_wait_s=AFFINITY_S,
            slot_idle_s=IDLE_S,
            sticky=sticky,
            spill=spill,
        )
        self.now = 1000.0
        self.calls = 0
        self.waiting: dict[str, tuple[Ask, int, float]] = {}
        """Call → its ask, its priority by now, when it was queued."""
        self.runs: dict[int, Run] = {}
        self.warm: dict[int, Warm] = {}
        self.orphans: list[str] = []
        self.writing: dict[int, str] = {}
        self.files: dict[int, tuple[bytes, ...]] = {}
        self.content: dict[int, tuple[Conversation, tuple[bytes, ...], int]] = {}
        self.paused_until = 0.0
        self.can_restore = self.restores = spill and sticky
        self.fates: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.is_sound = True
        """False once a check failed: there is no sense in going on."""

    # what the rules say, from the model's own books

    def part(self, route: str) -> int:
        """By the definition, for shares whose parts need no reduction (checked in `test_shares`)."""
        share = self.shares.get(route, 0)
        if self.total == 1 or not share:
            return 0
        if len(self.shares) > 1 and self.total == 2:
            return {"owner": 0, "second": 1}[route]  # one slot must be left
        return max(1, min(self.total - 1, floor(share * self.total + 0.5)))

    def running(self, route: str) -> int:
        return sum(run.ask.route == route for run in self.runs.values())

    def held(self, route: str) -> int:
        return self.running(route) + sum(warm.route == route for warm in self.warm.values())

    def is_allowed(self, route: str) -> bool:
        if route == "background" and self.running(route) >= self.background_max:
            return False
        if self.running(route) < self.part(route):
            return True
        kept = sum(max(self.running(owner), self.part(owner)) for owner in self.shares)
        rest = sum(run.ask.route not in self.shares for run in self.runs.values())
        return kept + rest + 1 <= self.total

    def conversation(self, ask: Ask) -> Conversation:
        return Conversation(ask.agent, ask.prefix, ask.side)

    def own_idle(self, ask: Ask) -> set[int]:
        if not self.sticky:
            return set()
        if ask.agent is None:
            found = {
                number
                for number, warm in self.warm.items()
                if warm.conversation.agent is None and chains.continues(warm.chain, ask.chain)
            }
            best = max((chains.shared(self.warm[n].chain, ask.chain) for n in found), default=0)
            return {n for n in found if chains.shared(self.warm[n].chain, ask.chain) == best}
        return {n for n, warm in self.warm.items() if warm.conversation == self.conversation(ask)}

    def own_busy(self, ask: Ask) -> bool:
        return self.sticky and any(
            run.start.conversation == self.conversation(ask) for run in self.runs.values()
        )

    def agent_holds(self, agent: str) -> tuple[set[int], int]:
        """The agent's warm slots, and how many busy ones it has."""
        warm = {number for number, one in self.warm.items() if one.conversation.agent == agent}
        return warm, sum(run.ask.agent == agent for run in self.runs.values())

    def is_at_bound(self, ask: Ask) -> bool:
        if ask.agent is None or not self.sticky:
            return False
        warm, busy = self.agent_holds(ask.agent)
        return len(warm) + busy >= self.per_agent

    def may_wait(self, call: str) -> bool:
        """Whether the rules let this call wait although a slot is idle."""
        ask, _, queued_at = self.waiting[call]
        if not self.is_allowed(ask.route):
            return True
        if self.own_idle(ask):
            return False
        if self.own_busy(ask) and self.now < queued_at + AFFINITY_S:
            return True
        return self.is_at_bound(ask) and not self.agent_holds(str(ask.agent))[0]

    def rank(self, call: str) -> tuple[int, float]:
        ask, priority, _ = self.waiting[call]
        levels = floor((self.now - ask.arrived) / AGEING_S)
        return (priority if priority <= 1 else max(1, priority - levels)), ask.arrived

    # steps

    def arrive(
        self,
        agent: str | None,
        prefix: str,
        route: str,
        priority: int,
        turn: int,
        side: bool,
        waited_s: float,
    ) -> None:
        self.calls += 1
        ask = Ask(
            call=f"call {self.calls}",
            route=route,
            priority=priority,
            agent=agent,
            prefix=prefix,
            chain=(b"system", f"tools of {agent}".encode(), *TURNS[turn]),
            arrived=self.now - waited_s,
            deadline=self.now + TIMEOUT_S,
            side=side,
            parent="a" if agent == "a/sub" else None,
        )
        self.schedule.arrive(ask, self.now)
        self.waiting[ask.call] = (ask, priority, self.now)
        self.settle()

    def whole_turn(self, agent: str, turn: int, route: str) -> None:
        """A call of a plain conversation; if it starts at once, it also ends, and its files are written."""
        self.arrive(agent, "p", route, 5, turn, False, 0.0)
        for number, run in sorted(self.runs.items()):
            if run.ask.call == f"call {self.calls}":
                while self.writing:
                    self.written(True)
                self.finish(sorted(self.runs).index(number), True, 9000)

    def leave(self, pick: int) -> None:
        call = self.pick(pick)
        assert self.schedule.leave(call)
        del self.waiting[call]
        self.fates[call] += 1
        self.settle()

    def promote(self, pick: int, priority: int) -> None:
        call = self.pick(pick)
        self.schedule.promote(call, priority)
        ask, before, queued_at = self.waiting[call]
        self.waiting[call] = (ask, min(before, priority), queued_at)
        self.settle()

    def pick(self, number: int) -> str:
        return sorted(self.waiting)[number % len(self.waiting)]

    def finish(self, pick: int, is_known: bool, tokens: int) -> None:
        number = sorted(self.runs)[pick % len(self.runs)]
        run = self.runs.pop(number)
        chain = (*run.ask.chain, ANSWER) if is_known else None
        self.schedule.finish(run.ask.call, self.now, chain=chain, tokens=tokens)
        self.writing = {file: call for file, call in self.writing.items() if call != run.ask.call}
        self.content.pop(number, None)
        if chain is not None and self.sticky and not run.is_doubtful:
            self.warm[number] = Warm(run, chain, self.now)
            self.content[number] = (run.start.conversation, chain, tokens)
        self.settle()

    def finish_orphan(self) -> None:
        self.schedule.finish(self.orphans.pop(), self.now, chain=(b"system",), tokens=1000)
        self.settle()

    def pass_time(self, seconds: float) -> None:
        """Let time pass as the shell does, waking when told; in between there must be nothing to do."""
        until = self.now + seconds
        while (wake := self.schedule.next_wake(self.now)) is not None and wake <= until:
            assert wake > self.now, "a wake-up that does nothing would spin"
            self.now = (self.now + wake) / 2
            assert not self.schedule.expired(self.now) and not self.schedule.decide(self.now)
            self.now = wake
            self.settle()
        self.now = until
        self.settle()

    def pause(self, seconds: float) -> None:
        self.schedule.pause(self.now + seconds)
        self.paused_until = max(self.paused_until, self.now + seconds)
        self.settle()

    def restart(self) -> None:
        self.schedule.forget_all()
        self.forget()
        for run in self.runs.values():
            run.is_doubtful = True
        self.settle()

    def resize(self, total: int) -> None:
        self.schedule.resize(total)
        self.orphans += [run.ask.call for run in self.runs.values()]
        self.total = total
        self.runs.clear()
        self.forget()
        self.settle()

    def forget(self) -> None:
        for books in (self.warm, self.writing, self.files, self.content):
            books.clear()
        self.restores = self.can_restore  # of the new server nothing is known

    def restore_failed(self) -> None:
        self.schedule.restore_failed()
        self.restores = False
        self.writing.clear()
        self.files.clear()

    def written(self, ok: bool) -> None:
        file, _ = self.writing.popitem()
        self.schedule.saved(file, ok)
        if not ok:
            del self.files[file]

    # what is checked after each of them

    def settle(self) -> None:
        self.is_sound = False
        self.expire()
        self.warm = {n: warm for n, warm in self.warm.items() if warm.used_at > self.now - IDLE_S}
        starts = self.schedule.decide(self.now)
        for start in starts:
            self.check_start(start)
            self.book(start)
        self.check_rest()
        self.is_sound = True

    def expire(self) -> None:
        expired = self.schedule.expired(self.now)
        assert set(expired) == {c for c, (ask, _, _) in self.waiting.items() if ask.deadline <= self.now}
        for call in expired:
            del self.waiting[call]
            self.fates[call] += 1

    def check_start(self, start: Start) -> None:
        ask = self.waiting[start.call][0]
        assert self.now >= self.paused_until
        assert 0 <= start.slot < self.total
        assert start.slot not in self.runs, "two calls in one slot"
        assert self.is_allowed(ask.route)
        for call in self.waiting:
            if self.rank(call) < self.rank(start.call):
                assert self.may_wait(call), f"{call} was passed by {start.call}"
        assert not self.may_wait(start.call)
        self.check_place(start, ask)
        self.check_files(start)

    def check_place(self, start: Start, ask: Ask) -> None:
        own = self.own_idle(ask)
        holder = self.warm.get(start.slot)
        if own:
            assert start.slot in own and start.evicted is None
        elif self.is_at_bound(ask):
            assert holder is not None and holder.conversation.agent == ask.agent
            assert start.evicted == holder.conversation
        elif holder is None:
            assert start.evicted is None
        else:
            assert start.evicted == holder.conversation
            assert len(self.warm) + len(self.runs) == self.total, "evicted while a slot was free"
            assert holder.route == ask.route or self.held(holder.route) > self.part(holder.route)

    def check_files(self, start: Start) -> None:
        content = self.content.get(start.slot)
        if start.save is not None:
            assert self.restores and 0 <= start.save < 2 * self.total
            assert all(priority > 2 for _, priority, _ in self.waiting.values())
            assert start.save not in self.writing and start.save != start.restore
            assert start.save not in {run.start.restore for run in self.runs.values() if not run.is_doubtful}
            assert content is not None and content[2] >= 256 and content[0] != start.conversation
        if start.restore is not None:
            assert self.restores and start.restore not in self.writing
            assert start.held_chain == self.files[start.restore]
        else:
            assert start.held_chain == (content[1] if content is not None else ())
        assert start.shared == chains.shared(start.held_chain, self.waiting[start.call][0].chain)

    def book(self, start: Start) -> None:
        ask, _, _ = self.waiting.pop(start.call)
        self.fates[start.call] += 1
        self.seen["evicted"] += start.evicted is not None
        self.seen["saved"] += start.save is not None
        self.seen["restored"] += start.restore is not None
        if start.save is not None:
            self.writing[start.save] = start.call
            self.files[start.save] = self.content[start.slot][1]
        self.warm.pop(start.slot, None)
        self.runs[start.slot] = Run(ask, start)
        self.content.pop(start.slot, None)

    def check_rest(self) -> None:
        if self.now >= self.paused_until and len(self.runs) < self.total:
            for call in self.waiting:
                assert self.may_wait(call), f"{call} waits for nothing"
        assert len(self.runs) <= self.total
        assert self.running("background") <= self.background_max
        for owner in self.shares:
            others = len(self.runs) - self.running(owner)
            assert others <= self.total - self.part(owner)
        if self.sticky:
            for agent in {run.ask.agent for run in self.runs.values() if run.ask.agent is not None}:
                warm, busy = self.agent_holds(agent)
                assert len(warm) + busy <= self.per_agent
        assert max(self.fates.values(), default=0) <= 1
        assert len(self.fates) + len(self.waiting) == self.calls, "each ends once, or still waits"
        self.check_snapshot()

    def check_snapshot(self) -> None:
        shown = self.schedule.snapshot(self.now)
        assert [view.slot for view in shown.slots] == list(range(self.total))
        states = [
            "busy" if n in self.runs else "warm" if n in self.warm else "free" for n in range(self.total)
        ]
        assert [view.state for view in shown.slots] == states
        assert sum(shown.queue.values()) == len(self.waiting)
        assert {route: share.running for route, share in shown.shares.items() if share.running} == dict(
            Counter(run.ask.route for run in self.runs.values())
        )
        assert 1 <= self.schedule.retry_after(self.now) <= 60

    def drain(self) -> None:
        """Let everything end: whatever still waits is started or expires."""
        self.pass_time(1000.0)
        while self.runs:
            self.finish(0, True, 1000)
        self.pass_time(1000.0)
        assert not self.waiting and len(self.fates) == self.calls
        assert set(self.fates.values()) <= {1}


steps_taken: Counter[str] = Counter()
"""What hypothesis made of it, as it decides itself how long a history is; and whether it met the rare things."""


class Machine(RuleBasedStateMachine):
    watched: Watched

    @initialize(
        total=st.integers(1, 6),
        shares=st.sampled_from(SHARES),
        background_max=st.integers(0, 2),
        per_agent=st.integers(1, 3),
        sticky=st.sampled_from([True, True, True, False]),
        spill=st.booleans(),
    )
    def begin(
        self,
        total: int,
        shares: dict[str, float],
        background_max: int,
        per_agent: int,
        sticky: bool,
        spill: bool,
    ) -> None:
        self.watched = Watched(total, shares, background_max, per_agent, sticky=sticky, spill=spill)

    def count(self) -> None:
        steps_taken["all"] += 1

    @rule(
        agent=st.sampled_from(["a", "a/sub", "b", "c", "d", "e", None]),
        prefix=st.sampled_from(["p", "q", "r"]),
        route=st.sampled_from(["owner", "owner", "second", "review", "background"]),
        priority=PRIORITIES,
        turn=st.integers(0, len(TURNS) - 1),
        side=st.sampled_from([False, False, False, True]),
        waited_s=st.sampled_from([0.0, 0.0, 0.0, 10.0, 31.0]),
    )
    def arrive(
        self,
        agent: str | None,
        prefix: str,
        route: str,
        priority: int,
        turn: int,
        side: bool,
        waited_s: float,
    ) -> None:
        self.count()
        self.watched.arrive(agent, prefix, route, priority, turn, side, waited_s)

    @rule(
        agent=st.sampled_from("abcdefgh"), turn=st.integers(0, 3), route=st.sampled_from(["owner", "review"])
    )
    def whole_turn(self, agent: str, turn: int, route: str) -> None:
        self.count()
        self.watched.whole_turn(agent, turn, route)

    @precondition(lambda self: self.watched.waiting)
    @rule(pick=st.integers(0, 99))
    def leave(self, pick: int) -> None:
        self.count()
        self.watched.leave(pick)

    @precondition(lambda self: self.watched.waiting)
    @rule(pick=st.integers(0, 99), priority=PRIORITIES)
    def promote(self, pick: int, priority: int) -> None:
        self.count()
        self.watched.promote(pick, priority)

    @precondition(lambda self: self.watched.runs)
    @rule(
        pick=st.integers(0, 99),
        is_known=st.sampled_from([True, True, True, False]),
        tokens=st.sampled_from([10, 255, 256, 9000]),
    )
    def finish(self, pick: int, is_known: bool, tokens: int) -> None:
        self.count()
        self.watched.finish(pick, is_known, tokens)

    @rule(seconds=WAITS_S)
    def pass_time(self, seconds: float) -> None:
        self.count()
        self.watched.pass_time(seconds)

    @precondition(lambda self: self.watched.writing)
    @rule(ok=st.sampled_from([True, True, False]))
    def written(self, ok: bool) -> None:
        self.count()
        self.watched.written(ok)

    @rule(seconds=st.sampled_from([1.0, 20.0]), what=st.integers(0, 29), total=st.integers(1, 6))
    def something_rare(self, seconds: float, what: int, total: int) -> None:
        self.count()
        watched = self.watched
        match what:
            case 0:
                watched.pause(seconds)
            case 1:
                watched.restart()
            case 2:
                watched.resize(total)
            case 3 if total == 1:
                watched.restore_failed()
            case _ if watched.orphans:
                watched.finish_orphan()
            case _ if watched.runs:
                watched.finish(what, True, 9000)

    def teardown(self) -> None:
        if hasattr(self, "watched") and self.watched.is_sound:
            self.watched.drain()
            steps_taken.update(self.watched.seen)


@pytest.mark.timeout(300)
def test_ten_thousand_steps_of_any_history() -> None:
    steps_taken.clear()
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=400,
            stateful_step_count=50,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    assert steps_taken["all"] >= STEPS
    assert min(steps_taken.values()) > 5, steps_taken


@pytest.mark.parametrize("seed", range(20))
def test_a_long_random_walk(seed: int) -> None:
    source = random.Random(seed)
    total = source.randrange(1, 9)
    watched = Watched(total, source.choice(SHARES), per_agent=source.randrange(1, 4), sticky=seed % 5 != 0)
    for _ in range(400):
        step = source.random()
        if step < 0.5 or not watched.runs:
            agent = source.choice([*"abcdefgh", "a/sub", None])
            route = source.choice(["owner", "owner", "second", "review", "background"])
            watched.arrive(
                agent,
                source.choice("pqr"),
                route,
                source.randrange(10),
                source.randrange(len(TURNS)),
                source.random() < 0.1,
                source.choice([0.0, 0.0, 5.0]),
            )
        elif step < 0.85:
            watched.finish(source.randrange(99), source.random() < 0.9, source.choice([100, 1000]))
        elif step < 0.88 and watched.waiting:
            watched.leave(source.randrange(99))
        else:
            watched.pass_time(source.choice([0.5, 2.0, 4.0]))
        while watched.writing and source.random() < 0.8:
            watched.written(source.random() < 0.9)
    watched.drain()
    assert len(watched.fates) > 150
    if seed == 3:  # sticky, with fewer slots than agents
        assert min(watched.seen.values()) > 5, watched.seen
