"""The small endpoints: the routing table, acknowledgements, redaction."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from herdr.bus.bus import Bus
from herdr.bus.cursor import format_cursor
from herdr.bus.rulebook import Listed
from herdr.config import RouteRule
from herdr.errors import FieldError, InvalidInput
from herdr.event import Name
from herdr.web.asgi import JSON, Receive, Reply, Scope, read_body, respond, respond_json
from herdr.web.auth import Caller
from herdr.web.problems import Refused
from herdr.web.query import parse_seq
from herdr.web.sse import event_json

SMALL_BODY_MAX = 64 * 1024  # a rule or a cursor; nothing here is large


class AckBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/targets/{name}/ack`."""

    cursor: str


class Acknowledged(msgspec.Struct):
    """Answer to an acknowledgement: the place that is now remembered."""

    target: str
    cursor: str


class RouteList(msgspec.Struct):
    """Answer to `GET /v1/routes`."""

    routes: list[dict[str, Any]]


class WorkspaceBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/workspaces`."""

    path: str
    name: Name | None = None


class Workspaces(Protocol):
    """What the API needs of the watched folders."""

    async def add(self, name: str | None, path: str) -> str:
        """Watch a folder; returns its name."""
        ...

    async def remove(self, name: str) -> None:
        """Stop watching a folder."""
        ...

    def state(self) -> Mapping[str, Any]:
        """Return each folder's counts, by name."""
        ...

    def paths(self) -> Mapping[str, str]:
        """Return each folder's path, by name."""
        ...

    def roots(self) -> Mapping[str, tuple[str, ...]]:
        """Return the paths under which clients elsewhere know each folder, by name."""
        ...


def _shown(listed: Listed) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(listed.rule)
    return {**shown, "origin": listed.origin}


def _decode(body: bytes, type_: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, RecursionError) as error:
        text, _, place = str(error).partition(" - at `$")
        field = place.strip("`.") if place else ""
        detail = f"{field}: {text}" if field else text
        raise InvalidInput(f"the body does not fit: {detail}", errors=[FieldError(field, text)]) from None


class RoutesApi:
    """The handlers of `/v1/routes`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the rules in force and where each came from."""
        await respond_json(send, 200, {"routes": [_shown(listed) for listed in self._bus.rulebook.listed()]})

    async def get(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with one rule."""
        await respond_json(send, 200, _shown(self._bus.rulebook.get(scope["path_params"]["name"])))

    async def put(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Set a rule; it is in force, and kept, when the answer comes."""
        name = _rule_name(scope)
        rule = _decode(await read_body(scope, receive, SMALL_BODY_MAX), RouteRule)
        if rule.context != "none" and not caller.may("context"):
            raise Refused(
                "missing_scope",
                f"the token {caller.name!r} lacks the scope 'context', which a rule with `context` asks for",
            )
        is_new = all(listed.rule.name != name for listed in self._bus.rulebook.listed())
        listed = await self._bus.set_route(name, rule)
        await respond_json(send, 201 if is_new else 200, _shown(listed))

    async def delete(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Remove a rule."""
        await self._bus.delete_route(scope["path_params"]["name"])
        await respond(send, 204, b"", [])


def _rule_name(scope: Scope) -> str:
    try:
        return msgspec.convert(scope["path_params"]["name"], Name)
    except msgspec.ValidationError:
        raise InvalidInput(
            "a rule's name is 1 to 128 characters without control characters", "bad_rule"
        ) from None


class AckTarget:
    """The handler of `POST /v1/targets/{name}/ack`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Remember how far a target has got."""
        body: AckBody = _decode(await read_body(scope, receive, SMALL_BODY_MAX), AckBody)
        name = scope["path_params"]["name"]
        positions = await self._bus.subscriptions.ack(name, body.cursor)
        await respond_json(send, 200, Acknowledged(name, format_cursor(self._bus.epoch, positions)))


class RedactEvent:
    """The handler of `POST /v1/events/{seq}/redact`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Blank an event's payload for good, and answer with what is left of it."""
        event = await self._bus.redact(parse_seq(scope["path_params"]["seq"]))
        await respond(send, 200, event_json(event, self._bus.epoch), JSON)


class WorkspacesApi:
    """The handlers of `/v1/workspaces`."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the watched folders and their counts."""
        states, roots = self._workspaces.state(), self._workspaces.roots()
        found = [
            {"name": name, "path": path, "roots": roots[name], **states[name]}
            for name, path in self._workspaces.paths().items()
        ]
        await respond_json(send, 200, {"workspaces": found})

    async def add(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Watch one more folder, also after restarts."""
        body: WorkspaceBody = _decode(await read_body(scope, receive, SMALL_BODY_MAX), WorkspaceBody)
        name = await self._workspaces.add(body.name, body.path)
        await respond_json(send, 201, {"name": name, "path": body.path})

    async def remove(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Stop watching a folder."""
        await self._workspaces.remove(scope["path_params"]["name"])
        await respond(send, 204, b"", [])
