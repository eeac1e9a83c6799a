"""The surface of the dashboard: its page and files, who is signed in, and what its views read."""

import asyncio

from herdr import __version__
from herdr.bus.bus import Bus
from herdr.bus.explain import explain
from herdr.event import Draft
from herdr.web.asgi import Receive, Reply, Scope, header, read_body, respond_json
from herdr.web.auth import SIGNED_IN, Caller
from herdr.web.browser_sessions import BrowserSessions, TicketBody
from herdr.web.clients import Clients
from herdr.web.drafts import parse_tried
from herdr.web.live import Live
from herdr.web.static_files import StaticFiles
from herdr.web.surface import PUBLIC, Endpoint

FOLLOW, ROUTES = "events:follow", "routes"
PAGE = "index.html"
AROUND_DATA_MAX = 128 * 1024  # bytes of a tried event beside its payload: `ext` may have half of them


def dashboard_endpoints(
    bus: Bus, live: Live, clients: Clients, sessions: BrowserSessions, files: StaticFiles, data_max: int
) -> list[Endpoint]:
    """Return the endpoints of the dashboard."""
    root, tried = Root(files), TryRoutes(bus, data_max)
    used = {401: "the link was used already, or is too old"}
    return [
        Endpoint("GET", "/", PUBLIC, root.get, "The dashboard; to others than browsers, what this is"),
        Endpoint("GET", "/dashboard/{file:path}", PUBLIC, files.get, "A file of the dashboard"),
        Endpoint("GET", "/v1/me", SIGNED_IN, sessions.me, "Who asks, and what that one may do"),
        Endpoint(
            "POST", "/v1/browser-links", SIGNED_IN, sessions.link, "A link that signs a browser in once"
        ),
        Endpoint("POST", "/v1/browser-sessions", PUBLIC, sessions.sign_in, "Sign in", TicketBody, None, used),
        Endpoint("DELETE", "/v1/browser-sessions", PUBLIC, sessions.sign_out, "Sign out"),
        Endpoint("GET", "/v1/live", FOLLOW, live.follow, "What a dashboard shows, as one stream"),
        Endpoint("GET", "/v1/clients", FOLLOW, clients.list, "Who takes part"),
        Endpoint("POST", "/v1/routes/try", ROUTES, tried.explain, "Try an event against the table", Draft),
    ]


class Root:
    """The handler of `/`: clients of models probe it before they ask anything, and browsers show it."""

    def __init__(self, files: StaticFiles) -> None:
        self._files = files

    async def get(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the page, or with what this is."""
        if "text/html" in (header(scope, b"accept") or ""):
            await self._files.send(scope, send, PAGE)
        else:
            await respond_json(send, 200, {"name": "herdr", "version": __version__, "api": "/openapi.json"})


class TryRoutes:
    """The handler of `/v1/routes/try`: nothing is published."""

    def __init__(self, bus: Bus, data_max: int) -> None:
        self._bus = bus
        self._data_max = data_max

    async def explain(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Say where an event would go, and why."""
        body = await read_body(scope, receive, self._data_max + AROUND_DATA_MAX, "leave some of `data` out")
        draft = parse_tried(body, self._data_max)
        rules = [listed.rule for listed in self._bus.rulebook.listed()]
        source = draft.source or caller.name
        said = await asyncio.to_thread(explain, rules, draft, source)  # a thousand rules take 0.2 s
        await respond_json(send, 200, said)
