import os
from pathlib import Path
from typing import Any

import pytest

from herdr.context.watch.repository import GitFailed, Head, Repository, find_repository, list_files, read_head


def found(root: Path) -> Repository:
    repository = find_repository(str(root))
    assert repository is not None
    return repository


def test_head_on_a_branch_packed_detached_and_unborn(root: Path, git: Any, tmp_path: Path) -> None:
    commit = git(root, "rev-parse", "HEAD")
    assert read_head(found(root)) == Head("main", commit)
    git(root, "checkout", "-q", "-b", "feature/x")
    git(root, "pack-refs", "--all")
    assert read_head(found(root)) == Head("feature/x", commit)
    git(root, "checkout", "-q", "--detach")
    assert read_head(found(root)) == Head(None, commit)
    git(tmp_path, "init", "-q", "empty")
    assert read_head(found(tmp_path / "empty")) == Head("main", None)


def test_a_linked_work_tree(root: Path, git: Any, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    repository = found(tmp_path / "side")
    assert repository.common_dir == str(root / ".git") and repository.git_dir != repository.common_dir
    assert read_head(repository) == Head("side", git(root, "rev-parse", "HEAD"))


def test_a_folder_within_and_a_folder_without(root: Path, tmp_path: Path) -> None:
    assert found(root / "src").top == str(root)
    (tmp_path / "plain" / ".git").mkdir(parents=True)  # no HEAD: not a repository
    assert find_repository(str(tmp_path / "plain")) is None


def test_a_ref_that_leads_out_of_the_repository_is_not_read(root: Path) -> None:
    (root / ".git" / "HEAD").write_text("ref: refs/heads/../../../secret\n")
    (root / "secret").write_text("0" * 40)
    assert read_head(found(root)).commit is None


def test_git_lists_tracked_and_new_files_but_not_ignored_ones(root: Path) -> None:
    (root / "new").write_text("x")
    (root / "x.log").write_text("x")
    assert set(list_files(str(root))) == {b"README", b".gitignore", b"src/a.py", b"new"}


def test_the_program_that_a_repository_names_as_fsmonitor_is_not_run(root: Path, git: Any) -> None:
    script = root / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {root}/was-run\n")
    script.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(script))
    assert b"README" in set(list_files(str(root)))
    assert not (root / "was-run").exists()


def test_variables_of_a_surrounding_git_do_not_lead_astray(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert b"README" in set(list_files(str(root)))


def test_a_refusal_is_an_error_with_a_reason(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GitFailed, match="could not list"):
        list(list_files(str(tmp_path)))
    os.chown(root, 12345, 12345)
    with pytest.raises(GitFailed, match="another user owns it"):
        list(list_files(str(root)))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GitFailed, match="cannot be started"):
        list(list_files(str(root)))
