"""`/healthz`, `/livez`, `/readyz`, `/metrics`: how the gateway is. None of them calls a model."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from prometheus_client.core import Metric

from herdr import __version__
from herdr.bus.bus import Bus
from herdr.event import LANE_NAMES
from herdr.web.asgi import Headers, Receive, Reply, Scope, respond, respond_json
from herdr.web.auth import Caller
from herdr.web.metrics import CONTENT_TYPE, Snapshot, render
from herdr.web.streams import Streams

NO_STORE: Headers = [(b"cache-control", b"no-store")]
Numbers = Callable[[], Mapping[str, Any]]


class Models(Protocol):
    """The model pool, as far as health is concerned."""

    def backends(self) -> list[dict[str, Any]]:
        """Return what everybody may know of each backend."""
        ...


class Health:
    """Gathers the numbers of all parts. `store` and `extra` add what only the composition root knows of.

    `families`: the metrics of the parts beside the bus.
    """

    def __init__(
        self,
        bus: Bus,
        streams: Streams,
        models: Models,
        *,
        started: float,
        store: Numbers,
        extra: Numbers,
        families: Callable[[], Iterable[Metric]],
    ) -> None:
        self._bus = bus
        self._models = models
        self._streams = streams
        self._started = started
        self._store = store
        self._extra = extra
        self._families = families

    async def healthz(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with everything; 503 while the log cannot be written."""
        report = self.report()
        await respond_json(send, 503 if report["status"] == "failing" else 200, report, NO_STORE)

    async def livez(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer that the event loop turns."""
        await respond_json(send, 200, {"status": "ok"}, NO_STORE)

    async def readyz(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer whether requests are welcome: not while the log fails, nor during a stop."""
        reasons = [why for why in (self._bus.failure, "stopping" if self._streams.stopping else None) if why]
        body = {"status": "failing", "reasons": reasons} if reasons else {"status": "ok"}
        await respond_json(send, 503 if reasons else 200, body, NO_STORE)

    async def metrics(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer in Prometheus' text format."""
        await respond(
            send,
            200,
            render(self._snapshot(), self._families()),
            [(b"content-type", CONTENT_TYPE.encode()), *NO_STORE],
        )

    def report(self) -> dict[str, Any]:
        """Return the body of `/healthz` (PROTOCOL section 6)."""
        now = self._streams.now()
        publisher, subscriptions = self._bus.publisher, self._bus.subscriptions
        depths = publisher.depths
        extra = dict(self._extra())
        warnings = extra.pop("warnings", [])
        reasons = [why for why in (self._bus.failure, *extra.pop("troubles", ())) if why]
        status = "failing" if self._bus.failure else "degraded" if reasons else "ok"
        return {
            "status": status,
            "reasons": reasons,
            "warnings": warnings,
            "version": __version__,
            "uptime_s": round(now - self._started, 3),
            "connections": {"sse": self._streams.sse, "websocket": self._streams.websocket},
            "queue_depth": {**dict(zip(LANE_NAMES, depths, strict=True)), "total": sum(depths)},
            "throughput": {
                "published_per_s": publisher.committed.per_second(now),
                "delivered_per_s": subscriptions.delivered.per_second(now),
            },
            "head": self._bus.head,
            "epoch": self._bus.epoch,
            "dropped": {
                "rate_limited": publisher.dropped.get("rate_limited", 0),
                "overloaded": publisher.dropped.get("overloaded", 0),
                "expired": subscriptions.expired,
            },
            "backends": self._models.backends(),
            "store": dict(self._store()),
            **extra,
        }

    def _snapshot(self) -> Snapshot:
        publisher, subscriptions, store = self._bus.publisher, self._bus.subscriptions, self._store()
        return Snapshot(
            version=__version__,
            uptime_s=self._streams.now() - self._started,
            connections={"sse": self._streams.sse, "websocket": self._streams.websocket},
            queue_depth=dict(zip(LANE_NAMES, publisher.depths, strict=True)),
            receipts=publisher.receipts,
            dropped=publisher.dropped,
            published=publisher.committed.total,
            delivered=subscriptions.delivered.total,
            expired=subscriptions.expired,
            head=self._bus.head,
            first=self._bus.log.first,
            log_writable=self._bus.failure is None,
            store_bytes=store.get("bytes"),
        )
