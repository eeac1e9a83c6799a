"""One call on its way: into the line, onto a slot, through the backend, into the records."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from herdr.clock import Clock
from herdr.pool.backend import Job
from herdr.pool.canonical import Canonical
from herdr.pool.chain import first_change, setup
from herdr.pool.chunk import Chunk, End, Progress, Usage, Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.generation import Generation, Place
from herdr.pool.identity import Caller
from herdr.pool.line import Line
from herdr.pool.schedule import Ask, Start

PAUSE_MIN_S = 1.0  # some say milliseconds, and mean it for one client
RETRY_GRACE_S = 0.5  # a call whose deadline is nearer than this does not queue again

_log = logging.getLogger("herdr.pool")


class Inquiry(msgspec.Struct, frozen=True):
    """What a client asks, and who it is."""

    canonical: Canonical
    caller: Caller
    prompt_estimate: int
    user_text: str = ""
    """What the user said in this turn."""
    verbatim: bytes | None = None
    """The body of a client that speaks Anthropic."""
    headers: Mapping[str, str] = {}
    """Names in lower case."""
    is_prewarm: bool = False
    """Nobody asks: the prompt's slot is left to whoever goes on from there."""
    is_own: bool = False
    """The gateway asks for itself: a call like others, but its turns belong to no session."""


class Outcome(msgspec.Struct, frozen=True):
    """How a call went."""

    call: str
    inquiry: Inquiry
    backend: str | None
    slot: int | None
    arrived: float
    placed: float | None
    first_token: float | None
    over: float
    usage: Usage
    chunks: Sequence[Chunk]
    end: End | None
    changed: str | None
    error: str | None


Record = Callable[[Outcome], Awaitable[None]]


class Terms(NamedTuple):
    """When a call came, how long it may wait, how much it may say. Times are monotonic seconds."""

    arrived: float
    ordered_by: float
    """A retry's first arrival; else `arrived`."""
    deadline: float
    max_tokens: int


class Run:
    """One call, from its arrival to its record. Cancelling it frees whatever it holds."""

    def __init__(
        self,
        inquiry: Inquiry,
        generation: Generation,
        lines: Sequence[Line],
        terms: Terms,
        record: Record,
        clock: Clock,
    ) -> None:
        """`lines`: the backend's, and then those of its fallbacks."""
        self.terms = terms
        self.priority = inquiry.caller.priority
        self.line: Line | None = None
        self._inquiry = inquiry
        self._generation = generation
        self._lines = lines
        self._record = record
        self._clock = clock
        self._start: Start | None = None
        self._placed: float | None = None
        self._end: End | None = None
        self._last: list[Chunk] = []
        self._restored = 0
        self._has_spoken = False
        """Whether the backend has said anything that a client may have seen."""
        self._work: asyncio.Task[None] | None = None
        self._stopped_by: ModelError | None = None
        self._is_finishing = False

    async def __call__(self) -> None:
        """Run to the end, which is always recorded; failures end up in the generation. Never cancel it: `stop`."""
        if self._stopped_by is None:
            self._work = asyncio.create_task(self._try_lines())
            await asyncio.wait({self._work})
        self._is_finishing = True
        await self._finish(self._failure())

    def stop(self, why: ModelError) -> None:
        """Give up what is under way; a call whose answer is complete already ends as it would have."""
        if self._stopped_by is None and not self._is_finishing:
            self._stopped_by = why
            if self._work is not None:
                self._work.cancel()

    def _failure(self) -> ModelError | None:
        work, self._work = self._work, None  # an exception holds its frames, and they this run
        if work is None or work.cancelled():
            return self._stopped_by or _mistake(self._generation.call, None)
        mistake = work.exception()
        if mistake is None:
            ended = self._end is not None
            return None if ended else ModelError("backend_failed", "the answer ended without saying why")
        if isinstance(mistake, ModelError):
            caller = self._inquiry.caller
            _log.warning("call %s of %s: %s", self._generation.call, caller.shown, mistake.detail)
            return mistake.again()
        return _mistake(self._generation.call, mistake)

    def promote(self, priority: int) -> None:
        """Somebody more urgent waits for the same answer."""
        if priority < self.priority:
            self.priority = priority
            if self.line is not None and self._start is None:
                self.line.promote(self._generation.call, priority)

    async def _try_lines(self) -> None:
        for line in self._lines[:-1]:
            try:
                await self._run_on(line)
                return
            except ModelError as error:
                if error.code != "backend_unreachable" or self._has_spoken:
                    raise
                _log.warning("call %s falls back: %s", self._generation.call, error.detail)
                self._generation.withdraw()
        await self._run_on(self._lines[-1])

    async def _run_on(self, line: Line) -> None:
        self.line = line
        while True:
            try:
                await self._run_once(line)
                return
            except ModelError as error:
                if error.code != "rate_limited" or self._has_spoken:
                    raise
                wait_s = line.schedule.paused_until - self._clock.monotonic()
                if self._clock.monotonic() + wait_s + RETRY_GRACE_S > self.terms.deadline:
                    raise
                self._generation.withdraw()

    async def _run_once(self, line: Line) -> None:
        self._start, self._restored = None, 0
        start = self._start = await line.enter(self._ask())
        self._placed = self._clock.monotonic()
        try:
            job = self._job(line, start.slot if line.backend.has_slots else None)
            queue_ms = round(1000 * (self._placed - self.terms.arrived))
            self._generation.begin(Place(job.slot, queue_ms, job.verbatim is not None))
            await self._prepare(line, start)
            is_whole = await line.backend.generate(job, self._emit)
        except ModelError as error:
            if error.code == "rate_limited":
                error.wait_s = max(PAUSE_MIN_S, error.wait_s or 0.0)
                line.pause(error.wait_s)  # they all share the quota
            self._leave_failed(line, start, error)
            raise
        except BaseException:
            line.leave_when_idle(start, self._chain, self._usage.prompt, failed=False)
            raise
        self._leave_done(line, start, is_whole)

    def _leave_failed(self, line: Line, start: Start, error: ModelError) -> None:
        if error.status < 500 and not self._has_spoken:
            line.give_back(start)
        else:
            line.leave_when_idle(start, self._chain, self._usage.prompt, failed=True)

    def _leave_done(self, line: Line, start: Start, is_whole: bool) -> None:
        self._check_restore(line, start)
        tokens = self._usage.prompt + self._usage.output
        if not is_whole:
            line.leave_when_idle(start, self._chain, tokens, failed=False)
        else:
            line.leave(start, self._chain, tokens, keeps=not self._inquiry.is_prewarm)

    @property
    def _chain(self) -> tuple[bytes, ...] | None:
        """What the slot holds now, as far as is known."""
        return self._inquiry.canonical.chain if self._end is not None or self._has_spoken else None

    def _ask(self) -> Ask:
        caller, canonical = self._inquiry.caller, self._inquiry.canonical
        return Ask(
            call=self._generation.call,
            route=caller.route,
            priority=self.priority,
            agent=caller.agent,
            prefix=setup(canonical.chain),
            chain=canonical.chain,
            arrived=self.terms.ordered_by,
            deadline=self.terms.deadline,
            side=caller.side,
            parent=caller.parent,
        )

    def _job(self, line: Line, slot: int | None) -> Job:
        limit = self.terms.max_tokens or 1  # asked for 0 tokens, llama.cpp still makes one
        if line.context is not None:
            limit = min(limit, line.context)
        return Job(
            self._inquiry.canonical.request,
            slot,
            limit,
            self._inquiry.prompt_estimate,
            self._inquiry.verbatim if line.backend.kind == "anthropic" else None,
            self._inquiry.headers,
        )

    async def _prepare(self, line: Line, start: Start) -> None:
        """Save what the slot holds for the one who lost it, and load what this conversation had."""
        if start.save is not None:
            line.schedule.saved(start.save, await line.backend.save(start.slot, start.save))
        if start.restore is not None:
            self._restored = await line.backend.restore(start.slot, start.restore)
            if not self._restored:
                line.schedule.saved(start.restore, False)

    def _check_restore(self, line: Line, start: Start) -> None:
        """Believe a restore only when the prompt's evaluation shows it: hybrid models say OK and start anew."""
        end = self._end
        if not self._restored or end is None or start.shared < len(start.held_chain):
            return  # a prompt that changed cannot use all of it
        if end.usage.cached < self._restored // 2:
            line.schedule.restore_failed()
            _log.warning(
                "%s restored %d tokens of a slot and then used %d: slots are no longer restored there",
                line.backend.name,
                self._restored,
                end.usage.cached,
            )

    def _emit(self, chunks: Sequence[Chunk]) -> None:
        """Pass chunks on, except for the last ones: these wait until the call is recorded."""
        if self.terms.max_tokens == 0:
            chunks = [chunk for chunk in chunks if type(chunk) in (Progress, End, Verbatim)]
        for at, chunk in enumerate(chunks):
            if type(chunk) is End or (type(chunk) is Verbatim and chunk.event == "message_stop"):
                self._last.extend(chunks[at:])
                self._end = next((c for c in chunks[at:] if type(c) is End), self._end)
                chunks = chunks[:at]
                break
        self._has_spoken = self._has_spoken or any(type(chunk) is not Progress for chunk in chunks)
        self._generation.append(chunks, self._clock.monotonic())

    @property
    def _usage(self) -> Usage:
        return self._generation.usage if self._end is None else self._end.usage

    async def _finish(self, error: ModelError | None) -> None:
        """Record the call, and only then let its readers see the end."""
        outcome = self._outcome(error)
        if outcome.changed is not None:
            _log.info(
                "call %s of %s: the prompt is not as it was from its %s on; %d of %d tokens were reused",
                outcome.call,
                self._inquiry.caller.shown,
                outcome.changed,
                outcome.usage.cached,
                outcome.usage.prompt,
            )
        try:
            await self._record(outcome)
        finally:
            if error is not None:
                self._generation.fail(error)
            else:
                self._generation.append(self._last, self._clock.monotonic())
                self._generation.end()

    def _outcome(self, error: ModelError | None) -> Outcome:
        return Outcome(
            call=self._generation.call,
            inquiry=self._inquiry,
            backend=None if self.line is None else self.line.backend.name,
            slot=None if self._generation.place is None else self._generation.place.slot,
            arrived=self.terms.arrived,
            placed=self._placed,
            first_token=self._generation.first_token_at,
            over=self._clock.monotonic(),
            usage=self._usage if self._end is not None or self._generation.is_counted else Usage(),
            chunks=self._generation.chunks,
            end=self._end,
            changed=self._changed(),
            error=None if error is None else error.code,
        )

    def _changed(self) -> str | None:
        start, canonical = self._start, self._inquiry.canonical
        if start is None or start.evicted is not None or not start.held_chain:
            return None
        return first_change(start.held_chain, canonical.chain)


def _mistake(call: str, error: BaseException | None) -> ModelError:
    _log.error("call %s ended as it never should", call, exc_info=error)
    return ModelError("internal", "the gateway made a mistake; its log says which")
