"""One sample a second of what the gateway does, and the last five minutes of them, for charts."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from herdr.bus.bus import Bus
from herdr.clock import Clock, rfc3339
from herdr.web.streams import Streams

KEPT = 300  # samples: five minutes at one a second, some 150 KiB


class LockCounts(Protocol):
    """How many locks there are."""

    @property
    def held(self) -> Mapping[str, int]:
        """Held ones by mode."""
        ...

    @property
    def waiting(self) -> int:
        """Requests in line."""
        ...


class Samples:
    """Takes samples; whoever beats the time calls `take`."""

    def __init__(
        self,
        bus: Bus,
        streams: Streams,
        locks: LockCounts,
        backends: Callable[[], list[dict[str, Any]]],
        clock: Clock,
    ) -> None:
        self.kept: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._bus = bus
        self._streams = streams
        self._locks = locks
        self._backends = backends
        self._clock = clock

    def take(self) -> dict[str, Any]:
        """Take one sample, and keep it."""
        publisher, subscriptions = self._bus.publisher, self._bus.subscriptions
        now = self._clock.monotonic()
        backends = self._backends()
        sample = {
            "t": rfc3339(self._clock.wall_us()),
            "published_per_s": round(publisher.committed.per_second(now), 1),
            "delivered_per_s": round(subscriptions.delivered.per_second(now), 1),
            "depth": list(publisher.depths),
            "dropped": {
                "rate_limited": publisher.dropped.get("rate_limited", 0),
                "overloaded": publisher.dropped.get("overloaded", 0),
                "expired": subscriptions.expired,
            },
            "sse": self._streams.sse,
            "websocket": self._streams.websocket,
            "locks": sum(self._locks.held.values()),
            "lock_waiters": self._locks.waiting,
            "model": {
                "busy": sum(b["running"] for b in backends),
                "slots": sum(b["slots"] or 0 for b in backends),
                "queued": sum(b["waiting"] for b in backends),
            },
            "head": self._bus.head,
        }
        self.kept.append(sample)
        return sample
