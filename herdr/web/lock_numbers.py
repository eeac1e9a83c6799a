"""The numbers of write locks, for `/healthz` and `/metrics`."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

MODES = ("write", "intent")


class Counts(Protocol):
    """What is counted."""

    @property
    def held(self) -> Mapping[str, int]:
        """Locks that are held, by mode."""
        ...

    @property
    def waiting(self) -> int:
        """Requests that stand in line."""
        ...

    @property
    def waits(self) -> int:
        """Declared waits."""
        ...

    @property
    def denied(self) -> int:
        """Requests refused since the start because others were in the way."""
        ...

    @property
    def deadlocks(self) -> int:
        """Requests refused since the start because they would have waited for ever."""
        ...


def lock_health(counts: Counts) -> dict[str, Any]:
    """Return what `/healthz` says of the locks."""
    return {"held": sum(counts.held.values()), "waiting": counts.waiting, "waits": counts.waits}


def lock_metrics(counts: Counts) -> Iterable[Metric]:
    """Yield the families of `/metrics`."""
    held = GaugeMetricFamily("herdr_locks_held", "Write locks that are held.", labels=["mode"])
    for mode in MODES:
        held.add_metric([mode], counts.held.get(mode, 0))
    yield held
    yield GaugeMetricFamily("herdr_locks_waiting", "Requests for locks that stand in line.", counts.waiting)
    yield GaugeMetricFamily("herdr_locks_declared_waits", "Declared waits.", counts.waits)
    yield CounterMetricFamily("herdr_locks_denied", "Requests refused because others held.", counts.denied)
    yield CounterMetricFamily("herdr_locks_deadlocks", "Requests refused to break a cycle.", counts.deadlocks)
