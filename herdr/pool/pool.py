"""The pool: takes calls, joins identical ones, and keeps what runs."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from herdr.clock import Clock
from herdr.pool.backend import Backend
from herdr.pool.failures import ModelError, stopping
from herdr.pool.generation import Generation, Reader
from herdr.pool.joins import join_key, may_join, retry_key
from herdr.pool.line import Line
from herdr.pool.names import Names
from herdr.pool.protocols.anthropic_backend.body import essence
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.request import ChatRequest
from herdr.pool.run import Inquiry, Record, Run, Terms

RETRIES_KEPT = 1024  # calls that were turned away; as many as can wait for one backend
RETRY_WITHIN_S = 120.0  # they come back within `Retry-After`, at most 60 s, and some are slow


class _UnderWay(NamedTuple):
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
        is_stopping: Callable[[], bool],
    ) -> None:
        """`is_stopping` tells that the gateway says goodbye to its clients: then it is not they who leave."""
        self.lines = lines
        self.names = names
        self._queue_timeout_s = queue_timeout_s
        self._default_max_tokens = default_max_tokens
        self._record = record
        self._clock = clock
        self._new_id = new_id
        self._under_way: dict[bytes, _UnderWay] = {}
        self._all: set[_UnderWay] = set()
        self._turned_away: OrderedDict[bytes, float] = OrderedDict()
        self._is_stopping = is_stopping
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
        lines = self._lines_for(inquiry)
        key = self._key(inquiry, lines[0].backend)
        reader, running = self._join(inquiry, key) or self._begin(inquiry, key, lines)
        try:
            yield reader
        finally:
            if reader.generation.leave(reader) == 0 and not reader.generation.ended:
                self._unlist(running)  # who asks for the same from now on gets an answer of its own
                gone = ModelError("client_gone", "the client left")
                running.run.stop(stopping() if self._is_stopping() else gone)

    def _join(self, inquiry: Inquiry, key: bytes) -> "tuple[Reader, _UnderWay] | None":
        known = self._under_way.get(key)
        if known is None or known.generation.ended:
            return None
        caller, request = inquiry.caller, inquiry.canonical.request
        same_client = caller.agent is not None and caller.agent == known.agent
        # Claude Code asks again without streaming when a stream fails, and marks that in no way
        asks_again = caller.retry or (known.streams and not request.stream)
        if not may_join(request, asks_again, same_client):
            return None
        known.run.promote(caller.priority)
        return known.generation.read(), known

    @staticmethod
    def _key(inquiry: Inquiry, backend: Backend) -> bytes:
        """Return what two inquiries have in common that ask for the same answer."""
        key = join_key(inquiry.canonical, backend.name)
        if inquiry.verbatim is None or backend.kind != "anthropic":
            return key
        return key + essence(inquiry.verbatim, inquiry.headers)

    def _begin(self, inquiry: Inquiry, key: bytes, lines: Sequence[Line]) -> "tuple[Reader, _UnderWay]":
        if self._stopping:
            raise stopping()
        now = self._clock.monotonic()
        generation = Generation(self._new_id(), inquiry.prompt_estimate)
        reader = generation.read()
        max_tokens = inquiry.canonical.request.max_tokens
        terms = Terms(
            arrived=now,
            ordered_by=self._first_arrival(retry_key(key, inquiry.caller.agent), now),
            deadline=now + self._queue_timeout_s,
            max_tokens=self._default_max_tokens if max_tokens is None else max_tokens,
        )
        run = Run(inquiry, generation, lines, terms, self._record, self._clock)
        task = asyncio.create_task(run(), name=f"call {generation.call}")
        asks_for_stream = inquiry.canonical.request.stream
        running = _UnderWay(key, run, generation, inquiry.caller.agent, asks_for_stream, task)
        self._under_way[key] = running
        self._all.add(running)
        task.add_done_callback(lambda _: self._over(running))
        return reader, running

    def _unlist(self, running: _UnderWay) -> None:
        if self._under_way.get(running.key) is running:
            del self._under_way[running.key]

    def _over(self, running: _UnderWay) -> None:
        self._all.discard(running)
        self._unlist(running)
        failure = running.generation.failure
        if failure is not None and failure.code in ("queue_timeout", "rate_limited"):
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
        if name is None or self.lines[name].state == "unreachable":
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
        """Which backends take no calls now; without their addresses, since everybody may read it."""
        return [
            f"the backend {name} is unreachable"
            for name, line in self.lines.items()
            if line.state == "unreachable"
        ]
