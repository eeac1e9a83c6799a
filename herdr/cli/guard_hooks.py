"""The guard's git hooks: put in front of the hooks that are there, and taken out again.

git runs `pre-commit` for a commit and `pre-merge-commit`, and only that, for a merge that it commits by
itself. A hook that is there already is kept beside ours and runs first.
"""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from herdr.errors import HerdrError

NAMES = ("pre-commit", "pre-merge-commit")
KEPT = ".before-herdr"
LEGACY = ".legacy"
"""What the `pre-commit` framework appends to the name of a hook that was there before its own, which runs it."""
PASSED, REFUSED, INTERRUPTED = 0, 75, 130
"""How `herdr guard check` ends; whatever else comes means that it could not check."""
_MARK = b"# herdr guard: "
_SCRIPT = """\
#!/bin/sh
# herdr guard: refuses what touches paths that others have locked. `herdr guard uninstall` takes it out.
case $0 in */*) here=${{0%/*}} ;; *) here=. ;; esac
if [ -x "$here/{name}{kept}" ]; then
  {chain} || exit $?
fi
if command -v herdr >/dev/null 2>&1; then
  herdr guard check
elif [ -x {program} ]; then
  {command} guard check
else
  echo "herdr: there is no herdr on PATH, nor where it was when the guard was installed" >&2
  false
fi
case $? in
  {passed}) exit 0 ;;
  {refused} | {interrupted}) exit 1 ;;
esac
if [ "$(git config --type=bool herdr.guardStrict)" = true ]; then
  echo "herdr: guard: NOT CHECKED against locks, and so refused (herdr.guardStrict)" >&2
  exit 1
fi
echo "herdr: guard: NOT CHECKED against locks; it goes on" >&2
exit 0
"""
# Shell hooks are read in place of being run, so that they still see their own name in $0: dispatchers and husky
# find their parts by it. Others are run under the name that they are kept under.
_SHELL = re.compile(rb"#!\s*((?:\S*/env\s+)?(?:[^\s/]*/)*(?:sh|bash|dash)(?:\s+-[a-zA-Z]+)?)\s*$")
_READ = """{shell} -c '. "${{0%/*}}/{name}{kept}"' "$here/{name}" "$@\""""
_RUN = '"$here/{name}{kept}" "$@"'


class Found(NamedTuple):
    """What stands in the hooks folder for one hook."""

    name: str
    ours: Path | None
    """Our hook: at the hook's name, or where the `pre-commit` framework has put it."""
    kept: Path | None
    """The hook that was there before."""


def find(folder: Path, name: str) -> Found:
    """Return what stands there for a hook."""
    places = [folder / name, folder / (name + LEGACY)]
    ours = next((path for path in places if _is_ours(path)), None)
    kept = folder / (name + KEPT)
    return Found(name, ours, kept if os.path.lexists(kept) else None)


def install(folder: Path, name: str) -> Found:
    """Put our hook in front of the one that is there; a second time changes nothing but what is outdated.

    Raises HerdrError when another program has replaced ours and two hooks would have to be kept.
    """
    found, hook = find(folder, name), folder / name
    kept = folder / (name + KEPT)
    if found.ours is None and os.path.lexists(hook):
        if found.kept is not None and not _same(hook, found.kept):
            raise HerdrError(
                f"{hook} was replaced after the guard was installed, and {kept.name} beside it is the hook from "
                "before: remove the one that is not needed, then install again",
                "git_failed",
            )
        os.replace(hook, kept)
    _write(found.ours or hook, script(name, kept))
    return find(folder, name)


def uninstall(folder: Path, name: str) -> Found:
    """Take our hook out and put back what was there before; nothing happens when it is not there."""
    found = find(folder, name)
    if found.ours is not None:
        if found.kept is not None:
            os.replace(found.kept, found.ours)
        else:
            found.ours.unlink()
    return found


def script(name: str, kept: Path) -> str:
    """Return our hook, which runs the kept one (if there will be one) with the same arguments."""
    shell = _shell_of(kept)
    program = own_command()
    return _SCRIPT.format(
        name=name,
        kept=KEPT,
        chain=(_READ if shell else _RUN).format(shell=shell, name=name, kept=KEPT),
        program=shlex.quote(program[0]),
        command=shlex.join(program),
        passed=PASSED,
        refused=REFUSED,
        interrupted=INTERRUPTED,
    )


def own_command() -> list[str]:
    """Return how to run this program from anywhere, as absolute paths."""
    beside = Path(sys.argv[0]).absolute()
    for path in (beside, Path(sys.executable).with_name("herdr"), Path(shutil.which("herdr") or "/")):
        if path.name in ("herdr", "herdr-gateway") and path.is_file() and os.access(path, os.X_OK):
            return [str(path)]
    return [sys.executable, "-m", "herdr"]


def _shell_of(path: Path) -> str | None:
    """Return the shell that a hook's first line names, as words of a command; None for every other program."""
    try:
        with path.open("rb") as file:
            match = _SHELL.match(file.readline(200))
    except OSError:
        return None
    return shlex.join(match[1].decode().split()) if match and match[1].isascii() else None


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.readline(200)
            return file.readline(200).startswith(_MARK)
    except OSError:
        return False


def _same(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _write(path: Path, text: str) -> None:
    """Write an executable file so that it is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_text(text)
    new.chmod(0o755)
    os.replace(new, path)
