"""What the gateway answers about a project: its map, its files, its symbols, and who calls what."""

from typing import Literal

import msgspec

from herdr_sdk.texts import Text

Resolution = Literal["exact", "name", "external"]
"""How sure a call is: `exact` follows scopes and imports, `name` knows only that the names are equal (see
`candidates`), `external` leads out of the project."""


class Symbol(msgspec.Struct, frozen=True, kw_only=True):
    """One definition."""

    symbol: str
    """Its id: `src/cart.py::Cart.total`."""
    name: str = ""
    kind: str = ""
    path: str = ""
    line: int = 0
    """From 1, as all lines here."""
    end_line: int = 0
    signature: str = ""
    exported: bool = True


class Map(Text, frozen=True, kw_only=True):
    """A ranked outline of the project."""

    files: int = 0
    """How many the text shows."""
    symbols: int = 0
    focus: tuple[str, ...] = ()


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One import of a file."""

    module: str
    name: str = ""
    alias: str = ""
    line: int = 0
    resolution: str = ""
    paths: tuple[str, ...] = ()
    """The files of the project that it leads to."""


class FileOutline(Text, frozen=True, kw_only=True):
    """One file."""

    path: str
    language: str | None = None
    hash: str | None = None
    """Of its content: `sha256:…`; None when it was not read."""
    lines: int | None = None
    bytes: int = 0
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[Imported, ...] = ()
    importers: tuple[str, ...] = ()
    """Files that import it."""
    skipped: str | None = None
    """Why it was not parsed, None if it was."""
    broken: bool = False
    """True when the parser met something that it cannot read; the rest is here all the same."""
    more: int = 0
    """How many symbols, imports and importers there are beyond these."""


class Symbols(msgspec.Struct, frozen=True, kw_only=True):
    """Symbols that were looked for."""

    symbols: tuple[Symbol, ...]
    more: int = 0
    """How many there are beyond these."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Where something is called."""

    path: str
    lines: tuple[int, ...] = ()
    symbol: str | None = None
    """The id of the function that calls; None at the top of a file."""
    call: str = ""
    """As it is written: `self.cart.total`."""
    resolution: Resolution | str = ""
    candidates: int = 0
    """How many definitions have the name."""
    target: str | None = None
    """The id of the definition that is called."""
    signature: str | None = None
    """Of the function that calls."""


class Callers(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls what was asked for."""

    definitions: tuple[Symbol, ...]
    callers: tuple[Caller, ...]
    more: int = 0
    """How many callers there are beyond these."""


class Callee(msgspec.Struct, frozen=True, kw_only=True):
    """What something calls."""

    name: str
    call: str = ""
    path: str = ""
    lines: tuple[int, ...] = ()
    resolution: Resolution | str = ""
    candidates: int = 0
    targets: tuple[Symbol, ...] = ()
    """The first few definitions that it may be."""


class Callees(msgspec.Struct, frozen=True, kw_only=True):
    """What is called by what was asked for."""

    definitions: tuple[Symbol, ...]
    callees: tuple[Callee, ...]
    more: int = 0
    """How many callees there are beyond these."""


class Dependent(msgspec.Struct, frozen=True, kw_only=True):
    """A file that needs another one."""

    path: str
    distance: int = 1
    """1 for a file that imports it, 2 for one that imports such a file …"""
    via: str = ""


class Dependents(msgspec.Struct, frozen=True, kw_only=True):
    """The files that need a file."""

    path: str
    dependents: tuple[Dependent, ...]
    more: int = 0
    """How many there are beyond these."""


class SkippedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not in the graph, or not parsed."""

    path: str
    reason: str = ""
    bytes: int = 0


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """What is not in the graph."""

    skipped: tuple[SkippedFile, ...]
    more: int = 0
    """How many there are beyond these."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far indexing is."""

    done: int = 0
    total: int = 0
    files_per_s: float = 0.0


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """What there is in one language."""

    files: int = 0
    symbols: int = 0


class GraphState(msgspec.Struct, frozen=True, kw_only=True):
    """How the graph of a project is."""

    state: str
    """`ready`, `indexing`, `lost` (the folder is gone), `failed` or `none`."""
    version: str | None = None
    """Another one after each change."""
    files: int = 0
    parsed: int = 0
    symbols: int = 0
    calls: int = 0
    imports: int = 0
    languages: dict[str, Language] = {}
    skipped: dict[str, int] = {}
    """Files that are not in the graph, by the reason."""
    progress: Progress | None = None
    took_s: float | None = None
    """How long the last index took."""
    reused: int = 0
    """Files that it took from a snapshot."""
    verified: str | None = None
    """When it was last compared with the folder; RFC 3339."""
    detail: str | None = None
    """What is wrong, None if nothing is."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What the working tree has checked out."""

    branch: str | None = None
    commit: str | None = None


class SessionRef(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the project."""

    session: str
    messages: int = 0
    updated: str | None = None
    sources: tuple[str, ...] = ()
    ref: str | None = None


class ArtifactRef(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact of the project."""

    name: str
    kind: str = ""
    ref: str = ""
    bytes: int = 0
    expires: str | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway has of a project."""

    workspace: str
    graph: GraphState
    head: Head | None = None
    sessions: tuple[SessionRef, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
