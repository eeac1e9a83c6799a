"""`herdr guard`: git hooks that refuse a commit of paths that others have locked."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from herdr.cli import guard_hooks
from herdr.cli.client import Gateway, add_connection, gateway_of
from herdr.cli.git import git_config, is_strict, line_of_git, set_setting, top_of
from herdr.cli.guard_check import TIMEOUT_S, judge, refusal, unchecked_lines
from herdr.cli.owner import OWNER_SETTING, named_owner
from herdr.cli.places import places_of
from herdr.cli.terminal import note, print_line
from herdr.clock import SystemClock
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr guard install --owner ann
  herdr guard install --strict
  herdr guard status
  herdr guard uninstall
"""
_STRICT, _WORKSPACE = "guardStrict", "workspace"
_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "install": "put the hooks into this repository, in front of those that are there",
        "uninstall": "take the hooks out, and put back what was there",
        "status": "say what is installed, and whether it can check",
        "check": "check what is staged; this is what the hooks run",
    }
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its parts."""
    parser = subparsers.add_parser(
        "guard",
        help="refuse commits of what others have locked",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    for name, text in _PARTS.items():
        part = parts.add_parser(
            name, help=text, description=f"{text.capitalize()}.", epilog=f"example: herdr guard {name}"
        )
        if name == "install":
            part.add_argument(
                "--strict",
                action="store_true",
                help="refuse when it cannot be checked (default: say so, and pass)",
            )
        if name in ("install", "check"):
            part.add_argument(
                "--workspace", metavar="W", help="which project (default: the one of this folder)"
            )
            part.add_argument(
                "--owner", metavar="N", help="who commits here (default: HERDR_OWNER, herdr.owner)"
            )
        if name in ("status", "check"):
            add_connection(part, as_json=False)


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for."""
    parts: Mapping[str, Callable[[argparse.Namespace], int]] = {
        "install": _install,
        "uninstall": _uninstall,
        "status": _status,
        "check": _check,
    }
    return parts[args.part](args)


def _hooks() -> Path:
    """Return the folder of this repository's hooks, as git finds it (worktrees, submodules, core.hooksPath)."""
    top = top_of()
    if top is None:
        raise HerdrError("there is no git working tree here: change into one", "git_failed")
    found = line_of_git("rev-parse", "--git-path", "hooks", folder=top)
    if found is None:
        raise HerdrError("git does not say where its hooks are", "git_failed")
    folder = Path(top, found)
    if folder.exists() and not folder.is_dir():
        raise HerdrError(f"hooks are switched off here: core.hooksPath is {folder}", "git_failed")
    return folder


def _install(args: argparse.Namespace) -> int:
    folder = _hooks()
    for name in guard_hooks.NAMES:
        found = guard_hooks.install(folder, name)
        first = f", after {found.kept.name}" if found.kept else ""
        print_line(f"{found.ours}{first}")
    wanted = {_STRICT: "true" if args.strict else None, _WORKSPACE: args.workspace, OWNER_SETTING: args.owner}
    for name, value in wanted.items():
        if value is not None:  # what is not said stays as it is
            set_setting(name, value)
    for line in _advice(folder):
        note(line)
    return 0


def _advice(folder: Path) -> Iterator[str]:
    if named_owner(None) is None:
        yield (
            "nobody has said who commits here, so every lock will count as somebody else's: set HERDR_OWNER for each "
            "tool, or `git config herdr.owner NAME`"
        )
    if git_config("core.hooksPath") is not None:
        yield f"core.hooksPath is set: every repository that uses {folder} is guarded"
    if folder.name == "_" and folder.parent.name == ".husky":
        yield (
            "husky writes this folder anew whenever it is installed, and the guard is gone then: put the line "
            "`herdr guard check` into .husky/pre-commit and .husky/pre-merge-commit instead"
        )


def _uninstall(args: argparse.Namespace) -> int:
    folder = _hooks()
    found = [guard_hooks.uninstall(folder, name) for name in guard_hooks.NAMES]
    for hook in found:
        if hook.ours is not None:
            print_line(f"{hook.ours}: {'the hook from before is back' if hook.kept else 'removed'}")
    set_setting(_STRICT, None)
    if not any(hook.ours for hook in found):
        note("the guard is not installed here")
    return 0


def _status(args: argparse.Namespace) -> int:
    folder = _hooks()
    found = [guard_hooks.find(folder, name) for name in guard_hooks.NAMES]
    print_line(f"hooks      {folder}")
    for hook in found:
        print_line(f"{hook.name:<17}{_state(hook)}")
    print_line(
        f"strict     {'yes: refuses when it cannot check' if is_strict() else 'no: passes when it cannot check'}"
    )
    print_line(
        f"owner      {named_owner(None) or 'not said: set HERDR_OWNER, or `git config herdr.owner NAME`'}"
    )
    print_line(f"checks     {_reach(gateway_of(args, TIMEOUT_S))}")
    return 0 if all(hook.ours for hook in found) else 1


def _state(hook: guard_hooks.Found) -> str:
    if hook.ours is None:
        return "not installed"
    moved = "" if hook.ours.name == hook.name else f" as {hook.ours.name}"
    return f"installed{moved}" + (f", after {hook.kept.name}" if hook.kept else "")


def _reach(gateway: Gateway) -> str:
    try:
        folders = places_of(gateway, None, top_of() or ".").folders()
    except HerdrError as error:
        return f"nothing now: {error.detail}"
    told = [f"{name} ({', '.join(within)})" for name, within in folders.items()]
    return "workspace " + ", ".join(told) if told else "nothing: no watched workspace holds this repository"


def _check(args: argparse.Namespace) -> int:
    try:
        owner = named_owner(args.owner)
        verdict = judge(gateway_of(args, TIMEOUT_S), owner, args.workspace)
    except HerdrError as error:
        if is_strict():
            raise HerdrError(
                f"guard: NOT CHECKED against locks, and so refused: {error.detail}\n"
                "--no-verify commits all the same; `git config --unset herdr.guardStrict` lets such commits pass.",
                "locked",
            ) from None
        note(f"guard: NOT CHECKED against locks, it goes on: {error.detail}")
        return 0
    for line in unchecked_lines(verdict):
        note(line)
    if verdict.conflicts:
        raise HerdrError(refusal(verdict, owner, SystemClock().wall_us()), "locked")
    return 0
