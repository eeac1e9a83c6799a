"""What OpenAPI says of the shared context beside its endpoints: queries, other media types, and answers."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from herdr.context.graph.answers import (
    CalleesAnswer,
    CallersAnswer,
    DependentsAnswer,
    ImportAnswer,
    SymbolAnswer,
    SymbolsAnswer,
)
from herdr.web.context_bodies import (
    EXPECTED,
    ArtifactQuery,
    DependentsQuery,
    EdgesQuery,
    ExportQuery,
    LimitQuery,
    MapQuery,
    PageQuery,
    PutArtifactQuery,
    SessionsQuery,
    ShelfQuery,
    SymbolsQuery,
    WindowQuery,
)


class Text(msgspec.Struct, kw_only=True):
    """A text for a prompt; `GET /v1/blobs/{ref}` has it too."""

    text: str
    tokens: int
    tokenizer: str
    """Who counted: `bytes/2.7`, `o200k_base`, or `backend:NAME`."""
    ref: str
    """SHA-256 of the text, in hex."""


class MapAnswer(Text, kw_only=True):
    """The ranked outline of a project."""

    files: int
    """How many stand in the map."""
    of_files: int
    """How many were ranked."""
    symbols: int
    focus: list[str]


class FileOutline(Text, kw_only=True):
    """One file; without symbols if it was skipped or is in no language that is known."""

    path: str
    language: str | None
    lines: int | None
    hash: str | None
    """`sha256:…`"""
    bytes: int
    symbols: list[SymbolAnswer]
    imports: list[ImportAnswer]
    importers: list[str]
    skipped: str | None
    broken: bool
    """A part of it could not be parsed."""
    more: int


class SkippedFile(msgspec.Struct):
    """A file that was not read."""

    path: str
    reason: str
    bytes: int


class SkippedAnswer(msgspec.Struct):
    """Files that were not read."""

    skipped: list[SkippedFile]
    more: int


class LanguageCounts(msgspec.Struct):
    """Of one language."""

    files: int
    symbols: int


class Progress(msgspec.Struct):
    """How far a look at all files is."""

    done: int
    total: int
    files_per_s: float


class LastPass(msgspec.Struct):
    """What the last look at all files came to."""

    took_s: float
    parsed: int
    same: int


class GraphShown(msgspec.Struct, omit_defaults=True):
    """State of a project graph. Counts are there once the indexer has been told of the files."""

    state: Literal["ready", "indexing", "lost", "failed", "none"]
    detail: str | msgspec.UnsetType | None = msgspec.UNSET
    version: str | msgspec.UnsetType = msgspec.UNSET
    files: int | msgspec.UnsetType = msgspec.UNSET
    parsed: int | msgspec.UnsetType = msgspec.UNSET
    symbols: int | msgspec.UnsetType = msgspec.UNSET
    calls: int | msgspec.UnsetType = msgspec.UNSET
    imports: int | msgspec.UnsetType = msgspec.UNSET
    languages: dict[str, LanguageCounts] | msgspec.UnsetType = msgspec.UNSET
    skipped: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    progress: Progress | msgspec.UnsetType | None = msgspec.UNSET
    last_pass: LastPass | msgspec.UnsetType = msgspec.UNSET
    left_out: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """What the watcher does not follow, by reason."""
    verified: str | msgspec.UnsetType = msgspec.UNSET


class GraphAnswer(msgspec.Struct):
    """What `POST …/index` says."""

    graph: GraphShown


class CheckedOut(msgspec.Struct):
    """What git has checked out."""

    branch: str | None
    commit: str | None


class SessionRow(msgspec.Struct):
    """One session in a list."""

    session: str
    workspace: str
    messages: int
    full_tokens: int
    first: str
    updated: str
    sources: list[str]


class SessionsAnswer(msgspec.Struct):
    """Sessions, most recently updated first."""

    sessions: list[SessionRow]
    more: int


class ArtifactInShort(msgspec.Struct):
    """One artifact of a manifest."""

    name: str
    kind: str
    ref: str
    bytes: int
    expires: str


class Manifest(msgspec.Struct):
    """What there is of a workspace."""

    workspace: str
    graph: GraphShown
    head: CheckedOut
    sessions: list[SessionRow]
    artifacts: list[ArtifactInShort]


class Recorded(msgspec.Struct):
    """One message that was recorded."""

    seq: int
    id: str
    status: str


class RecordedAnswer(msgspec.Struct):
    """Receipts of messages, in order."""

    session: str
    messages: list[Recorded]


class ShownMessage(msgspec.Struct):
    """One of a window's newest messages, as far as it is shown."""

    seq: int
    role: str
    source: str
    text: str
    whole: bool
    time: str


class SessionSummary(msgspec.Struct):
    """What a window holds of a session beside its newest messages."""

    decisions: list[dict[str, Any]]
    files: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    outcomes: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    more: dict[str, int]


class WindowAnswer(Text, kw_only=True):
    """A session within a budget of tokens."""

    session: str
    workspace: str
    messages: int
    full_tokens: int
    saved_tokens: int
    summariser: Literal["rules", "model"]
    summary: SessionSummary
    newest: list[ShownMessage]
    more_messages: int
    all_decisions: str | None
    """Hash of a text with every decision, where the window does not hold them all."""


class MessageShown(msgspec.Struct, omit_defaults=True):
    """One whole message."""

    seq: int
    id: str
    role: str
    source: str
    time: str
    tokens: int
    content: Any
    files: list[str] | msgspec.UnsetType = msgspec.UNSET
    tool: str | msgspec.UnsetType = msgspec.UNSET


class MessagesAnswer(msgspec.Struct):
    """Whole messages, oldest first."""

    session: str
    messages: list[MessageShown]
    total: int
    more: bool


class ArtifactShown(msgspec.Struct):
    """One artifact without its content."""

    workspace: str
    name: str
    kind: str
    ref: str
    bytes: int
    content_type: str
    created: str
    expires: str
    used: str
    by: str
    session: str | None
    based_on: str | None
    redacted: int


class ShelfAnswer(msgspec.Struct):
    """Artifacts, newest first."""

    artifacts: list[ArtifactShown]
    bytes: int
    limit_bytes: int
    more: int


class SnapshotOf(msgspec.Struct):
    """Where a snapshot comes from."""

    workspace: str
    created: str
    branch: str | None
    commit: str | None


class SnapshotReport(msgspec.Struct, rename={"from_": "from"}):
    """What an import came to."""

    workspace: str
    from_: SnapshotOf
    files: int
    reused: int
    parsed: int
    artifacts: int
    decisions: int
    sessions: int


def queries(type_: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """Return the parameters of a query that is decoded into a struct."""
    whole = msgspec.json.schema(type_)["$defs"][type_.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in whole.get("required", ()),
            "description": EXPECTED[name],
            "schema": _without_null(schema),
        }
        for name, schema in whole["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that is given; a query cannot say null."""
    if "anyOf" not in schema:
        return schema
    (given,) = (one for one in schema["anyOf"] if one != {"type": "null"})
    return dict(given)


_ANY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE = {"application/zstd": {"schema": {"type": "string", "format": "binary"}}}
_AT, _GRAPH = "/v1/context/{workspace}", "/v1/context/{workspace}/graph"
_ONE, _SAID = "/v1/artifacts/{name:path}", "/v1/sessions/{session:path}/messages"

MORE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("GET", _AT): {"answers": Manifest},
    ("POST", f"{_AT}/index"): {"is_optional": True, "answers": GraphAnswer, "status": 202},
    ("GET", f"{_GRAPH}/map"): {"parameters": queries(MapQuery), "answers": MapAnswer},
    ("GET", f"{_GRAPH}/files/{{path:path}}"): {"answers": FileOutline},
    ("GET", f"{_GRAPH}/symbols"): {"parameters": queries(SymbolsQuery), "answers": SymbolsAnswer},
    ("GET", f"{_GRAPH}/callers"): {"parameters": queries(EdgesQuery), "answers": CallersAnswer},
    ("GET", f"{_GRAPH}/callees"): {"parameters": queries(EdgesQuery), "answers": CalleesAnswer},
    ("GET", f"{_GRAPH}/dependents"): {"parameters": queries(DependentsQuery), "answers": DependentsAnswer},
    ("GET", f"{_GRAPH}/skipped"): {"parameters": queries(LimitQuery), "answers": SkippedAnswer},
    ("GET", "/v1/blobs/{sha256}"): {"media": _ANY},
    ("GET", _SAID): {"parameters": queries(PageQuery), "answers": MessagesAnswer},
    ("POST", _SAID): {"answers": RecordedAnswer},
    ("GET", "/v1/sessions"): {"parameters": queries(SessionsQuery), "answers": SessionsAnswer},
    ("GET", "/v1/sessions/{session:path}"): {"parameters": queries(WindowQuery), "answers": WindowAnswer},
    ("GET", "/v1/artifacts"): {"parameters": queries(ShelfQuery), "answers": ShelfAnswer},
    ("PUT", _ONE): {"parameters": queries(PutArtifactQuery), "takes": _ANY, "answers": ArtifactShown},
    ("GET", _ONE): {"parameters": queries(ArtifactQuery), "answers": ArtifactShown, "media": _ANY},
    ("DELETE", _ONE): {"parameters": queries(ArtifactQuery)[:1]},
    ("GET", "/v1/snapshots/{workspace}"): {"parameters": queries(ExportQuery), "media": _FILE},
    ("POST", "/v1/snapshots/{workspace}"): {"takes": _FILE, "answers": SnapshotReport},
}
