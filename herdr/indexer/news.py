"""What an update changed, for the bus: hashes, counts, and whose signature is another one; never an index."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from herdr.context.graph.changes import difference
from herdr.context.graph.files import Parsed
from herdr.context.graph.lookups import calling_files
from herdr.context.graph.outline import Outline
from herdr.storage.sqlite.graph.store import GraphStore

FILES_SAID = 100  # of one event; a branch switch is told by its counts
SIGNATURES_SAID = 50
CALLERS_SAID = 20  # files that call one changed function; who needs all asks for the callers
OUTLINES_KEPT = (
    2_000  # earlier outlines, until their update is over: 20 MiB. Beyond it only files are counted
)

_decode = msgspec.msgpack.Decoder(Outline).decode


class _File(NamedTuple):
    known: bool
    """Whether the graph had the file before."""
    before: Outline | None
    after: Outline | None
    hash: bytes | None
    gone: bool


class _Signature(NamedTuple):
    path: str
    symbol: str
    old: str
    new: str


class News:
    """Collects what changes from the first file of an update to its last."""

    def __init__(self, project: GraphStore) -> None:
        self._project = project
        self._files: dict[str, _File] = {}

    def note(self, found: Sequence[Parsed]) -> None:
        """Remember how these files were; called just before the graph takes them in."""
        for parsed in found:
            earlier = self._files.get(parsed.path)
            if earlier is None:
                few = len(self._files) < OUTLINES_KEPT
                before = self._project.outline(parsed.path) if few else None
                known = self._project.has(parsed.path)
            else:
                known, before = earlier.known, earlier.before
            few = earlier is not None or len(self._files) < OUTLINES_KEPT
            after = None if parsed.outline is None or not few else _decode(parsed.outline)
            self._files[parsed.path] = _File(known, before, after, parsed.hash, parsed.gone)

    def take(self) -> dict[str, Any] | None:
        """Return the update as an event's data, and begin anew; None when nothing happened."""
        files, self._files = self._files, {}
        rows: list[dict[str, Any]] = []
        signatures: list[_Signature] = []
        for path, file in sorted(files.items()):
            if file.gone and not file.known:
                continue  # it came and went within one update
            changed = difference(file.before, file.after)
            rows.append(
                {
                    "path": path,
                    "hash": None if file.hash is None else f"sha256:{file.hash.hex()}",
                    "change": "removed" if file.gone else "changed" if file.known else "added",
                    "added": changed.added,
                    "removed": changed.removed,
                    "changed": changed.changed,
                }
            )
            signatures += [_Signature(path, *signature) for signature in changed.signatures]
        if not rows:
            return None
        told: dict[str, Any] = {
            "version": self._project.version,
            "files": rows[:FILES_SAID],
            "signatures": [self._told(signature) for signature in signatures[:SIGNATURES_SAID]],
        }
        more = {"files": len(rows) - FILES_SAID, "signatures": len(signatures) - SIGNATURES_SAID}
        if any(count > 0 for count in more.values()):
            told["more"] = {name: max(count, 0) for name, count in more.items()}
        return told

    def _told(self, signature: _Signature) -> dict[str, Any]:
        symbol = f"{signature.path}::{signature.symbol}"
        callers = calling_files(self._project, signature.path, signature.symbol)
        return {
            "symbol": symbol,
            "old": signature.old,
            "new": signature.new,
            "callers": callers[:CALLERS_SAID],
            "more": max(len(callers) - CALLERS_SAID, 0),
        }
