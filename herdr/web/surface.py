"""How a request finds its handler: guard, route, method, access, handler; and how errors leave.

Every endpoint declares the scope that it asks for; one without a declaration cannot be built. Access is
judged on the matched endpoint and never on the request's address (CVE-2026-48710).
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import BaseRoute, Route, WebSocketRoute

from herdr.errors import HerdrError
from herdr.web.asgi import (
    ClientGone,
    Headers,
    Receive,
    Reply,
    Scope,
    Send,
    refuse_handshake,
    respond,
    respond_problem,
)
from herdr.web.auth import Access, Caller
from herdr.web.guard import Guard
from herdr.web.lock_bodies import TOKEN_HEADER, parse_tokens
from herdr.web.problems import Refused

Handler = Callable[[Scope, Receive, Reply, Caller], Awaitable[None]]
Refuse = Callable[[HerdrError], tuple[int, bytes, Headers]]
"""Gives an error the form that an endpoint's clients know: status, body and headers."""

Carried = Callable[[Sequence[int]], Awaitable[None]]
"""Renews the leases whose tokens a request carries; raises HerdrError when one is not held any more."""

LOCKS = "locks"
"""The scope of locks, which also a request that carries tokens needs."""

PUBLIC = None
"""The scope of the few endpoints that need none: health, and the description of the API."""

_log = logging.getLogger("herdr.web")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path: the unit of access, of documentation and of tests."""

    method: str
    path: str
    scope: str | None
    handler: Handler
    summary: str
    request: Any = None
    """The type of the JSON body, for the API's description."""
    response: Any = None
    answers: dict[int, str] = field(default_factory=dict)
    """Statuses beside 200 and the general errors, and what they mean."""
    refuse: Refuse | None = None
    """How its errors leave; without one as problems (RFC 9457)."""


class Methods:
    """All endpoints of one path, as an ASGI application."""

    def __init__(self, endpoints: Sequence[Endpoint], access: Access, carried: Carried) -> None:
        self._by_method = {e.method: e for e in endpoints}
        if "GET" in self._by_method:
            self._by_method.setdefault("HEAD", self._by_method["GET"])
        self._allow = ", ".join(sorted(self._by_method))
        self._access = access
        self._carried = carried

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it; whatever is raised leaves as a problem."""
        reply = Reply(scope, send)
        endpoint = None
        try:
            endpoint = self._by_method.get(scope["method"])
            if endpoint is None:
                raise Refused(
                    "method_not_allowed",
                    f"{scope['method']} does not go with {scope['path']}; use {self._allow}",
                    {"allow": self._allow},
                )
            caller = self._access.admit(scope, endpoint.scope)
            if tokens := [value for name, value in scope["headers"] if name == TOKEN_HEADER]:
                self._access.admit(scope, LOCKS)  # also where the endpoint itself is public
                await self._carried(parse_tokens(tokens))
            await endpoint.handler(scope, receive, reply, caller)
        except HerdrError as error:
            if not reply.started:
                await _respond_error(reply, endpoint, error)
        except ClientGone:
            pass
        except Exception:
            _log.exception("a handler failed: %s %s", scope["method"], scope["path"])
            if reply.started:
                raise
            mistake = HerdrError("the gateway made a mistake; its log says which")
            await _respond_error(reply, endpoint, mistake)


async def _respond_error(reply: Reply, endpoint: Endpoint | None, error: HerdrError) -> None:
    if endpoint is None or endpoint.refuse is None:
        await respond_problem(reply, error)
    else:
        await respond(reply, *endpoint.refuse(error))


class Front:
    """The outermost application: guards every request, finds fixed paths by a look-up, the rest by routing."""

    def __init__(self, fixed: dict[str, Methods], fallback: Any, guard: Guard) -> None:
        self._fixed = fixed
        self._fallback = fallback
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] != "lifespan":
            try:
                self._guard.check(scope)
            except Refused as error:
                await _refuse(scope, send, error)
                return
            if scope["type"] == "http" and (methods := self._fixed.get(scope["path"])) is not None:
                await methods(scope, receive, send)
                return
        await self._fallback(scope, receive, send)


async def _refuse(scope: Scope, send: Send, error: Refused) -> None:
    if scope["type"] == "websocket":
        await refuse_handshake(send, error)
    else:
        await respond_problem(Reply(scope, send), error)


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer for a path that nothing is at."""
    hint = (
        "the WebSocket is /v1/connect"
        if scope["type"] == "websocket"
        else "/openapi.json lists what there is"
    )
    await _refuse(scope, send, Refused("not_found", f"nothing is at {scope['path'][:200]}; {hint}"))


class UpgradeRequired:
    """Answers plain HTTP on the path of a WebSocket."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say what the path takes."""
        detail = (
            f"{scope['path']} is a WebSocket; ask with `Upgrade: websocket`, or follow over GET /v1/events"
        )
        await _refuse(scope, send, Refused("upgrade_required", detail, {"upgrade": "websocket"}))


def build_methods(endpoints: Sequence[Endpoint], access: Access, carried: Carried) -> dict[str, Methods]:
    """Group endpoints by path; `carried` renews the leases that requests carry the tokens of."""
    paths = dict.fromkeys(endpoint.path for endpoint in endpoints)
    return {path: Methods([e for e in endpoints if e.path == path], access, carried) for path in paths}


def starlette_routes(by_path: dict[str, Methods], websockets: dict[str, Any]) -> list[BaseRoute]:
    """Return Starlette's routes; methods are judged by `Methods`, so that 405 is a problem too."""
    routes: list[BaseRoute] = [Route(path, app) for path, app in by_path.items()]
    routes.extend(WebSocketRoute(path, app) for path, app in websockets.items())
    routes.extend(Route(path, UpgradeRequired()) for path in websockets)
    return routes
