"""The line before one backend: who waits, and who runs where."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from herdr.clock import Clock
from herdr.pool.backend import Backend
from herdr.pool.failures import ModelError, stopping
from herdr.pool.identity import ANONYMOUS
from herdr.pool.lookout import Lookout
from herdr.pool.schedule import Ask, Schedule, Start
from herdr.pool.standing import SlotView

WAITING_MAX = 1000  # calls; more cannot be served within the queue's time-out by any backend that has a queue
SETTLE_AGAIN_S = 1.0  # between questions to a backend that does not say whether a cut generation has ended

_log = logging.getLogger("herdr.pool")


class _Waiting(NamedTuple):
    """A call that waits: where it is called up, and until when it waits (monotonic seconds)."""

    called: "asyncio.Future[Start]"
    deadline: float


class Line:
    """Queues calls for one backend and calls them up; all of it on the event loop, none of it polled."""

    def __init__(
        self,
        backend: Backend,
        lookout: Lookout,
        schedule: Schedule,
        clock: Clock,
        queue_timeout_s: float,
    ) -> None:
        self.backend = backend
        self.schedule = schedule
        self._lookout = lookout
        self._clock = clock
        self._queue_timeout_s = queue_timeout_s
        self._waiting: dict[str, _Waiting] = {}
        self._placed = 0
        self._total = 0
        self._timer: asyncio.TimerHandle | None = None
        self._settling: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to look after the backend."""
        self._lookout.start(self._found, self._refuse)

    async def stop(self) -> None:
        """Turn everybody away who still waits."""
        if self._timer is not None:
            self._timer.cancel()
        self._refuse(stopping())
        await self._lookout.stop()
        for task in self._settling:
            task.cancel()
        await asyncio.gather(*self._settling, return_exceptions=True)

    @property
    def state(self) -> str:
        """`starting`, `ready`, `paused` (a quota is used up) or `unreachable`."""
        is_paused = self.schedule.paused_until > self._clock.monotonic()
        return "paused" if is_paused and self._lookout.state == "ready" else self._lookout.state

    @property
    def context(self) -> int | None:
        """Tokens that one slot holds; None when nobody says so."""
        return self._lookout.sight.context

    async def enter(self, ask: Ask) -> Start:
        """Wait for a place; raises ModelError. Whoever is cancelled while it waits has left the line."""
        if self._is_silent():
            await self._lookout.look(self._is_silent)
        if self._lookout.trouble is not None:
            raise self._lookout.trouble.again()
        if self.schedule.paused_until > ask.deadline:
            raise self._quota_used()
        if len(self._waiting) >= WAITING_MAX:
            detail = (
                f"{WAITING_MAX} calls wait for the backend {self.backend.name}; ask again after Retry-After"
            )
            raise ModelError("overloaded", detail, self.schedule.retry_after(self._clock.monotonic()))
        waiting: asyncio.Future[Start] = asyncio.get_running_loop().create_future()
        self._waiting[ask.call] = _Waiting(waiting, ask.deadline)
        self.schedule.arrive(ask, self._clock.monotonic())
        self.decide()
        try:
            return await waiting
        except asyncio.CancelledError:
            if self._waiting.pop(ask.call, None) is not None:
                self.schedule.leave(ask.call)
                self.decide()
            elif waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self.give_back(waiting.result())  # it was called up in the same turn of the loop
            raise
        finally:
            del waiting  # it may hold an error, whose frames hold it

    def _is_silent(self) -> bool:
        return not self._placed and self._lookout.is_silent()

    def leave(
        self, start: Start, chain: tuple[bytes, ...] | None, tokens: int, *, keeps: bool = True
    ) -> None:
        """Free a call's place; `chain` says what its slot holds now, None that nobody knows.

        `keeps`: the conversation keeps the slot; else whoever shares its content best may have it.
        """
        self._placed -= 1
        self._lookout.heard()
        self.schedule.finish(start.call, self._clock.monotonic(), chain=chain, tokens=tokens, keeps=keeps)
        self.decide()

    def give_back(self, start: Start) -> None:
        """Free the place of a call that never ran: its slot holds what it held before."""
        self._placed -= 1
        self.schedule.give_back(start.call, self._clock.monotonic())
        self.decide()

    def leave_when_idle(
        self, start: Start, chain: tuple[bytes, ...] | None, tokens: int, *, failed: bool
    ) -> None:
        """Free the place of a call that was cut, once the backend says that it is idle.

        `failed`: by the backend, which may have been started anew since.
        """
        task = asyncio.create_task(self._settle(start, chain, tokens, failed), name=f"settle {start.call}")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, start: Start, chain: tuple[bytes, ...] | None, tokens: int, failed: bool) -> None:
        try:
            while (error := await _settle_error(self.backend, start.slot)) is not None:
                if error.code == "backend_unreachable":  # nothing runs there any more
                    chain, failed = None, True
                    break
                await asyncio.sleep(SETTLE_AGAIN_S)  # it may still generate, and nothing else tells us
            if failed:
                await self._lookout.look()
        finally:
            self.leave(start, chain, tokens)

    def promote(self, call: str, priority: int) -> None:
        """Raise the priority of a waiting call."""
        self.schedule.promote(call, priority)
        self.decide()

    def pause(self, seconds: float) -> None:
        """Start nothing for a while: the backend asked everybody to wait. Who cannot wait so long hears of it."""
        self.schedule.pause(self._clock.monotonic() + seconds)
        _log.warning("%s asks everybody to wait for %.3g s", self.backend.name, seconds)
        until = self.schedule.paused_until
        self._refuse(self._quota_used(), [c for c, w in self._waiting.items() if w.deadline < until])
        self.decide()

    def _quota_used(self) -> ModelError:
        seconds = self.schedule.paused_until - self._clock.monotonic()
        detail = f"the backend {self.backend.name} asks everybody to wait for {seconds:.0f} s more"
        return ModelError("rate_limited", detail, seconds)

    def decide(self) -> None:
        """Call up whoever can run now, and turn away whoever has waited too long."""
        now = self._clock.monotonic()
        if expired := self.schedule.expired(now):
            self._turn_away(expired, now)
        for start in self.schedule.decide(now) if self._lookout.state == "ready" else ():
            self._placed += 1
            waiting = self._waiting.pop(start.call).called
            if waiting.cancelled():  # the client left in this very turn of the loop
                asyncio.get_running_loop().call_soon(self.give_back, start)
            else:
                waiting.set_result(start)
        self._arm(now)

    def _turn_away(self, calls: Sequence[str], now: float) -> None:
        name = self.backend.name
        was_ready = self._lookout.state == "ready"
        why = f"no slot of the backend {name} was free" if was_ready else f"the backend {name} was not ready"
        detail = (
            f"{why} for {self._queue_timeout_s:g} s, and {len(self._waiting)} calls wait; ask again after "
            "Retry-After, or see GET /v1/pool"
        )
        self._refuse(ModelError("queue_timeout", detail, self.schedule.retry_after(now)), calls)

    def _found(self, is_new: bool) -> None:
        if is_new:
            if self._lookout.sight.total != self._total:
                self._total = self._lookout.sight.total
                self.schedule.resize(self._total)
            self.schedule.forget_all()
        self.decide()

    def _refuse(self, error: ModelError, calls: Sequence[str] | None = None) -> None:
        """Turn calls away, by default all that wait."""
        for call in list(self._waiting) if calls is None else calls:
            self.schedule.leave(call)
            waiting = self._waiting.pop(call).called
            if not waiting.done():
                waiting.set_exception(error.again())

    def _arm(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and (at := self.schedule.next_wake(now)) is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, at - now), self.decide)

    def snapshot(self) -> dict[str, Any]:
        """Return what `GET /v1/pool` says of this backend."""
        seen = self.schedule.snapshot(self._clock.monotonic())
        has_slots, trouble = self.backend.has_slots, self._lookout.trouble
        return {
            "name": self.backend.name,
            "kind": self.backend.kind,
            "url": self.backend.url,
            "state": self.state,
            "detail": None if trouble is None else trouble.detail,
            "paused_s": round(seen.paused_s, 1),
            "context": self.context,
            "restores": has_slots and seen.restores,
            "running": self._placed,
            "slots": [_slot_json(view) for view in seen.slots] if has_slots else [],
            "concurrency": self._lookout.sight.total,
            "queue": {
                "total": sum(seen.queue.values()),
                "by_priority": {str(priority): count for priority, count in sorted(seen.queue.items())},
            },
            "shares": msgspec.to_builtins(seen.shares),
        }


async def _settle_error(backend: Backend, slot: int) -> ModelError | None:
    """Wait until a slot is idle; None when it is."""
    try:
        await backend.settle(slot)
    except ModelError as error:
        return error
    return None


def _slot_json(view: SlotView) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(view)
    idle_s = shown.pop("last_used_s_ago")
    if view.state != "free":
        shown["agent"] = view.agent or ANONYMOUS
    return {**shown, "idle_s": None if idle_s is None else round(idle_s, 1)}
