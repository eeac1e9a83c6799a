"""Our reading of the ignore rules against git's own, on a real folder."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdr.context.watch.ignore import Ignore
from herdr.context.watch.repository import excludes_file, find_repository

FILES = [
    "a", "b.log", "dir/a", "dir/b.log", "dir/sub/a", "dir/sub/c.tmp",
    "dir/sub/deep/a", "build/out", "build/keep/a", "x y", "z#", "dir/build/a",
]  # fmt: skip
PATTERNS = [
    "a", "/a", "*.log", "!b.log", "dir/", "dir", "/dir/sub", "sub/", "**/a", "dir/**", "dir/*", "!dir/sub/",
    "build/*", "!build/keep", "*", "!*/", "!a", "x\\ y", "z\\#", "# comment", "", "a/", "**/deep/**",
    "dir/**/a", "**", "!**", "/**", "**/", "!/dir/**", "!**/sub/",
    "?", "[ab]", "[!a]", "b.*", "\\!a", "!", "[z-a]", "a\r", "sub/deep", "deep/a",
]  # fmt: skip
LINES = st.lists(st.sampled_from(PATTERNS), max_size=4)


@pytest.fixture
def folder(tmp_path: Path, git: Any) -> Path:
    root = tmp_path / "r"
    for path in FILES:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    git(root, "init", "-q")
    return root


def git_lists(root: Path) -> set[str]:
    command = ("git", "ls-files", "-z", "--others", "--exclude-standard")
    done = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True)
    return {path for path in done.stdout.split("\0") if path and not path.endswith(".gitignore")}


def we_list(root: Path) -> set[str]:
    repository = find_repository(str(root))
    ignore = Ignore(str(root), repository, (), excludes_file(str(root)))
    return {path for path in FILES if not ignore.ignored(path)}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=LINES, inner=LINES, excluded=LINES)
def test_we_ignore_what_git_ignores(
    folder: Path, top: Sequence[str], inner: Sequence[str], excluded: Sequence[str]
) -> None:
    (folder / ".gitignore").write_text("\n".join(top), newline="")
    (folder / "dir" / ".gitignore").write_text("\n".join(inner), newline="")
    (folder / ".git" / "info" / "exclude").write_text("\n".join(excluded), newline="")
    assert we_list(folder) == git_lists(folder)


def test_the_users_own_ignore_file(folder: Path, git: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("\ufeffa\n*.tmp\n")
    git(folder, "config", "core.excludesFile", str(tmp_path / "mine"))
    assert "dir/sub/c.tmp" not in we_list(folder)
    assert we_list(folder) == git_lists(folder)


def test_a_workspace_within_a_repository_obeys_the_rules_above_it(folder: Path) -> None:
    (folder / ".gitignore").write_text("dir/sub/*.tmp\n/a\n")
    root = folder / "dir"
    ignore = Ignore(str(root), find_repository(str(root)))
    assert ignore.ignored("sub/c.tmp") and not ignore.ignored("a") and not ignore.root_is_ignored()


def test_a_workspace_that_the_repository_around_it_ignores(folder: Path) -> None:
    (folder / ".gitignore").write_text("build/\n")
    root = folder / "build" / "keep"
    assert Ignore(str(root), find_repository(str(root))).root_is_ignored()


def test_gits_own_files_and_what_is_excluded_by_hand_are_always_out(folder: Path, tmp_path: Path) -> None:
    ignore = Ignore(str(folder), None, (str(folder / "build"), str(tmp_path / "elsewhere")))
    assert ignore.ignored(".git/HEAD") and ignore.ignored("dir/.git")
    assert ignore.ignored("build", is_folder=True) and ignore.ignored("build/out")
    assert not ignore.ignored("builder") and not ignore.ignored("a")


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_rules_that_are_no_regular_file_are_not_read(folder: Path, kind: str, tmp_path: Path) -> None:
    target = folder / ".gitignore"
    if kind == "link":
        (tmp_path / "rules").write_text("a\n")
        target.symlink_to(tmp_path / "rules")
    elif kind == "folder":
        target.mkdir()
    else:
        subprocess.run(["mkfifo", str(target)], check=True)
    assert we_list(folder) == set(FILES)
