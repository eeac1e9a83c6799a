"""Model calls on the bus: each becomes a `model.call`, its turns `session.message`s, and a row for `/v1/calls`."""

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import msgspec

from herdr.bus.publish import Publisher
from herdr.clock import Clock, rfc3339
from herdr.errors import LogUnavailable
from herdr.event import Lane
from herdr.pool.identity import clean
from herdr.pool.numbers import Numbers
from herdr.pool.records import Audit, CallRecord, events_of
from herdr.pool.run import Outcome

CALLS_KEPT = 1000  # rows for `/v1/calls`, half a KiB each; older calls are in the log as `model.call`
COMMIT_S = 5.0  # an answer does not wait longer for its record: a full disk must not hold up agents

_log = logging.getLogger("herdr.pool")
_decode = msgspec.json.Decoder(CallRecord).decode


class Recording:
    """Records outcomes; the newest rows survive a restart in a ring of fixed size beside the log."""

    def __init__(
        self,
        publisher: Publisher,
        remember: Callable[[str, str, bytes | None], Awaitable[None]],
        clock: Clock,
        audit: Audit,
        remembered: Mapping[str, bytes],
    ) -> None:
        self.numbers = Numbers()
        self.outcomes: Counter[str] = Counter()
        """Calls since the start by how they ended: `ok` or the code of the failure."""
        self._publisher = publisher
        self._remember = remember
        self._clock = clock
        self._audit: Audit = audit
        self._rows: deque[CallRecord] = deque(maxlen=CALLS_KEPT)
        kept = sorted(_readable(remembered), key=lambda found: found[1].call)  # ULIDs begin with their time
        self._rows.extend(row for _, row in kept)
        self._next = (int(kept[-1][0]) + 1) % CALLS_KEPT if kept else 0

    async def __call__(self, outcome: Outcome) -> None:
        """Commit what a call leaves behind; a log that cannot be written costs the record, not the answer."""
        record = self._record_of(outcome)
        self._rows.append(record)
        self.outcomes[record.error or "ok"] += 1
        self.numbers.add(record)
        request = outcome.inquiry.canonical.request
        audit: Audit = "metadata" if outcome.inquiry.is_own else self._audit
        events = [
            self._publisher.own_event(
                e.type,
                e.data,
                lane=Lane.P2 if e.background else Lane.P1,
                session=e.session,
                routed=not e.background,
            )
            for e in events_of(record, request, outcome.inquiry.user_text, outcome.chunks, audit)
        ]
        place, self._next = self._next, (self._next + 1) % CALLS_KEPT
        row = self._remember("call", f"{place:04d}", msgspec.json.encode(record))
        try:
            async with asyncio.timeout(COMMIT_S):
                receipts, _ = await asyncio.gather(self._publisher.record(events), row)
            if receipts[0].status == "dropped":
                _log.error("call %s is not in the log: too many events wait for it", record.call)
        except (TimeoutError, LogUnavailable) as error:
            why = str(error) or f"no commit within {COMMIT_S:g} s"
            _log.error("call %s was not recorded: %s", record.call, why)

    def _record_of(self, outcome: Outcome) -> CallRecord:
        caller, canonical = outcome.inquiry.caller, outcome.inquiry.canonical
        now_us = self._clock.wall_us()
        took_s = outcome.over - outcome.arrived

        def since_arrival(at: float | None) -> int | None:
            return None if at is None else round(1000 * (at - outcome.arrived))

        return CallRecord(
            call=outcome.call,
            time=rfc3339(now_us - int(1e6 * took_s)),
            agent=caller.shown,
            session=caller.session,
            route=caller.route,
            priority=caller.priority,
            backend=outcome.backend,
            model=clean(canonical.request.model) or "",
            slot=outcome.slot,
            queue_ms=since_arrival(outcome.placed),
            first_token_ms=since_arrival(outcome.first_token),
            total_ms=round(1000 * took_s),
            prompt_tokens=outcome.usage.prompt,
            cached_tokens=outcome.usage.cached,
            output_tokens=outcome.usage.output,
            stop_reason=None if outcome.end is None else outcome.end.stop_reason,
            changed=outcome.changed,
            error=outcome.error,
        )

    def rows(
        self, limit: int, *, agent: str | None = None, route: str | None = None, after: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the newest calls first; `after`: only those newer than this call."""
        found: list[dict[str, Any]] = []
        for row in reversed(self._rows):
            if row.call == after or len(found) == limit:
                break
            if agent in (None, row.agent) and route in (None, row.route):
                found.append(msgspec.to_builtins(row))
        return found


def _readable(remembered: Mapping[str, bytes]) -> Iterator[tuple[str, CallRecord]]:
    """Yield the rows by their places, without those that another version wrote in another form."""
    for place, row in remembered.items():
        with contextlib.suppress(msgspec.MsgspecError):
            yield place, _decode(row)
