"""`/metrics`: the gateway's numbers in Prometheus' text format.

Nothing is counted for Prometheus while events flow: a scrape reads the plain numbers that the parts keep
anyway. Labels come from fixed sets, never from users, so the number of series cannot grow.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from herdr.event import LANE_NAMES

CONTENT_TYPE = CONTENT_TYPE_LATEST

CONNECTION_KINDS = ("sse", "websocket")
RECEIPT_STATUSES = ("accepted", "duplicate", "deferred", "dropped", "stale")
DROP_REASONS = ("rate_limited", "overloaded")


class Snapshot(NamedTuple):
    """The numbers of one moment. A name that a mapping lacks counts 0; one outside its set is not shown."""

    version: str
    uptime_s: float
    connections: Mapping[str, int]
    """Open streams, by `CONNECTION_KINDS`."""
    queue_depth: Mapping[str, int]
    """Events that wait for the writer, by lane."""
    receipts: Mapping[str, int]
    """Since the start, by `RECEIPT_STATUSES`."""
    dropped: Mapping[str, int]
    """Events not stored since the start, by `DROP_REASONS`."""
    published: int
    """Events committed for publishers since the start."""
    delivered: int
    """Events written to followers since the start."""
    expired: int
    """Deliveries skipped since the start because their time was over."""
    head: int
    first: int
    log_writable: bool
    store_bytes: int | None = None


class _Reading(Collector):
    def __init__(self, snapshot: Snapshot, more: Iterable[Metric]) -> None:
        self._snapshot = snapshot
        self._more = more

    def collect(self) -> Iterable[Metric]:
        yield from _gauges(self._snapshot)
        yield from _counters(self._snapshot)
        yield from self._more


def render(snapshot: Snapshot, more: Iterable[Metric] = ()) -> bytes:
    """Return the body of `/metrics`, with `more` families at its end; its content type is `CONTENT_TYPE`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Reading(snapshot, more))
    return generate_latest(registry)


def _gauges(now: Snapshot) -> Iterable[Metric]:
    build = GaugeMetricFamily("herdr_build_info", "The running version; always 1.", labels=["version"])
    build.add_metric([now.version], 1)
    yield build
    yield GaugeMetricFamily("herdr_uptime_seconds", "Time since the start.", now.uptime_s)
    yield _labelled(
        GaugeMetricFamily("herdr_connections", "Open streams.", labels=["kind"]),
        now.connections,
        CONNECTION_KINDS,
    )
    yield _labelled(
        GaugeMetricFamily("herdr_queue_events", "Events that wait for the writer.", labels=["lane"]),
        now.queue_depth,
        LANE_NAMES,
    )
    yield GaugeMetricFamily("herdr_log_head_seq", "Newest committed seq.", now.head)
    yield GaugeMetricFamily("herdr_log_first_seq", "Oldest retained seq.", now.first)
    yield GaugeMetricFamily(
        "herdr_log_writable", "1 while the log takes writes, else 0.", int(now.log_writable)
    )
    if now.store_bytes is not None:
        yield GaugeMetricFamily("herdr_log_size_bytes", "Size of the log's files.", now.store_bytes)


def _counters(now: Snapshot) -> Iterable[Metric]:
    yield CounterMetricFamily("herdr_published_events", "Events committed for publishers.", now.published)
    yield CounterMetricFamily("herdr_delivered_events", "Events written to followers.", now.delivered)
    yield CounterMetricFamily(
        "herdr_expired_deliveries", "Deliveries skipped because their time was over.", now.expired
    )
    yield _labelled(
        CounterMetricFamily("herdr_receipts", "Answers to published events.", labels=["status"]),
        now.receipts,
        RECEIPT_STATUSES,
    )
    yield _labelled(
        CounterMetricFamily("herdr_dropped_events", "Events not stored.", labels=["reason"]),
        now.dropped,
        DROP_REASONS,
    )


def _labelled(
    family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, int], names: Sequence[str]
) -> Metric:
    for name in names:  # all of them, always: a series that appears with its first event hides that event
        family.add_metric([name], values.get(name, 0))
    return family
