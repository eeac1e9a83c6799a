"""The line before one backend: who waits, who runs where, and how the backend itself is."""

import asyncio
import logging
from typing import Any

import msgspec

from herdr.clock import Clock
from herdr.pool.backend import Backend, Sight
from herdr.pool.failures import ModelError, stopping
from herdr.pool.identity import ANONYMOUS
from herdr.pool.schedule import Ask, Schedule, Start
from herdr.pool.standing import SlotView

LOOK_AGAIN_S = 2.0  # of silence; a server needs longer to start anew and load even a small model
RETRY_FIRST_S, RETRY_MAX_S = 0.25, 5.0  # between looks at a backend that is away
WAITING_MAX = 1000  # calls; more cannot be served within the queue's time-out by any backend that has a queue

_log = logging.getLogger("herdr.pool")


class Line:
    """Queues calls for one backend and wakes them one by one; all of it on the event loop, none of it polled.

    The backend is looked at when the gateway starts, after a failure, and before the first call after a
    silence: a server that came back may have another number of slots, and it takes any slot number modulo
    that.
    """

    def __init__(self, backend: Backend, schedule: Schedule, clock: Clock, queue_timeout_s: float) -> None:
        self.backend = backend
        self.schedule = schedule
        self.sight = Sight(0, None, False)
        self.trouble: ModelError | None = None
        """Why the backend takes no calls now; None while it does."""
        self._clock = clock
        self._queue_timeout_s = queue_timeout_s
        self._waiting: dict[str, asyncio.Future[Start]] = {}
        self._running = 0
        self._heard_at = float("-inf")
        self._looking = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._seen = False
        self._watch: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to look after the backend."""
        self._watch = asyncio.create_task(self._keep_looking(), name=f"backend {self.backend.name}")

    async def stop(self) -> None:
        """Turn everybody away who still waits."""
        if self._timer is not None:
            self._timer.cancel()
        self._refuse_all(stopping())
        tasks = [*self._settling, *([] if self._watch is None else [self._watch])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def state(self) -> str:
        """`starting`, `ready`, `paused` (a quota is used up) or `unreachable`."""
        if self.trouble is not None:
            return "unreachable"
        if not self._seen:
            return "starting"
        return "paused" if self.schedule.paused_until > self._clock.monotonic() else "ready"

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    async def enter(self, ask: Ask) -> Start:
        """Wait for a place; raises ModelError. Whoever is cancelled while it waits has left the line."""
        if self._is_silent():
            await self._look()
        if self.trouble is not None:
            raise self.trouble
        if len(self._waiting) >= WAITING_MAX:
            detail = (
                f"{WAITING_MAX} calls wait for the backend {self.backend.name}; ask again after Retry-After"
            )
            raise ModelError("overloaded", detail, self.schedule.retry_after(self._clock.monotonic()))
        waiting: asyncio.Future[Start] = asyncio.get_running_loop().create_future()
        self._waiting[ask.call] = waiting
        self.schedule.arrive(ask, self._clock.monotonic())
        self.decide()
        try:
            return await waiting
        except asyncio.CancelledError:
            if self._waiting.pop(ask.call, None) is not None:
                self.schedule.leave(ask.call)
                self.decide()
            elif waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self.leave(ask.call, None, 0)  # it was called up in the same turn of the loop
            raise

    def leave(self, call: str, chain: tuple[bytes, ...] | None, tokens: int, *, keeps: bool = True) -> None:
        """Free a call's place; `chain` says what its slot holds now, None that nobody knows.

        `keeps`: the conversation keeps the slot; else whoever shares its content best may have it.
        """
        self._running -= 1
        self._heard_at = self._clock.monotonic()
        self.schedule.finish(call, self._clock.monotonic(), chain=chain, tokens=tokens, keeps=keeps)
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
            await self.backend.settle(start.slot)
        except ModelError:
            chain, failed = None, True
        if failed:
            await self._look()
        self.leave(start.call, chain, tokens)

    def promote(self, call: str, priority: int) -> None:
        """Raise the priority of a waiting call."""
        self.schedule.promote(call, priority)
        self.decide()

    def pause(self, seconds: float) -> None:
        """Start nothing for a while: the backend asked everybody to wait."""
        self.schedule.pause(self._clock.monotonic() + seconds)
        _log.warning("%s asks everybody to wait for %.3g s", self.backend.name, seconds)
        self.decide()

    def decide(self) -> None:
        """Call up whoever can run now, and turn away whoever has waited too long."""
        now = self._clock.monotonic()
        for call in self.schedule.expired(now):
            self._turn_away(call, now)
        if self._seen and self.trouble is None:
            for start in self.schedule.decide(now):
                self._running += 1
                waiting = self._waiting.pop(start.call)
                if waiting.cancelled():  # the client left in this very turn of the loop
                    asyncio.get_running_loop().call_soon(self.leave, start.call, None, 0)
                else:
                    waiting.set_result(start)
        self._arm(now)

    def _turn_away(self, call: str, now: float) -> None:
        waiting = self._waiting.pop(call, None)
        if waiting is not None and not waiting.done():
            detail = (
                f"no slot of the backend {self.backend.name} was free for {self._queue_timeout_s:g} s and "
                f"{len(self._waiting)} calls wait; ask again after Retry-After, or see GET /v1/pool"
            )
            waiting.set_exception(ModelError("queue_timeout", detail, self.schedule.retry_after(now)))

    def _refuse_all(self, error: ModelError) -> None:
        for call, waiting in list(self._waiting.items()):
            del self._waiting[call]
            self.schedule.leave(call)
            if not waiting.done():
                waiting.set_exception(error)

    def _arm(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and (at := self.schedule.next_wake(now)) is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, at - now), self.decide)

    def _is_silent(self) -> bool:
        if not self.backend.has_slots or self._running or not self._seen:
            return False
        return self._clock.monotonic() - self._heard_at > LOOK_AGAIN_S

    async def _look(self) -> None:
        async with self._looking:
            try:
                sight = await self.backend.look()
            except ModelError as error:
                self._lost(error)
            else:
                self._found(sight)

    def _lost(self, error: ModelError) -> None:
        if error.code == "overloaded":  # it is loading its model: calls may wait for that
            self._seen = False
        else:
            if self.trouble is None:
                _log.warning("%s", error.detail)
            self.trouble = error
            self._refuse_all(error)
        if self._watch is None or self._watch.done():
            self.start()

    def _found(self, sight: Sight) -> None:
        self._heard_at = self._clock.monotonic()
        if self.trouble is not None or not self._seen or sight.restarted or sight.total != self.sight.total:
            if sight.total != self.sight.total:
                self.schedule.resize(sight.total)
            self.schedule.forget_all()
            _log.info("%s is ready: %s", self.backend.name, _described(self.backend, sight))
        self.sight, self.trouble, self._seen = sight, None, True
        self.decide()

    async def _keep_looking(self) -> None:
        pause = RETRY_FIRST_S
        await self._look()
        while self.trouble is not None or not self._seen:
            await asyncio.sleep(pause)  # nothing tells us when a server comes up; asking is all there is
            pause = min(RETRY_MAX_S, 2 * pause)
            await self._look()

    def snapshot(self) -> dict[str, Any]:
        """Return what `GET /v1/pool` says of this backend."""
        seen = self.schedule.snapshot(self._clock.monotonic())
        has_slots = self.backend.has_slots
        return {
            "name": self.backend.name,
            "kind": self.backend.kind,
            "url": self.backend.url,
            "state": self.state,
            "detail": None if self.trouble is None else self.trouble.detail,
            "paused_s": round(seen.paused_s, 1),
            "context": self.sight.context,
            "restores": has_slots and seen.restores,
            "running": self._running,
            "slots": [_slot_json(view) for view in seen.slots] if has_slots else [],
            "concurrency": self.sight.total,
            "queue": {
                "total": sum(seen.queue.values()),
                "by_priority": {str(priority): count for priority, count in sorted(seen.queue.items())},
            },
            "shares": msgspec.to_builtins(seen.shares),
        }


def _slot_json(view: SlotView) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(view)
    idle_s = shown.pop("last_used_s_ago")
    if view.state != "free":
        shown["agent"] = view.agent or ANONYMOUS
    return {**shown, "idle_s": None if idle_s is None else round(idle_s, 1)}


def _described(backend: Backend, sight: Sight) -> str:
    if not backend.has_slots:
        return f"{sight.total} requests at once"
    return f"{sight.total} slots of {sight.context or 'unknown'} tokens"
