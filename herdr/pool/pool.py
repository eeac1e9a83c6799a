"""The pool: takes calls, joins identical ones, and keeps what runs."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from herdr.clock import Clock
from herdr.pool.failures import ModelError, stopping
from herdr.pool.generation import Generation, Reader
from herdr.pool.joins import join_key, may_join, retry_key
from herdr.pool.line import Line
from herdr.pool.names import Names
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.request import ChatRequest
from herdr.pool.run import Inquiry, Record, Run, Terms

RETRIES_KEPT, RETRY_WITHIN_S = (
    1024,
    120.0,
)  # who was turned away comes back within `Retry-After`, at most 60 s


class _Running(NamedTuple):
    """A call under way, as those see it who might join."""

    key: bytes
    run: Run
    generation: Generation
    agent: str | None
    streams: bool
    task: "asyncio.Task[None]"


class Pool:
    """All backends, as one."""

    def __init__(
        self,
        lines: Mapping[str, Line],
        names: Names,
        *,
        queue_timeout_s: float,
        default_max_tokens: int,
        record: Record,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self.lines = lines
        self.names = names
        self._queue_timeout_s = queue_timeout_s
        self._default_max_tokens = default_max_tokens
        self._record = record
        self._clock = clock
        self._new_id = new_id
        self._running: dict[bytes, _Running] = {}
        self._all: set[_Running] = set()
        self._turned_away: OrderedDict[bytes, float] = OrderedDict()
        self._stopping = False

    def start(self) -> None:
        """Begin to look after the backends."""
        for line in self.lines.values():
            line.start()

    async def stop(self) -> None:
        """End what runs, and turn away what waits."""
        self._stopping = True
        for running in tuple(self._all):
            running.run.stop(stopping())
        await asyncio.gather(*(running.task for running in self._all), return_exceptions=True)
        for line in self.lines.values():
            await line.stop()

    @contextmanager
    def open(self, inquiry: Inquiry) -> Iterator[Reader]:
        """Ask for an answer and read it; leaving the context early ends the generation for its last reader."""
        reader, running = self._join(inquiry) or self._begin(inquiry)
        try:
            yield reader
        finally:
            if reader.generation.leave(reader) == 0 and not reader.generation.ended:
                self._unlist(running)  # who asks for the same from now on gets an answer of its own
                running.run.stop(ModelError("client_gone", "the client left"))

    def _join(self, inquiry: Inquiry) -> tuple[Reader, _Running] | None:
        running = self._running.get(self._key(inquiry))
        if running is None or running.generation.ended:
            return None
        caller = inquiry.caller
        request = inquiry.canonical.request
        same_client = caller.agent == running.agent
        # Claude Code asks again without streaming when a stream fails, and marks that in no way
        asks_again = caller.retry or (caller.agent is not None and running.streams and not request.stream)
        if not may_join(request, asks_again, same_client):
            return None
        running.run.promote(caller.priority)
        return running.generation.read(), running

    def _key(self, inquiry: Inquiry) -> bytes:
        return join_key(inquiry.canonical, self._lines_for(inquiry)[0].backend.name)

    def _begin(self, inquiry: Inquiry) -> tuple[Reader, _Running]:
        if self._stopping:
            raise stopping()
        now = self._clock.monotonic()
        key = self._key(inquiry)
        generation = Generation(self._new_id(), inquiry.prompt_estimate)
        reader = generation.read()
        max_tokens = inquiry.canonical.request.max_tokens
        terms = Terms(
            arrived=now,
            ordered_by=self._first_arrival(retry_key(key, inquiry.caller.agent), now),
            deadline=now + self._queue_timeout_s,
            max_tokens=self._default_max_tokens if max_tokens is None else max_tokens,
        )
        run = Run(inquiry, generation, self._lines_for(inquiry), terms, self._record, self._clock)
        task = asyncio.create_task(run(), name=f"call {generation.call}")
        asks_for_stream = inquiry.canonical.request.stream
        running = _Running(key, run, generation, inquiry.caller.agent, asks_for_stream, task)
        self._running[key] = running
        self._all.add(running)
        task.add_done_callback(lambda _: self._over(running))
        return reader, running

    def _unlist(self, running: _Running) -> None:
        if self._running.get(running.key) is running:
            del self._running[running.key]

    def _over(self, running: _Running) -> None:
        self._all.discard(running)
        self._unlist(running)
        failure = running.generation.failure
        if failure is not None and failure.code == "queue_timeout":
            self._turned_away[retry_key(running.key, running.agent)] = running.run.terms.ordered_by
            if len(self._turned_away) > RETRIES_KEPT:
                self._turned_away.popitem(last=False)

    def _first_arrival(self, key: bytes, now: float) -> float:
        """Return when this request first came: one that was turned away has waited already."""
        first = self._turned_away.pop(key, now)
        return first if now - first < RETRY_WITHIN_S + self._queue_timeout_s else now

    def _lines_for(self, inquiry: Inquiry) -> Sequence[Line]:
        request = inquiry.canonical.request
        choices = self.names.choices(request.model, inquiry.prompt_estimate, bool(request.tools))
        if not choices:
            raise ModelError("unknown_model", "no model backend is configured; add one under models.backends")
        return [self.lines[name] for name in choices]

    async def count(self, request: ChatRequest) -> int:
        """Return the tokens of a canonical request, without a slot; an estimate where no backend can tell."""
        estimate = estimate_tokens(request)
        name = self.names.find(request.model)
        if name is None or self.lines[name].trouble is not None:
            return estimate
        try:
            return await self.lines[name].backend.count(request) or estimate
        except ModelError:
            return estimate

    def models(self) -> list[str]:
        """Return the names that a client may choose from."""
        named = [*self.names.listed, *self.lines]
        return list(dict.fromkeys(named))

    def snapshot(self) -> dict[str, Any]:
        """Return the body of `GET /v1/pool`."""
        return {
            "backends": [line.snapshot() for line in self.lines.values()],
            "names": dict(self.names.given),
        }

    @property
    def troubles(self) -> list[str]:
        """Why backends take no calls now."""
        return [line.trouble.detail for line in self.lines.values() if line.trouble is not None]
