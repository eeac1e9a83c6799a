"""Every key of the configuration: name, type, bounds, default and meaning (PROTOCOL section 8).

This is the one list. The checker, the environment variables, the JSON Schema, `config/herdr.yaml` and the
reference page are read from it or tested against it.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from herdr.config.models import ModelsSection
from herdr.config.routes import RouteRule

Scope = Literal[
    "events:publish", "events:follow", "events:p0", "routes", "admin", "locks", "context", "models", "tasks"
]

MIB = 1024 * 1024
DAY_S = 86_400

ROUTES_MAX = 1000  # each is looked at for every event whose type was not seen before
WORKSPACES_MAX = 32  # each may hold two inotify instances, of which a user usually has 128
TOKENS_MAX = 1000  # compared in constant time, so each request pays for all of them

_PRINTABLE = r"^[^\x00-\x1f\x7f]+$(?!\n)"
# A name, an IPv4 or an IPv6 address; no port, no brackets, no scheme.
_HOST = r"^([A-Za-z0-9._-]+|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)$(?!\n)"
_ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"
_BYTES = {"hint": "bytes; one MiB is 1048576"}
_HOST_NOTE = {"expected": "a name or an address, without scheme, port or brackets"}
_ENV_NOTE = {"expected": "the name of an environment variable"}

Seconds = Annotated[float, Meta(gt=0, le=3600)]


class ServerSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the gateway listens, and what one client may ask of it."""

    host: Annotated[
        str,
        Meta(
            pattern=_HOST,
            extra=_HOST_NOTE,
            description="Address to listen on; other than loopback needs tokens (see auth).",
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8787
    max_connections: Annotated[
        int,
        Meta(
            ge=1, le=100_000, description="Followers and model streams open at once; publishing never counts."
        ),
    ] = 256
    allowed_hosts: Annotated[
        tuple[Annotated[str, Meta(pattern=_HOST, extra=_HOST_NOTE)], ...],
        Meta(
            max_length=100,
            description="Names that a request's Host and Origin may carry; replaces the default.",
        ),
    ] = ("localhost", "127.0.0.1", "::1")
    body_max_bytes: Annotated[
        int, Meta(ge=1024, le=1024 * MIB, description="Largest request body, in bytes.", extra=_BYTES)
    ] = 8 * MIB
    header_timeout_s: Annotated[
        Seconds, Meta(description="Seconds within which a request's header must have arrived.")
    ] = 10
    body_timeout_s: Annotated[
        Seconds, Meta(description="Seconds within which a request's body must have arrived.")
    ] = 60
    send_timeout_s: Annotated[
        Seconds, Meta(description="Seconds after which a follower that takes no bytes is disconnected.")
    ] = 30


class RetentionSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of the log is kept; the first bound that is reached counts."""

    max_age_s: Annotated[
        int, Meta(ge=1, le=36_500 * DAY_S, description="Age of the oldest event, in seconds.")
    ] = 7 * DAY_S
    max_events: Annotated[int, Meta(ge=1, le=10**12, description="Number of events.")] = 5_000_000
    max_bytes: Annotated[
        int, Meta(ge=1, le=10**15, description="Size of all events together, in bytes.", extra=_BYTES)
    ] = 4096 * MIB


class BusSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The event bus and its log."""

    buffer_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Events that may wait for the log, and recent ones kept in memory.",
        ),
    ] = 10_000
    persist_path: Annotated[
        str,
        Meta(
            pattern=_PRINTABLE, description="File of the log; a relative one begins at the working directory."
        ),
    ] = "./data/events.db"
    durability: Annotated[
        Literal["full", "os"],
        Meta(description="What an accepted event survives: `full`, a power cut; `os`, only a crash."),
    ] = "full"
    data_max_bytes: Annotated[
        int, Meta(ge=1024, le=64 * MIB, description="Largest `data` of one event, in bytes.", extra=_BYTES)
    ] = MIB
    debounce_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="Milliseconds of quiet after which a changed file is published; 0 = at once.",
        ),
    ] = 500
    debounce_max_ms: Annotated[
        int, Meta(ge=0, le=600_000, description="Longest time that a change is held back, in milliseconds.")
    ] = 5000
    p2_per_s: Annotated[
        int, Meta(ge=0, le=1_000_000, description="P2 events per second, all sources together; 0 = no limit.")
    ] = 20
    retention: RetentionSection = RetentionSection()

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong) for what the types alone cannot say."""
        if self.debounce_max_ms < self.debounce_ms:
            yield "debounce_max_ms", f"it must be at least debounce_ms, which is {self.debounce_ms}"


class Workspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project folder that the gateway watches."""

    path: Annotated[str, Meta(pattern=_PRINTABLE, description="The folder, as the gateway sees it.")]
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=128,
            pattern=_PRINTABLE,
            description="Unique name; without one, the last part of the path.",
        ),
    ] = "default"
    roots: Annotated[
        tuple[Annotated[str, Meta(pattern=_PRINTABLE)], ...],
        Meta(max_length=64, description="The same folder's paths as clients outside the container see it."),
    ] = ()


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One client's secret and what it allows. A loaded configuration has `token` filled in."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=128,
            pattern=_PRINTABLE,
            description="Unique name; the client's default source.",
        ),
    ]
    token: Annotated[
        # What fits into an HTTP header without quoting.
        Annotated[
            str,
            Meta(
                pattern=r"^[\x21-\x7e]{1,512}$(?!\n)",
                extra={"expected": "text of 1 to 512 visible ASCII characters"},
            ),
        ]
        | None,
        Meta(description="The secret itself, if it must stand in the file.", extra={"secret": True}),
    ] = None
    token_env: Annotated[
        Annotated[str, Meta(pattern=_ENV_NAME, extra=_ENV_NOTE)] | None,
        Meta(description="Name of the environment variable that holds the secret; better than `token`."),
    ] = None
    scopes: Annotated[
        tuple[Scope, ...],
        Meta(
            max_length=64,
            description="What it allows: `events:publish`, `events:follow`, `events:p0`, `routes`, `admin`, "
            "`locks`, `context`, `models`, `tasks`.",
        ),
    ] = ("events:publish", "events:follow")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong) for what the types alone cannot say."""
        if self.token is None and self.token_env is None:
            yield "", "the secret is missing: give token_env (the name of a variable) or token"
        if self.token is not None and self.token_env is not None:
            yield "token", "there is a token_env too; keep one of them"

    def __repr__(self) -> str:
        return f"Token(name={self.name!r}, scopes={self.scopes!r})"  # never the secret: reprs end up in logs


class AuthSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may call. Without tokens the gateway serves loopback only."""

    tokens: Annotated[tuple[Token, ...], Meta(max_length=TOKENS_MAX)] = ()
    open: Annotated[
        bool,
        Meta(description="Serve everyone who can reach the port, without tokens; say `true` to mean it."),
    ] = False


class LocksSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write locks."""

    expiry_delay_s: Annotated[
        float,
        Meta(
            ge=0,
            le=60,
            description="Seconds that others are kept off after a lease ran out, for late writes of its holder.",
        ),
    ] = 3


class ContextSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What tools share about a project: its graph, sessions, artifacts."""

    project_graph_ttl: Annotated[
        float, Meta(ge=0, le=DAY_S, description="Seconds that the project graph may go unverified.")
    ] = 60
    session_window: Annotated[
        int, Meta(ge=64, le=10_000_000, description="Tokens of a session's windowed view.")
    ] = 2048
    artifact_cache_size: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Size of the artifact cache, in MiB.", extra={"hint": "MiB"}),
    ] = 128
    summariser: Annotated[
        Literal["rules", "model"],
        Meta(description="What shortens sessions: `rules`, or a `model` of the pool."),
    ] = "rules"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration of the gateway."""

    server: ServerSection = ServerSection()
    bus: BusSection = BusSection()
    routes: Annotated[tuple[RouteRule, ...], Meta(max_length=ROUTES_MAX)] = ()
    workspaces: Annotated[tuple[Workspace, ...], Meta(max_length=WORKSPACES_MAX)] = ()
    auth: AuthSection = AuthSection()
    locks: LocksSection = LocksSection()
    context: ContextSection = ContextSection()
    models: ModelsSection = ModelsSection()
