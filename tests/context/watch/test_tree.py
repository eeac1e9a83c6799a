"""The table after any sequence of operations on a real folder equals a table made from nothing."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdr.clock import SystemClock
from herdr.context.watch.changes import Change, diff, differs
from herdr.context.watch.tree import RootLost, Tree

PATHS = st.sampled_from(["a", "b", "d/a", "d/e/a", "d/e/b", "f/a", "x.log", ".gitignore"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "remove", "rename", "link", "sweep", "hint"]), PATHS, PATHS),
    max_size=12,
)


def write(root: Path, path: str, other: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("*.log\n" if path == ".gitignore" else other)


def remove(root: Path, path: str, _other: str) -> None:
    target = root / path.partition("/")[0]
    shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink(missing_ok=True)


def rename(root: Path, path: str, other: str) -> None:
    (root / other).parent.mkdir(parents=True, exist_ok=True)
    os.rename(root / path, root / other)


def link(root: Path, path: str, other: str) -> None:
    (root / path).symlink_to(root / other)


DOINGS: dict[str, Callable[[Path, str, str], None]] = {
    "write": write, "remove": remove, "rename": rename, "link": link,
}  # fmt: skip


def tree_at(root: Path, **more: Any) -> Tree:
    return Tree(root, SystemClock(), (), more.get("files_max", 1000), 1000)


async def swept(tree: Tree) -> list[Change]:
    before = dict(tree.table)
    touched: set[str] = set()
    async for updates in tree.sweep(hashing=True):
        tree.apply(updates)
        touched.update(update.path for update in updates if update.report)
    return diff({path: before.get(path) for path in touched}, tree.table)


@pytest.mark.parametrize("repository", [True, False])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_sweeps_and_hints_in_any_order_end_with_the_truth(
    tmp_path_factory: pytest.TempPathFactory, git: Any, repository: bool, steps: list[tuple[str, str, str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    if repository:
        git(root, "init", "-q")
    tree = tree_at(root)
    await swept(tree)
    for what, path, other in steps:
        if what == "sweep":
            await swept(tree)
        elif what == "hint":
            async for seen in tree.look([str(root / path)]):
                tree.apply(seen.updates)
        else:
            try:
                DOINGS[what](root, path, other)
            except OSError:
                continue
    await swept(tree)
    fresh = tree_at(root)
    await swept(fresh)
    assert tree.table.keys() == fresh.table.keys()
    assert not [path for path, state in fresh.table.items() if differs(tree.table[path], state)]
    assert await swept(tree) == []


async def test_a_refusing_git_is_replaced_by_a_walk_that_says_so(root: Path) -> None:
    os.chown(root, 12345, 12345)
    tree = tree_at(root)
    await swept(tree)
    assert set(tree.table) == {".gitignore", "README", "src/a.py"}
    assert tree.listing == "walk" and "another user owns it" in (tree.listing_note or "")


async def test_a_vanished_root_is_no_mass_deletion(root: Path) -> None:
    tree = tree_at(root)
    await swept(tree)
    shutil.rmtree(root)
    with pytest.raises(RootLost):
        async for seen in tree.look([str(root / "README")]):
            tree.apply(seen.updates)
    with pytest.raises(RootLost):
        await swept(tree)
    assert len(tree.table) == 3


async def test_a_new_folder_is_looked_into_at_once(root: Path) -> None:
    tree = tree_at(root)
    await swept(tree)
    (root / "new" / "build").mkdir(parents=True)
    for path in ("new/a", "new/b.log", "new/build/c"):
        (root / path).write_text("x")
    [seen] = [seen async for seen in tree.look([str(root / "new")])]
    assert [update.path for update in seen.updates] == ["new/a"] and seen.structural


async def test_a_file_that_stops_being_listed_but_exists_is_not_reported(root: Path) -> None:
    (root / "notes").write_text("x")
    tree = tree_at(root)
    await swept(tree)
    (root / ".git" / "info" / "exclude").write_text("notes\n")
    assert await swept(tree) == []
    assert "notes" not in tree.table


async def test_a_root_that_vanishes_during_a_sweep_is_no_mass_deletion(root: Path) -> None:
    tree = tree_at(root)
    await swept(tree)
    tree.table["known"] = tree.table["README"]  # looked at after all that is listed
    with pytest.raises(RootLost):
        async for updates in tree.sweep(hashing=True):
            tree.apply(updates)
            shutil.rmtree(root, ignore_errors=True)
    assert "known" in tree.table


async def test_a_workspace_that_the_repository_around_it_ignores_stands_for_itself(root: Path) -> None:
    (root / "build").mkdir()
    (root / "build" / "a").write_text("x")
    tree = tree_at(root / "build")
    await swept(tree)
    assert set(tree.table) == {"a"} and tree.listing == "walk"
