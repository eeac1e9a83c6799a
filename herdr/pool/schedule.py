"""Pure: which call runs next, and in which slot (invariant 7 of the design).

One schedule stands before one backend. `now` is monotonic seconds and an argument everywhere; nothing happens
between calls. The shell tells what arrives, leaves and ends, asks `decide` after each of these and at
`next_wake`, and does what the answers say. Looking at a queue of a thousand before 64 slots takes about 2 ms.
"""

from collections.abc import Mapping

import msgspec

from herdr.pool import chain as chains
from herdr.pool.failures import whole_seconds
from herdr.pool.shares import Shares
from herdr.pool.slots import Conversation, Slot, Slots
from herdr.pool.spill import Spill
from herdr.pool.standing import Snapshot, share_views, slot_view
from herdr.pool.waiting import Ask, Queue, Waiting

__all__ = ["Ask", "Conversation", "Schedule", "Snapshot", "Start"]

RUN_S_ASSUMED = 10.0  # before the first call ended; a short answer of a local model takes about that long
RUN_S_WEIGHT = 0.2  # of the newest run in the moving average: about the last ten runs count


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Run this call in this slot: first `save`, then `restore`, then the call."""

    call: str
    slot: int
    conversation: Conversation
    evicted: Conversation | None
    """Who lost the slot."""
    save: int | None
    """File to save the slot's old content to; answer with `Schedule.saved`."""
    restore: int | None
    """File to restore from; answer with `Schedule.restore_failed` if the reused tokens do not confirm it."""
    shared: int
    """Entries of the call's chain that the slot's content has, after the restore if there is one."""
    held_chain: tuple[bytes, ...]
    """The chain of that content."""


class _Run:
    """A call that runs."""

    __slots__ = ("has_evicted", "is_doubtful", "route", "slot", "started", "was_content_of")

    def __init__(self, slot: Slot, route: str, started: float, has_evicted: bool) -> None:
        self.slot = slot
        self.was_content_of = slot.content_of
        self.route = route
        self.started = started
        self.has_evicted = has_evicted
        self.is_doubtful = False
        """The backend restarted since: what it leaves in the slot is unknown."""


class Schedule:
    """Queue, slots, shares and files of one backend.

    With `sticky=False` the slots are mere places: nothing stays in them, so any free one will do, and neither
    affinity nor the agents' bound applies.
    """

    def __init__(  # noqa: PLR0913 - one plain value for each key of the configuration
        self,
        total: int,
        *,
        shares: Mapping[str, float],
        background_max: int,
        per_agent: int = 2,
        ageing_s: float = 3.0,
        affinity_wait_s: float = 2.0,
        slot_idle_s: float = 300.0,
        sticky: bool = True,
        spill: bool = False,
    ) -> None:
        self._per_agent = per_agent
        self._affinity_wait_s = affinity_wait_s
        self._slot_idle_s = slot_idle_s
        self._sticky = sticky
        self._queue = Queue(ageing_s)
        self._slots = Slots(total)
        self._shares = Shares(total, shares, background_max)
        self._spill = Spill(total, enabled=spill and sticky)
        self._running: dict[str, _Run] = {}
        self._run_s: float | None = None
        self._numbers = 0
        self.paused_until = 0.0
        """Until when the backend asked everybody to wait; a time that is past means nothing."""

    def arrive(self, ask: Ask, now: float) -> None:
        """Queue a call. Raises ValueError if one of that name waits or runs."""
        if ask.call in self._running:
            raise ValueError(f"call {ask.call} runs already")
        self._queue.add(ask, now)

    def leave(self, call: str) -> bool:
        """Take a call out of the queue; False if it does not wait (any more)."""
        return self._queue.remove(call)

    def promote(self, call: str, priority: int) -> None:
        """Raise a waiting call's priority: somebody more urgent joined it. Never lowers it."""
        self._queue.promote(call, priority)

    def expired(self, now: float) -> list[str]:
        """Remove and return the calls that waited until their deadline."""
        return self._queue.take_expired(now)

    def pause(self, until: float) -> None:
        """Start nothing before that time: the backend asked for it."""
        self.paused_until = max(self.paused_until, until)

    def decide(self, now: float) -> list[Start]:
        """Start what can start, in order; what cannot be placed is passed over and holds up nobody."""
        if now < self.paused_until or not self._queue or not self._slots.idle:
            return []
        self._slots.free_idle(now - self._slot_idle_s)
        starts: list[Start] = []
        refused: set[str] = set()
        for waiting in self._queue.in_order(now):
            if not self._slots.idle:
                break
            route = waiting.ask.route
            if route in refused:
                continue
            if not self._shares.allows(route):
                refused.add(route)  # starts only ever use up more, so it stays refused in this round
                continue
            slot = self._place(waiting, now)
            if slot is not None:
                starts.append(self._start(waiting, slot, now))
        return starts

    def _place(self, waiting: Waiting, now: float) -> Slot | None:
        ask = waiting.ask
        if not self._sticky:
            return next(slot for slot in self._slots.all if slot.call is None)
        own: Slot | None
        if ask.agent is None:
            own = self._slots.continued(ask.chain)
        else:
            conversation = _conversation(ask)
            own = self._slots.own(conversation, ask.chain)
            is_held = bool(self._slots.held_by(conversation))
            if own is None and is_held and now < waiting.queued_at + self._affinity_wait_s:
                return None
        return own or self._slots.other(ask, self._per_agent, self._shares.parts)

    def _start(self, waiting: Waiting, slot: Slot, now: float) -> Start:
        ask = waiting.ask
        conversation = self._named(ask, slot)
        evicted = slot.held_by if slot.held_by != conversation else None
        # The call itself counts among those that wait: it would wait for the file.
        has_urgent = bool(self._queue.urgent)
        file = self._spill.restore(ask.call, conversation, slot, ask.chain)
        save = None if has_urgent or slot.content_of == conversation else self._spill.save(ask.call, slot)
        if file is not None:
            slot.chain, slot.tokens = file.chain, file.tokens
        self._occupy(slot, ask, conversation, now, evicted is not None)
        self._queue.remove(ask.call)
        return Start(
            call=ask.call,
            slot=slot.number,
            conversation=conversation,
            evicted=evicted,
            save=save,
            restore=None if file is None else file.number,
            shared=chains.shared(slot.chain, ask.chain),
            held_chain=slot.chain,
        )

    def _named(self, ask: Ask, slot: Slot) -> Conversation:
        """Return the call's conversation; one without an agent goes on with the slot's or gets a number."""
        if ask.agent is not None:
            return _conversation(ask)
        held = slot.content_of
        if held is not None and held.agent is None and chains.continues(slot.chain, ask.chain):
            return held
        self._numbers += 1
        return _conversation(ask)._replace(number=self._numbers)

    def _occupy(
        self, slot: Slot, ask: Ask, conversation: Conversation, now: float, has_evicted: bool
    ) -> None:
        self._slots.hold(slot, conversation, ask.route, now)
        self._slots.start(slot, ask.call, now)
        self._shares.count(ask.route, 1)
        self._running[ask.call] = _Run(slot, ask.route, now, has_evicted)
        slot.content_of = conversation

    def give_back(self, call: str, now: float) -> None:
        """Free the slot of a call that the backend refused before anything ran: its content is as it was."""
        run = self._running.get(call)
        if run is not None:
            slot = run.slot
            slot.content_of = run.was_content_of
            self.finish(call, now, chain=slot.chain, tokens=slot.tokens, keeps=not run.has_evicted)

    def finish(
        self, call: str, now: float, *, chain: tuple[bytes, ...] | None, tokens: int = 0, keeps: bool = True
    ) -> None:
        """Free the slot of a call, once the backend's slot really is idle.

        `chain` and `tokens` are what the slot holds now; None: nobody knows, so it counts as cold. `keeps`:
        the conversation keeps the slot; else it is free, with that content, for whoever shares most of it. A
        call that does not run (the number of slots changed since) is passed over.
        """
        run = self._running.pop(call, None)
        if run is None:
            return
        slot = run.slot
        self._slots.end(slot, now)
        self._shares.count(run.route, -1)
        self._spill.end(call)
        took = max(0.0, now - run.started)
        self._run_s = took if self._run_s is None else self._run_s + RUN_S_WEIGHT * (took - self._run_s)
        if chain is None or run.is_doubtful or not self._sticky:
            self._slots.let_go(slot)
            slot.clear()
        else:
            slot.chain, slot.tokens = chain, tokens
            if not keeps:
                self._slots.let_go(slot)

    def resize(self, total: int) -> None:
        """Start again with so many cold slots and no files; calls that ran are gone with their backend."""
        self._running.clear()
        self._slots.resize(total)
        self._shares.resize(total)
        self._spill.resize(total)

    def forget_all(self) -> None:
        """Count every slot as cold and every file as lost: the backend restarted. What runs keeps its slot."""
        for slot in self._slots.all:
            slot.clear()
            if slot.call is None:
                self._slots.let_go(slot)
        for run in self._running.values():
            run.is_doubtful = True
        self._spill.forget()

    def restore_failed(self) -> None:
        """Neither save nor restore from now on: the backend did not reuse what it said it restored."""
        self._spill.turn_off()

    def saved(self, file: int, ok: bool) -> None:
        """Note whether a file of a `Start` is there: until then nothing restores from it, and not at all if not."""
        self._spill.saved(file, ok=ok)

    def next_wake(self, now: float) -> float | None:
        """Return the earliest time at which `decide` or `expired` could do something by time alone.

        None: only an arrival or an end can change anything. A time that is past asks for them at once.
        """
        times = [waiting.ask.deadline for waiting in self._queue]
        if now < self.paused_until:
            times.append(self.paused_until)
        elif self._sticky and self._slots.idle:
            times += [
                end
                for waiting in self._queue
                if (end := waiting.queued_at + self._affinity_wait_s) > now
                and self._slots.held_by(_conversation(waiting.ask))
            ]
        return min(times, default=None)

    def retry_after(self, now: float) -> int:
        """Return after how many seconds, 1 to 60, a call that is refused now should come back.

        That is how long the queue takes at the pace of the recent calls, or the backend's own pause.
        """
        run_s = RUN_S_ASSUMED if self._run_s is None else self._run_s
        return whole_seconds(max(len(self._queue) * run_s / self._shares.total, self.paused_until - now))

    def snapshot(self, now: float) -> Snapshot:
        """Return what `GET /v1/pool` shows of this backend."""
        self._slots.free_idle(now - self._slot_idle_s)
        return Snapshot(
            slots=tuple(slot_view(slot, now) for slot in self._slots.all),
            queue=self._queue.by_priority(),
            shares=share_views(self._shares, self._slots.held),
            paused_s=max(0.0, self.paused_until - now),
            restores=self._spill.is_on,
        )


def _conversation(ask: Ask) -> Conversation:
    return Conversation(ask.agent, ask.prefix, ask.side)
