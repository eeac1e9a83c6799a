"""The whole surface on one screen: every method and path, the scope that it asks for, and who answers."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from herdr import __version__
from herdr.bus.beside import Beside
from herdr.bus.bus import Bus
from herdr.config import RouteRule
from herdr.event import Draft, Receipt
from herdr.web.api import (
    AckBody,
    Acknowledged,
    AckTarget,
    RedactEvent,
    RouteList,
    RoutesApi,
    WorkspaceBody,
    Workspaces,
    WorkspacesApi,
)
from herdr.web.asgi import Receive, Reply, Scope, respond
from herdr.web.auth import Access, Caller
from herdr.web.connect import Connect
from herdr.web.follow import FollowEvents, GetEvent
from herdr.web.health import Health
from herdr.web.lock_desk import Desk
from herdr.web.openapi import describe
from herdr.web.publish import PublishEvents
from herdr.web.streams import Streams
from herdr.web.surface import PUBLIC, Endpoint

PUBLISH, FOLLOW, ROUTES, ADMIN = "events:publish", "events:follow", "routes", "admin"

RECEIPTS = {
    202: "deferred, or dropped for the rate: not stored yet, or not at all",
    409: "stale: `based_on` is older than the subject's version",
    413: "the body, or an event's data, is too large",
    503: "dropped for overload, or the log cannot be written; try again after Retry-After",
}


def endpoints(
    bus: Bus,
    streams: Streams,
    health: Health,
    workspaces: Workspaces,
    others: Iterable[Endpoint],
    body_max: int,
    data_max: int,
    beside: Beside | None = None,
) -> list[Endpoint]:
    """Return every HTTP endpoint of the gateway; `others`: those of `model_routes` and `lock_routes`.

    `beside`: what rules may put beside events; the same for `websockets`, or they look everything up twice.
    """
    publish = PublishEvents(bus.publisher, body_max, data_max)
    follow = FollowEvents(bus.subscriptions, streams, bus.epoch, beside)
    event, redact = GetEvent(bus, bus.epoch), RedactEvent(bus)
    routes, ack, folders = RoutesApi(bus), AckTarget(bus), WorkspacesApi(workspaces)
    listed = [
        Endpoint(
            "POST", "/v1/events", PUBLISH, publish, "Publish events", Draft | list[Draft], Receipt, RECEIPTS
        ),
        Endpoint("GET", "/v1/events", FOLLOW, follow, "Follow events over SSE, or read a page of them"),
        Endpoint("GET", "/v1/events/{seq}", FOLLOW, event, "Read one whole event"),
        Endpoint("POST", "/v1/events/{seq}/redact", ADMIN, redact, "Blank an event's payload for good"),
        Endpoint(
            "POST",
            "/v1/targets/{name:path}/ack",
            FOLLOW,
            ack,
            "Acknowledge as a target",
            AckBody,
            Acknowledged,
        ),
        Endpoint("GET", "/v1/routes", ROUTES, routes.list, "List the routing table", None, RouteList),
        Endpoint("GET", "/v1/routes/{name:path}", ROUTES, routes.get, "Read one rule", None, RouteRule),
        Endpoint(
            "PUT",
            "/v1/routes/{name:path}",
            ROUTES,
            routes.put,
            "Set a rule",
            RouteRule,
            RouteRule,
            {201: "the rule is new"},
        ),
        Endpoint("DELETE", "/v1/routes/{name:path}", ROUTES, routes.delete, "Remove a rule"),
        Endpoint("GET", "/v1/workspaces", FOLLOW, folders.list, "List the watched folders"),
        Endpoint("POST", "/v1/workspaces", ADMIN, folders.add, "Watch a folder", WorkspaceBody),
        Endpoint("DELETE", "/v1/workspaces/{name:path}", ADMIN, folders.remove, "Stop watching a folder"),
        *others,
        Endpoint("GET", "/healthz", PUBLIC, health.healthz, "How the gateway is"),
        Endpoint("GET", "/livez", PUBLIC, health.livez, "Whether the process answers"),
        Endpoint("GET", "/readyz", PUBLIC, health.readyz, "Whether requests are welcome"),
        Endpoint("GET", "/metrics", PUBLIC, health.metrics, "Numbers for Prometheus"),
    ]
    description = Description(listed)
    return [*listed, Endpoint("GET", "/openapi.json", PUBLIC, description, "This description")]


def websockets(
    bus: Bus,
    streams: Streams,
    access: Access,
    data_max: int,
    desk: Desk,
    beside: Beside | None = None,
) -> dict[str, Any]:
    """Return the WebSocket applications by path."""
    return {"/v1/connect": Connect(bus, streams, access, data_max, desk, beside)}


class Description:
    """The handler of `/openapi.json`: rendered once."""

    def __init__(self, described: Sequence[Endpoint]) -> None:
        self._body = msgspec.json.encode(describe(described, __version__))

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the OpenAPI document."""
        await respond(send, 200, self._body)
