"""What is noted of each commit; no event may stop it, as what else listens to commits would miss them, too."""

from typing import Any

import msgspec
import pytest

from herdr.event import Event
from herdr.hooking.recent import NAMED_MAX, PATH_MAX, Recent


def event(
    type_: str, data: Any, subject: str | None = None, seq: int = 1, body: bytes | None = None
) -> Event:
    encoded = msgspec.json.encode({"data": data}) if body is None else body
    return Event(1, "id", type_, "cursor/1", "shop", "tool", encoded, subject, seq=seq)


def paths(recent: Recent) -> list[str]:
    return [change.path for change in recent.changes.since("shop", 0, "me", ())]


@pytest.mark.parametrize(
    "data", [None, 5, "x", [], {}, {"signatures": 5}, {"paths": "ab"}, {"paths": {"a": 1}}]
)
@pytest.mark.parametrize("type_", ["context.changed", "files.changed"])
def test_an_odd_event_is_passed_over(type_: str, data: Any) -> None:
    recent = Recent("watcher")
    recent.committed([event(type_, data), event("file.changed", None, "a.py", 2)])
    assert paths(recent) == ["a.py"]


@pytest.mark.parametrize("body", [b"", b"{", b"null", b'{"data": ' + b"[" * 5000])
def test_so_is_one_that_cannot_be_read(body: bytes) -> None:
    recent = Recent("watcher")
    recent.committed([event("files.changed", None, body=body), event("file.changed", None, "a.py", 2)])
    assert paths(recent) == ["a.py"]


def test_of_many_files_some_are_noted_and_no_path_is_longer_than_one_can_be() -> None:
    recent = Recent("watcher")
    recent.committed([event("files.changed", {"paths": ["x" * 9000, 7, *map(str, range(NAMED_MAX))]})])
    found = paths(recent)
    assert len(found) == NAMED_MAX and len(found[0]) == PATH_MAX and found[1] == "7"
