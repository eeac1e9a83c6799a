"""Pure: what clients ask and send about the shared context, and what may be wrong with it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from herdr.context.artifacts import TTL_DEFAULT_S, TTL_MAX_S
from herdr.event import Name, Time

MAP_TOKENS_MIN, MAP_TOKENS_MAX = 16, 100_000  # a header line needs some ten; no model reads more of a map
WINDOW_TOKENS_MIN, WINDOW_TOKENS_MAX = 64, 1_000_000  # a line of each kind; the largest windows of models
LIMIT_MAX, LIMIT_DEFAULT = 1000, 100  # rows of one answer
FOCUS_MAX = 32  # paths or names that weigh more; with more nothing stands out
DEPTH_MAX = 64  # steps of imports; longer chains are cycles
MESSAGES_MAX = 1000  # of one request
MESSAGES_BODY_MAX = 8 * 1024 * 1024  # bytes, as for events
FILES_MAX = 256  # that one message names

Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
Identifier = Annotated[str, Meta(min_length=1, max_length=1024)]

_NAME = "1 to 128 characters without control characters"
EXPECTED: Mapping[str, str] = {
    "tokens": f"a whole number from {MAP_TOKENS_MIN} to {MAP_TOKENS_MAX}",
    "focus": f"at most {FOCUS_MAX} paths of the workspace",
    "name": "a name, a dotted name, or a glob with *",
    "kind": "one word, such as class, function or patch",
    "path": "a path of the workspace, of 1 to 4096 characters",
    "symbol": "a name, a dotted name, or path::Qualified.name",
    "depth": f"a whole number from 1 to {DEPTH_MAX}",
    "limit": f"a whole number from 1 to {LIMIT_MAX}",
    "after": "the seq of a message",
    "fresh": "true or false",
    "meta": "true or false",
    "sessions": "true or false",
    **dict.fromkeys(("workspace", "session", "task", "tool", "id"), _NAME),
    "ttl_s": f"seconds, a whole number from 1 to {TTL_MAX_S}",
    "based_on": "what it was made from: a seq, a commit, a hash; at most 256 characters",
    "role": "user, assistant, tool or system",
    "content": "a text, or an array of blocks",
    "files": f"at most {FILES_MAX} paths",
    "time": "a time such as 2026-01-31T12:00:00Z",
    "messages": f"1 to {MESSAGES_MAX} messages",
}


class MapQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `…/graph/map`."""

    tokens: Annotated[int, Meta(ge=MAP_TOKENS_MIN, le=MAP_TOKENS_MAX)] = 1024
    focus: Annotated[tuple[Path, ...], Meta(max_length=FOCUS_MAX)] = ()
    name: Annotated[tuple[Identifier, ...], Meta(max_length=FOCUS_MAX)] = ()


class SymbolsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `…/graph/symbols`."""

    name: Identifier
    kind: Annotated[str, Meta(max_length=64)] | None = None
    path: Path | None = None
    limit: Limit = LIMIT_DEFAULT


class EdgesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `…/graph/callers` and `…/graph/callees`."""

    symbol: Annotated[str, Meta(min_length=1, max_length=8192)]
    limit: Limit = LIMIT_DEFAULT


class DependentsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `…/graph/dependents`."""

    path: Path
    depth: Annotated[int, Meta(ge=1, le=DEPTH_MAX)] = 1
    limit: Limit = LIMIT_DEFAULT


class LimitQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A query for the first rows of something."""

    limit: Limit = LIMIT_DEFAULT


class IndexBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/context/{workspace}/index`."""

    fresh: bool = False
    """Parse every file anew, whatever is known of it."""


class MessageBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One message of a session."""

    role: Literal["user", "assistant", "tool", "system"]
    content: str | list[dict[str, Any]]
    workspace: Name = "default"
    id: Name | UnsetType = UNSET
    """Makes sending again harmless."""
    time: Time | None = None
    files: Annotated[tuple[Path, ...], Meta(max_length=FILES_MAX)] = ()
    tool: Name | None = None
    task: Name | None = None


class MessagesBody(msgspec.Struct, forbid_unknown_fields=True):
    """Several messages at once."""

    messages: Annotated[list[Raw], Meta(min_length=1, max_length=MESSAGES_MAX)]


class WindowQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/sessions/{id}`."""

    tokens: Annotated[int, Meta(ge=WINDOW_TOKENS_MIN, le=WINDOW_TOKENS_MAX)] | None = None


class SessionsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/sessions`."""

    workspace: Name | None = None
    limit: Limit = LIMIT_DEFAULT


class PageQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/sessions/{id}/messages`."""

    after: Annotated[int, Meta(ge=0)] = 0
    limit: Limit = LIMIT_DEFAULT


class ArtifactQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET` and `DELETE /v1/artifacts/{name}`."""

    workspace: Name = "default"
    meta: bool = False


class PutArtifactQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `PUT /v1/artifacts/{name}`."""

    workspace: Name = "default"
    kind: Annotated[str, Meta(max_length=64)] = "other"
    ttl_s: Annotated[int, Meta(ge=1, le=TTL_MAX_S)] = TTL_DEFAULT_S
    session: Name | None = None
    based_on: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


class ShelfQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/artifacts`."""

    workspace: Name = "default"
    kind: Annotated[str, Meta(max_length=64)] | None = None
    session: Name | None = None
    limit: Limit = LIMIT_DEFAULT


class ExportQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/snapshots/{workspace}`."""

    sessions: bool = False
