"""Notes with each commit what changed in which workspace, for those who ask later through their hooks."""

from collections.abc import Sequence
from typing import Any

import msgspec

from herdr.event import Event
from herdr.hooks.changes import UNREPORTED, Change, Changes

PATH_MAX = 4096  # characters, as of any subject; 500 of each workspace are kept
NAMED_MAX = 50  # files of one `files.changed` or `context.changed` that are looked at

_CHANGED = ("file.changed", "change.applied")


class _Payload(msgspec.Struct):
    data: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Payload).decode


class Recent:
    """Feeds `Changes` from the log's commits."""

    def __init__(self, watcher: str) -> None:
        """`watcher`: the source of what the gateway itself saw on the disk."""
        self.changes = Changes()
        self._watcher = watcher

    def committed(self, events: Sequence[Event]) -> None:
        """Note what changed."""
        for event in events:
            if event.type in _CHANGED and event.subject is not None:
                self._file(event, event.subject)
            elif event.type == "files.changed":
                self._files(event)
            elif event.type == "context.changed":
                self._definitions(event)

    def _file(self, event: Event, path: str) -> None:
        by = self._by(event)
        hash_ = _data(event).get("hash") if by == UNREPORTED else None
        known = hash_ if isinstance(hash_, str) else None
        self.changes.add(event.workspace, Change(event.seq, path, by, event.session, hash=known))

    def _files(self, event: Event) -> None:
        """Note many at once: over a source's rate, or with another branch."""
        by, paths = self._by(event), _data(event).get("paths")
        for path in paths[:NAMED_MAX] if isinstance(paths, list) else ():
            self.changes.add(event.workspace, Change(event.seq, str(path)[:PATH_MAX], by, event.session))

    def _definitions(self, event: Event) -> None:
        """Note whose signature is another one, by file: who changed which is found out file by file."""
        signatures = _data(event).get("signatures")
        by_path: dict[str, list[dict[str, Any]]] = {}
        for signature in signatures[:NAMED_MAX] if isinstance(signatures, list) else ():
            path = str(signature.get("symbol")).partition("::")[0]
            by_path.setdefault(path, []).append(signature)
        for path, some in by_path.items():
            self.changes.add(event.workspace, Change(event.seq, "", None, None, tuple(some), (path,)))

    def _by(self, event: Event) -> str:
        return UNREPORTED if event.source == self._watcher else event.source


def _data(event: Event) -> dict[str, Any]:
    try:
        return _decode(event.body).data or {}
    except (msgspec.DecodeError, RecursionError):
        return {}
