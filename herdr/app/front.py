"""The web application over all parts."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric
from starlette.applications import Starlette

from herdr import config as settings
from herdr.bus.bus import Bus
from herdr.clock import Clock
from herdr.locking.desk import Counts, Desk
from herdr.watching import Watching
from herdr.web.auth import Access, Token, make_token
from herdr.web.guard import Guard
from herdr.web.health import Health
from herdr.web.lock_numbers import lock_health, lock_metrics
from herdr.web.model_numbers import ModelNumbers
from herdr.web.streams import Streams
from herdr.web.surface import Endpoint, Front, build_methods, not_found, starlette_routes


def build_health(
    bus: Bus,
    path: Path,
    streams: Streams,
    watching: Watching,
    models: ModelNumbers,
    locks: Counts,
    clock: Clock,
    warnings: tuple[str, ...],
) -> Health:
    """Build the health endpoints over all parts."""

    def store() -> Mapping[str, Any]:
        sizes = [Path(f"{path}{end}").stat().st_size for end in ("", "-wal") if Path(f"{path}{end}").exists()]
        return {"kind": "sqlite", "first": bus.log.first, "head": bus.log.head, "bytes": sum(sizes)}

    def extra() -> Mapping[str, Any]:
        troubles = [*watching.troubles(), *models.troubles]
        return {
            "workspaces": watching.state(),
            "troubles": troubles,
            "warnings": list(warnings),
            "locks": lock_health(locks),
        }

    def families() -> Iterator[Metric]:
        yield from models.metrics()
        yield from lock_metrics(locks)

    return Health(
        bus, streams, models, started=clock.monotonic(), store=store, extra=extra, families=families
    )


def tokens_of(section: settings.AuthSection) -> list[Token]:
    """Return the kept form of the configured tokens."""
    return [make_token(t.name, t.token or "", t.scopes) for t in section.tokens]


def build_access(
    section: settings.AuthSection,
    peers_allowed: frozenset[str] | None,
    by_cookie: Callable[[str], Token | None],
) -> Access:
    """Build what tells who may call. `by_cookie`: the token that a browser's session stands for."""
    return Access(tokens_of(section), None if section.open else peers_allowed, by_cookie)


def build_front(
    listed: list[Endpoint],
    sockets: dict[str, Any],
    access: Access,
    desk: Desk,
    allowed_hosts: tuple[str, ...],
) -> Front:
    """Build the web application over all endpoints."""
    by_path = build_methods(listed, access, desk.carried)
    starlette = Starlette(routes=starlette_routes(by_path, sockets))
    starlette.router.default = not_found
    starlette.router.redirect_slashes = False
    fixed = {path: methods for path, methods in by_path.items() if "{" not in path}
    return Front(fixed, starlette, Guard(allowed_hosts))
