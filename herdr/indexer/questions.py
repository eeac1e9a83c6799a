"""What may be asked of an index, and how each question is answered."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from herdr.context.graph import lookups
from herdr.context.graph.map import pieces as map_pieces
from herdr.context.graph.outline_text import outline_text
from herdr.context.graph.rank import focused
from herdr.errors import NotFound
from herdr.glob import is_glob
from herdr.indexer.form import graph_form
from herdr.indexer.index import Index


class Question(NamedTuple):
    """One question."""

    answer: Callable[..., Awaitable[Any]]
    waits: bool = True
    """Whether the answer waits until all that was told before is in the graph."""


async def status(index: Index) -> dict[str, Any]:
    """Return counts and progress."""
    totals = index.store.totals()
    sums = [sum(column) for column in zip(*totals.values(), strict=True)] or [0, 0, 0, 0]
    languages = {name: {"files": files, "symbols": count} for name, (files, count, *_) in totals.items()}
    return {
        "state": "indexing" if index.state == "waiting" or index.progress() else index.state,
        "detail": index.detail,
        "version": index.store.version,
        "files": len(index.store),
        **dict(zip(("parsed", "symbols", "calls", "imports"), sums, strict=True)),
        "languages": languages,
        "skipped": index.store.skipped_counts(),
        "progress": index.progress(),
        "last_pass": {"took_s": round(index.took_s, 3), "parsed": index.parsed, "same": index.same},
    }


async def skipped(index: Index, limit: int) -> dict[str, Any]:
    """Return the files that were not read, and why."""
    rows = index.store.skipped(limit)
    more = sum(index.store.skipped_counts().values()) - len(rows)
    return {
        "skipped": [dict(zip(("path", "reason", "bytes"), row, strict=True)) for row in rows],
        "more": more,
    }


async def export(index: Index, file: str) -> dict[str, Any]:
    """Write the graph into a new file."""
    index.store.copy_to(Path(file))
    return {"form": graph_form(), "version": index.store.version, "files": len(index.store)}


async def symbols(index: Index, name: str, kind: str | None, path: str | None, limit: int) -> Any:
    """Return definitions; `path` is a file, a folder or a glob."""
    if path and not is_glob(path) and not index.store.has(path):
        path = f"{path.rstrip('/')}/**"
    return lookups.find_symbols(index.store, name, kind or "", path or "", limit)


async def callers(index: Index, symbol: str, limit: int) -> Any:
    """Return who calls a symbol; raises NotFound."""
    return _found(lookups.callers(index.store, symbol, limit), symbol)


async def callees(index: Index, symbol: str, limit: int) -> Any:
    """Return what a symbol calls; raises NotFound."""
    return _found(lookups.callees(index.store, symbol, limit), symbol)


async def dependents(index: Index, path: str, depth: int, limit: int) -> Any:
    """Return who imports a file; raises NotFound."""
    found = lookups.dependents(index.store, path, depth, limit)
    if found is not None:
        return found
    _described(index, path)
    return {"path": path, "dependents": [], "more": 0}


async def pieces(
    index: Index, focus: list[str], names: list[str], previous: list[str], limit: int
) -> dict[str, Any]:
    """Return the definitions for a map, the best first."""
    ranking = await index.ranked.ranking()
    if focus or names:
        ranking = focused(ranking, index.store, focus, names)
    found = map_pieces(index.store, ranking, frozenset(focus), frozenset(previous), limit)
    return {"pieces": found, "files": len(ranking.files)}


async def file(index: Index, path: str) -> dict[str, Any]:
    """Return a file's outline, also as text; raises NotFound."""
    size, hash_, why = _described(index, path)
    found = lookups.file_outline(index.store, path)
    about = {
        "path": path,
        "hash": None if hash_ is None else f"sha256:{hash_.hex()}",
        "bytes": size,
        "skipped": why,
    }
    if found is None:
        nothing: dict[str, Any] = dict.fromkeys(("symbols", "imports", "importers"), ())
        return {
            **about,
            **nothing,
            "language": None,
            "lines": None,
            "broken": False,
            "more": 0,
            "text": f"{path}\n",
        }
    outline = index.store.outline(path)
    assert outline is not None
    return {**msgspec.structs.asdict(found), **about, "text": outline_text(path, outline, found.importers)}


def _described(index: Index, path: str) -> tuple[int, bytes | None, str | None]:
    described = index.store.described(path)
    if described is None:
        raise NotFound(
            f"the workspace has no file {path!r}; it is missing, ignored, or in a repository of its own",
            "unknown_file",
        )
    return described


def _found(answer: Any, symbol: str) -> Any:
    if answer is None:
        raise NotFound(
            f"nothing in the workspace is called {symbol!r}; look with …/graph/symbols?name=",
            "unknown_symbol",
        )
    return answer


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        "status": Question(status, waits=False),
        "counts": Question(status),
        "export": Question(export),
        "skipped": Question(skipped),
        "symbols": Question(symbols),
        "callers": Question(callers),
        "callees": Question(callees),
        "dependents": Question(dependents),
        "file": Question(file),
        "pieces": Question(pieces),
    }
)
