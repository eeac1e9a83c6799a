"""What the commands ask git: where a repository is, what it is set to, and what a commit would change."""

import os
import subprocess
from collections.abc import Mapping

from herdr.errors import HerdrError

ANSWER_S = 60.0  # a diff of 100,000 files takes a second or two
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""What git sets for a hook; elsewhere it would lead back to the hook's own repository."""


def ask_git(*args: str, folder: str | None = None, environ: Mapping[str, str] | None = None) -> bytes:
    """Return what a git command prints; raises HerdrError (`git_failed`) with the reason that git gives."""
    command = ["git", *(("-C", folder) if folder else ()), *args]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environ, timeout=ANSWER_S
        )
    except FileNotFoundError:
        raise HerdrError("there is no git on PATH", "git_failed") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HerdrError(f"git cannot be run: {error}", "git_failed") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise HerdrError(f"git {args[0]}: {said}", "git_failed")
    return done.stdout


def line_of_git(
    *args: str, folder: str | None = None, environ: Mapping[str, str] | None = None
) -> str | None:
    """Return the one line that a git command prints, or None when it fails or prints nothing."""
    try:
        raw = ask_git(*args, folder=folder, environ=environ)
    except HerdrError:
        return None
    return os.fsdecode(raw.removesuffix(b"\n")) or None


def top_of(folder: str | None = None) -> str | None:
    """Return the real path of the working tree that a folder lies in; None outside of one."""
    top = line_of_git("rev-parse", "--show-toplevel", folder=folder)
    return os.path.realpath(top) if top else None


def git_dir_of(folder: str) -> str | None:
    """Return the real git directory of the working tree that a folder lies in, whatever a hook was told."""
    environ = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    found = line_of_git("rev-parse", "--absolute-git-dir", folder=folder, environ=environ)
    return os.path.realpath(found) if found else None


def git_config(name: str, *options: str) -> str | None:
    """Return a value of git's configuration as it holds here; None when it is not set."""
    return line_of_git("config", *options, "--get", name)


def setting(name: str) -> str | None:
    """Return one of our own values in git's configuration (`herdr.NAME`); None when it is not set."""
    return git_config(f"herdr.{name}")


def set_setting(name: str, value: str | None) -> None:
    """Set one of our own values for this repository, or take it out (None).

    Where git tells working trees apart (`extensions.worktreeConfig`), for this working tree alone.
    """
    apart = git_config("extensions.worktreeConfig", "--type=bool") == "true"
    where = "--worktree" if apart else "--local"
    if value is None:
        line_of_git("config", where, "--unset-all", f"herdr.{name}")  # fails when it is not there
    else:
        ask_git("config", where, f"herdr.{name}", value)


def is_strict() -> bool:
    """Tell whether `herdr.guardStrict` is set."""
    return git_config("herdr.guardStrict", "--type=bool") == "true"


def staged() -> list[bytes]:
    """Return the paths that a commit of the index would change, from the top of the working tree.

    Renames are not looked for, so both ends of each are there. Whatever the user's settings would leave out
    (submodules, paths outside of a folder) is asked for.
    """
    raw = ask_git(
        *("diff", "--cached", "--name-only", "--no-renames", "-z"),
        *("--no-ext-diff", "--no-relative", "--ignore-submodules=none"),
    )
    return [path for path in raw.split(b"\0") if path]
