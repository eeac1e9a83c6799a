"""The gateway, asked over the address in use: how it is, its clock, our token, backends, workspaces."""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from herdr.cli.checks.finding import Finding, fail, ok, skip, warn
from herdr.cli.client import ANSWER_MAX, TOKEN_VARIABLE, Answer, Gateway, part_of
from herdr.cli.terminal import counted, span
from herdr.config import Backend
from herdr.errors import HerdrError

SKEW_MAX_S = 2.0  # the header `Date` has whole seconds
CONNECT_S = 3.0
WORKSPACES_SHOWN = 32  # as many as a gateway watches


class Heard(NamedTuple):
    """What the gateway said about itself, and when."""

    health: Mapping[str, Any]
    date: datetime | None
    """By the gateway's clock."""
    at: datetime
    """By ours."""


def hear(gateway: Gateway, now_us: int) -> Heard:
    """Ask how the gateway is; raises HerdrError when there is none."""
    connection, response = gateway.open("GET", "/healthz")
    try:
        raw, date = response.read(ANSWER_MAX), response.headers.get("date")
        value = json.loads(raw)
    except (OSError, http.client.HTTPException) as error:
        raise gateway.unreachable(error, sent=True) from None
    except ValueError:
        raise gateway.stranger(response.status) from None
    finally:
        connection.close()
    if not isinstance(value, dict) or value.get("status") not in ("ok", "degraded", "failing"):
        raise gateway.problem(Answer(response.status, value))
    return Heard(value, _moment(date), datetime.fromtimestamp(now_us / 1e6, UTC))


def _moment(date: str | None) -> datetime | None:
    try:
        return None if date is None else parsedate_to_datetime(date)
    except ValueError:
        return None


def state(heard: Heard) -> Iterator[Finding]:
    """Tell how the gateway says that it is."""
    health = heard.health
    said = f"herdr {health.get('version')}, up {span(health.get('uptime_s') or 0)}"
    reasons = "; ".join(map(str, health.get("reasons") or ()))
    if health["status"] == "failing":
        yield fail(
            "gateway",
            f"{said}, failing: {reasons}",
            "see its log; `herdr status` shows when it is well again",
        )
    elif health["status"] == "degraded":
        yield warn("gateway", f"{said}, degraded: {reasons}", "see the lines below, and its log")
    else:
        yield ok("gateway", said)
    for warning in health.get("warnings") or ():
        yield warn("gateway", str(warning), "see the how-to on tokens")


def clock(heard: Heard) -> Finding:
    """Compare the gateway's clock with ours."""
    if heard.date is None:
        return skip("clock", "the answer has no Date")
    skew = (heard.date - heard.at).total_seconds()
    if abs(skew) > SKEW_MAX_S:
        ahead = "ahead of" if skew > 0 else "behind"
        return warn(
            "clock",
            f"the gateway's clock is {span(abs(skew))} {ahead} this one: times of events and leases look wrong",
            "set both by the network (`timedatectl set-ntp true`)",
        )
    return ok("clock", f"within {SKEW_MAX_S:g} s of the gateway's")


def token(gateway: Gateway, given: str | None, in_environment: bool) -> Iterator[Finding]:
    """Look at what the token in use allows."""
    try:
        me = gateway.read("/v1/me")
    except HerdrError as error:
        if error.code == "unauthorized":
            yield fail("token", error.detail, f"set {TOKEN_VARIABLE} to one of the gateway's auth.tokens")
        else:
            yield skip("token", error.detail)
        return
    if given and not in_environment:
        yield warn(
            "token",
            "it stands on the command line, where other users see it",
            f"set {TOKEN_VARIABLE} instead",
        )
    scopes = me.get("scopes")
    if me.get("open"):
        yield ok("token", "the gateway asks for none")
    elif scopes is None:
        yield ok("token", f"{me.get('name')}, which may do everything")
    else:
        yield ok("token", f"{me.get('name')}: {', '.join(map(str, scopes))}")


def backends(heard: Heard, local: list[str], inside: bool) -> Iterator[Finding]:
    """Tell how the gateway sees its backends; it only connects to them, as a request might be paid for."""
    seen = heard.health.get("backends") or ()
    if not seen:
        yield ok("backends", "no model is configured")
    for backend in seen:
        name, how = str(backend.get("name")), str(backend.get("state"))
        if how == "unreachable":
            fix = "start it, or correct its url"
            if inside and name in local:
                fix = "in a container localhost is the container: use host.docker.internal in its url"
            yield fail("backends", f"{name} cannot be reached by the gateway", fix)
        elif how == "ready":
            yield ok("backends", f"{name} is ready")
        else:
            yield warn("backends", f"{name} is {how}", "wait, and see `herdr pool`")


def reach_backends(configured: tuple[Backend, ...], inside: bool) -> Iterator[Finding]:
    """Without a gateway: try whether the backends take connections from here."""
    if not configured:
        yield ok("backends", "no model is configured")
    for backend in configured:
        parts = urlsplit(backend.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            socket.create_connection((parts.hostname or "", port), CONNECT_S).close()
        except OSError as error:
            fix = "start it, or correct its url"
            if inside and parts.hostname in ("localhost", "127.0.0.1", "::1"):
                fix = "in a container localhost is the container: use host.docker.internal in its url"
            yield fail("backends", f"{backend.name} takes no connection: {error.strerror or error}", fix)
        else:
            yield ok("backends", f"{backend.name} takes connections")


def workspaces(gateway: Gateway, heard: Heard) -> Iterator[Finding]:
    """Tell how the watched folders are, and their indexes."""
    watched = heard.health.get("workspaces") or {}
    if not watched:
        yield warn(
            "workspaces", "no folder is watched: there is no project graph", "run `herdr workspace add PATH`"
        )
    for name, seen in list(watched.items())[:WORKSPACES_SHOWN]:
        said = f"{name}: {seen.get('status')}, {counted(seen.get('files') or 0, 'file')}"
        if note := seen.get("note"):
            yield warn("workspaces", f"{said}: {note}", "see `herdr workspace list`")
        else:
            yield ok("workspaces", said)
        yield _index(gateway, str(name))


def _index(gateway: Gateway, name: str) -> Finding:
    try:
        graph = gateway.read(f"/v1/context/{part_of(name)}").get("graph") or {}
    except HerdrError as error:
        return skip("index", f"{name}: {error.detail}")
    how = str(graph.get("state"))
    said = f"{name}: {how}"
    if how == "ready":
        return ok("index", f"{said}, {counted(graph.get('symbols') or 0, 'symbol')}")
    if how == "indexing":
        return ok("index", said)
    detail = f"{said} ({graph['detail']})" if graph.get("detail") else said
    return warn("index", detail, f"run `herdr index --workspace {name}`")
