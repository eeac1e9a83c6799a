"""Notes with each commit what changed in which workspace, for those who ask later through their hooks."""

from collections.abc import Sequence
from typing import Any

import msgspec

from herdr.event import Event
from herdr.hooks.changes import Change, Changes

UNREPORTED = "a write that no tool reported"
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
                by = UNREPORTED if event.source == self._watcher else event.source
                self.changes.add(event.workspace, Change(event.seq, event.subject, by, event.session))
            elif event.type == "context.changed":
                self._definitions(event)

    def _definitions(self, event: Event) -> None:
        try:
            data = _decode(event.body).data or {}
        except (msgspec.DecodeError, RecursionError):
            return
        signatures = data.get("signatures")
        if isinstance(signatures, list) and signatures:
            paths = tuple(str(s.get("symbol")).partition("::")[0] for s in signatures[:NAMED_MAX])
            change = Change(event.seq, "", None, None, tuple(signatures[:NAMED_MAX]), paths)
            self.changes.add(event.workspace, change)
