"""What may be asked of an index, and how each question is answered."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

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
    return {
        "state": "indexing" if index.state == "waiting" else index.state,
        "detail": index.detail,
        "version": index.store.version,
        "files": len(index.store),
        **dict(zip(("parsed", "symbols", "calls", "imports"), sums, strict=True)),
        "languages": {name: {"files": files, "symbols": symbols} for name, (files, symbols, *_) in totals.items()},
        "skipped": index.store.skipped_counts(),
        "progress": index.progress(),
        "took_s": round(index.took_s, 3),
        "reused": index.reused,
    }


async def skipped(index: Index, limit: int) -> dict[str, Any]:
    """Return the files that were not read, and why."""
    rows = index.store.skipped(limit)
    more = sum(index.store.skipped_counts().values()) - len(rows)
    return {"skipped": [dict(zip(("path", "reason", "bytes"), row, strict=True)) for row in rows], "more": more}


async def export(index: Index, file: str) -> dict[str, Any]:
    """Write the graph into a new file."""
    index.store.copy_to(Path(file))
    return {"form": graph_form(), "version": index.store.version, "files": len(index.store)}


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        "status": Question(status, waits=False),
        "counts": Question(status),
        "skipped": Question(skipped),
        "export": Question(export),
    }
)
