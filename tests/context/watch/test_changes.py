import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.context.watch.changes import Change, FileState, diff, differs

OLD = FileState(3, 1, 10, "sha256:a")


def state(size: int = 3, mtime: int = 1, inode: int = 10, digest: str | None = None) -> FileState:
    return FileState(size, mtime, inode, digest)


@pytest.mark.parametrize(
    ("old", "new", "different"),
    [
        (state(), state(), False),
        (state(), state(size=4), True),
        (state(), state(mtime=2), True),
        (state(), state(inode=11), False),  # some file systems number files anew at every look
        (state(digest="a"), state(mtime=2, digest="a"), False),  # touched
        (state(digest="a"), state(mtime=2), True),  # no longer readable: cannot be told, so it is told
        (state(digest="a"), state(digest="b"), True),  # same numbers, other content
    ],
)
def test_what_counts_as_different(old: FileState, new: FileState, different: bool) -> None:
    assert differs(old, new) is different


def kinds(changes: list[Change]) -> list[tuple[str, str, str | None]]:
    return [(change.kind, change.path, change.old_path) for change in changes]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": None}, {}, []),  # came and went
        ({"a": None}, {"a": OLD}, [("created", "a", None)]),
        ({"a": OLD}, {}, [("deleted", "a", None)]),
        ({"a": OLD}, {"a": state(4)}, [("modified", "a", None)]),
        ({"a": OLD, "b": None}, {"b": OLD}, [("renamed", "b", "a")]),
        # the inode of a deleted file, given to another one
        ({"a": state(), "b": None}, {"b": state(5, 9)}, [("deleted", "a", None), ("created", "b", None)]),
        # copied to another place and removed: same content, other inode
        (
            {"a": state(digest="h"), "b": None},
            {"b": state(mtime=9, inode=99, digest="h")},
            [("renamed", "b", "a")],
        ),
        # empty files are all alike
        (
            {"a": state(0, 1, 1, "e"), "b": None},
            {"b": state(0, 2, 2, "e")},
            [("deleted", "a", None), ("created", "b", None)],
        ),
        # of two with the same content, the one with the same name
        (
            {"x/1": state(inode=1, digest="h"), "x/2": state(inode=2, digest="h"), "y/2": None},
            {"y/2": state(mtime=5, inode=3, digest="h")},
            [("deleted", "x/1", None), ("renamed", "y/2", "x/2")],
        ),
        # moved onto another file: that one is modified
        ({"a": OLD, "b": state(9)}, {"b": OLD}, [("deleted", "a", None), ("modified", "b", None)]),
    ],
)
def test_diff(before: dict[str, FileState | None], after: dict[str, FileState], expected: object) -> None:
    assert sorted(kinds(diff(before, after)), key=lambda change: change[1]) == expected


STATES = st.builds(
    FileState,
    size=st.integers(0, 2),
    mtime_ns=st.integers(0, 2),
    inode=st.integers(0, 4),
    hash=st.sampled_from([None, "h1", "h2"]),
)
PATHS = st.sampled_from(["a", "b", "d/a", "d/b", "e/a"])


def play(table: dict[str, FileState], changes: list[Change]) -> dict[str, FileState]:
    """Do to a table what the changes say: deletions and the old ends of renames first."""
    result = dict(table)
    for change in changes:
        if change.kind == "deleted":
            del result[change.path]
        elif change.kind == "renamed":
            assert change.old_path is not None
            del result[change.old_path]
    for change in changes:
        if change.after is not None:
            assert (change.kind == "modified") == (change.path in result)
            result[change.path] = change.after
    return result


@given(st.dictionaries(PATHS, STATES), st.dictionaries(PATHS, STATES))
def test_changes_lead_from_one_table_to_the_other(
    old: dict[str, FileState], new: dict[str, FileState]
) -> None:
    changes = diff({path: old.get(path) for path in {*old, *new}}, new)
    reached = play(old, changes)
    assert reached.keys() == new.keys()
    assert all(not differs(reached[path], new[path]) for path in new)
    assert [change.path for change in changes] == sorted(change.path for change in changes)
