"""`herdr connect`: let an AI tool join in, by changing its own configuration files; and take that back.

The difference is shown first. The files as they were are kept, and --undo puts them back byte for byte; what was
changed in them since stays. Without a terminal nothing is asked.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from herdr.cli.client import TOKEN_VARIABLE, Gateway, add_connection, gateway_of
from herdr.cli.connections import Connected, Connections, read_file
from herdr.cli.git import top_of
from herdr.cli.places import places_of
from herdr.cli.terminal import counted, note, print_json, print_line
from herdr.connect.plan import Step, connecting, difference, disconnecting
from herdr.connect.recipe import File, Recipe, Wish
from herdr.connect.recipes import RECIPES
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr connect claude-code                 in this repository: hooks and MCP
  herdr connect codex --model               and ask the gateway's models, too
  herdr connect cursor --dry-run            only show what would change
  herdr connect claude-code --undo          as it was before

No token is written: where the gateway asks for one, the tools read it from HERDR_GATEWAY_TOKEN.
"""
_UNSAFE = frozenset("'\"\\$`{}")  # means something in some tool's settings, or in a shell
ASK_S = 3.0  # that the gateway has to answer; without it, what was known last counts


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "connect",
        help="let an AI tool join in",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("client", choices=sorted(RECIPES), metavar="CLIENT", help=", ".join(sorted(RECIPES)))
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument(
        "--project", action="store_true", help="for this repository (default where the tool can)"
    )
    scope.add_argument("--user", action="store_true", help="for all of your projects")
    parser.add_argument(
        "--model",
        action=argparse.BooleanOptionalAction,
        help="have it ask the gateway's models, too (default: as it was connected before; at first it does not)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--undo", action="store_true", help="put everything back")
    parser.add_argument("--yes", action="store_true", help="do not ask, also on a terminal")
    parser.add_argument(
        "--no-workspace", action="store_true", help="do not have the gateway watch this repository"
    )
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Connect, or disconnect, one client."""
    recipe = RECIPES[args.client]
    scope = _scope(recipe, args)
    folder = Path.home() if scope == "user" else Path(top_of() or os.getcwd())
    connections = Connections(recipe.client, scope, folder)
    before = connections.read()
    if args.undo and not before.files:
        return _nothing_to_undo(recipe, scope, folder)
    then = None if args.undo else _wished(recipe, args, before)
    steps = _steps(recipe, scope, folder, args.url, then, before)
    changing = [step for step in steps if step.now != step.then]
    _show(recipe, scope, args, steps)
    if args.dry_run:
        return 0
    if changing and not _agreed(args, len(changing)):
        note("nothing was changed")
        return 1
    if then is not None:
        then = Connected([s.keep for s in steps if s.keep is not None], [], then.token, then.model)
    connections.carry_out(steps, then)
    if then is None:
        _say_undone(recipe, steps, changing)
    else:
        _say_connected(recipe, args, changing, then)
        _look(args, folder if scope == "project" else None)
    return 0


def _scope(recipe: Recipe, args: argparse.Namespace) -> str:
    wanted = "user" if args.user else "project" if args.project else None
    if wanted is None:
        wanted = "project" if "project" in recipe.files else "user"
    if wanted not in recipe.files:
        other = next(iter(recipe.files))
        raise HerdrError(
            f"{recipe.title} can be connected with --{other} only: leave out --{wanted}", "usage"
        )
    if _UNSAFE & set(args.url):
        raise HerdrError(
            f"{args.url} cannot stand in every tool's settings: use an address without {' '.join(sorted(_UNSAFE))}",
            "usage",
        )
    if args.model and not recipe.model:
        raise HerdrError(f"{recipe.title} cannot ask the gateway's models: leave out --model", "usage")
    return wanted


def _nothing_to_undo(recipe: Recipe, scope: str, folder: Path) -> int:
    note(f"{recipe.title} is not connected in {folder}; nothing to undo")
    if (
        scope == "project"
        and "user" in recipe.files
        and Connections(recipe.client, "user", Path.home()).read().files
    ):
        note("it is connected for all of your projects: use --undo --user")
    return 0


def _wished(recipe: Recipe, args: argparse.Namespace, before: Connected) -> Connected:
    """Return what is asked for, as far as it says how the client is to be connected."""
    model = before.model if args.model is None else bool(args.model)
    return Connected(token=_needs_token(args, before), model=model)


def _needs_token(args: argparse.Namespace, before: Connected) -> bool:
    """Ask the gateway; when it does not answer, what it said last counts, or whether there is a token."""
    try:
        answer = gateway_of(args, ASK_S).ask("GET", "/v1/me")
    except HerdrError:
        return bool(args.token) if before.token is None else before.token
    if isinstance(answer.value, dict) and isinstance(answer.value.get("open"), bool):
        return not answer.value["open"]
    return bool(args.token) or answer.status == 401


def _steps(
    recipe: Recipe, scope: str, folder: Path, url: str, wished: Connected | None, before: Connected
) -> list[Step]:
    kept = before.kept()
    steps = []
    if wished is not None:
        for file in recipe.files[scope](Wish(url, bool(wished.token), wished.model)):
            path = _place(folder, file, scope)
            steps.append(connecting(path, file, read_file(path), kept.pop(path, None)))
    return steps + [disconnecting(one, read_file(path)) for path, one in kept.items()]


def _place(folder: Path, file: File, scope: str) -> str:
    """Return the path of a client's file: the first of its names that is there."""
    names = [_under(folder, name, file.home if scope == "user" else "") for name in (file.path, *file.others)]
    return str(next((name for name in names if name.exists()), names[0]))


def _under(folder: Path, name: str, variable: str) -> Path:
    moved = os.environ.get(variable) if variable else None
    if not moved:
        return folder / name
    first, _, rest = name.partition("/")
    return Path(moved).absolute() / (rest or first)


def _show(recipe: Recipe, scope: str, args: argparse.Namespace, steps: Sequence[Step]) -> None:
    lines = list(difference(steps))
    if not args.json:
        for line in lines:
            print_line(line)
        return
    changes = [{"path": step.path, "change": _change(step)} for step in steps]
    told = {"client": recipe.client, "scope": scope, "url": args.url, "undo": args.undo}
    print_json({**told, "dry_run": args.dry_run, "changes": changes, "diff": "\n".join(lines)})


def _change(step: Step) -> str:
    if step.now == step.then:
        return "none"
    return "created" if step.now is None else "removed" if step.then is None else "changed"


def _agreed(args: argparse.Namespace, count: int) -> bool:
    """Ask on a terminal; elsewhere nobody could answer, and everything can be undone."""
    if args.yes or args.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"Change {counted(count, 'file')} like this? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say_undone(recipe: Recipe, steps: Sequence[Step], changing: Sequence[Step]) -> None:
    note(f"{recipe.title} is as it was: {counted(len(changing), 'file')} put back")
    for step in steps:
        if step.stays:
            note(f"{step.path} was changed since it was written, and stays: remove it if you do not want it")


def _say_connected(
    recipe: Recipe, args: argparse.Namespace, changing: Sequence[Step], then: Connected
) -> None:
    if changing:
        note(f"{recipe.title} is connected to {args.url}: {recipe.note}")
        if then.model:
            note(recipe.model)
    else:
        note(f"{recipe.title} is as it should be; nothing was changed")
    if then.token and not os.environ.get(TOKEN_VARIABLE):
        note(f"the gateway asks for a token: set {TOKEN_VARIABLE} where {recipe.title} is started")


def _look(args: argparse.Namespace, project: Path | None) -> None:
    """Say what is missing on the gateway's side; have it watch the project."""
    try:
        gateway = gateway_of(args)
        gateway.call("GET", "/healthz")
        if project is not None and not args.no_workspace:
            _watch(gateway, project)
    except HerdrError as error:
        note(f"for now: {error.detail}")


def _watch(gateway: Gateway, project: Path) -> None:
    places = places_of(gateway, None, str(project))
    known = places.find(str(project))
    listed = {w["name"] for w in gateway.read("/v1/workspaces").get("workspaces", ())}
    if known is not None and known.workspace in listed:
        return
    added = gateway.object(gateway.call("POST", "/v1/workspaces", {"path": str(project)}))
    note(f"the gateway watches {added.get('path')} now, as workspace {added.get('name')}")
