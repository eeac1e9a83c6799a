import msgspec
import pytest

from herdr.context.watch.changes import Change, FileState
from herdr.context.watch.report import (
    BURST_PATHS,
    LISTED_BYTES_MAX,
    LISTED_PATHS_MAX,
    HeadMoved,
    WorkspaceEvent,
    report,
)

STATE = FileState(3, 1, 10, "sha256:a")


def as_json(event: WorkspaceEvent) -> object:
    return msgspec.json.decode(msgspec.json.encode(event.data))


@pytest.mark.parametrize(
    ("change", "data"),
    [
        (Change("created", "p", None, STATE), {"change": "created", "size": 3, "hash": "sha256:a"}),
        (Change("deleted", "p", STATE, None), {"change": "deleted", "size": None, "hash": None}),
        (
            Change("renamed", "p", STATE, STATE, "old"),
            {"change": "renamed", "size": 3, "hash": "sha256:a", "from": "old"},
        ),
    ],
)
def test_a_single_change_is_a_file_event(change: Change, data: object) -> None:
    [event] = report([change], "burst")
    assert (event.type, event.subject, as_json(event)) == ("file.changed", "p", data)


def created(count: int, name: str = "f") -> list[Change]:
    return [Change("created", f"{name}{number:05}", None, STATE) for number in range(count)]


def test_up_to_the_limit_each_change_has_its_event() -> None:
    assert [event.type for event in report(created(BURST_PATHS), "burst")] == ["file.changed"] * BURST_PATHS


def test_above_the_limit_one_event_stands_for_all() -> None:
    changes = [*created(BURST_PATHS), Change("renamed", "new", STATE, STATE, "old")]
    [event] = report(changes, "sweep")
    assert event.type == "files.changed" and event.subject is None
    paths = sorted(["new", "old", *(change.path for change in created(BURST_PATHS))])
    expected = {"count": BURST_PATHS + 2, "paths": paths, "truncated": False, "cause": "sweep"}
    assert as_json(event) == expected


@pytest.mark.parametrize("name", ["f", "é" * 1500])
def test_the_list_of_paths_has_a_bound_in_number_and_in_bytes(name: str) -> None:
    [event] = report(created(LISTED_PATHS_MAX + 1, name), "burst")
    data = msgspec.to_builtins(event.data)
    assert data["count"] == LISTED_PATHS_MAX + 1 and data["truncated"]
    assert 0 < len(data["paths"]) <= LISTED_PATHS_MAX
    assert sum(len(path.encode()) for path in data["paths"]) <= LISTED_BYTES_MAX


def test_a_moved_head_comes_first() -> None:
    events = report(created(1), "head", HeadMoved(None, "c", "main"))
    assert [event.type for event in events] == ["git.head", "file.changed"]
    assert as_json(events[0]) == {"from": None, "to": "c", "branch": "main"}


def test_what_was_not_remembered_is_admitted() -> None:
    [event] = report(created(1), "burst", more=True)
    assert msgspec.to_builtins(event.data)["truncated"] is True
    assert report([], "burst") == []
