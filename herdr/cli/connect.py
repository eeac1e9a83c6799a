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
from herdr.cli.connections import Connections
from herdr.cli.git import top_of
from herdr.cli.places import places_of
from herdr.cli.terminal import counted, note, print_json, print_line
from herdr.connect.plan import Step, connecting, difference, disconnecting
from herdr.connect.recipe import Recipe, Wish
from herdr.connect.recipes import RECIPES
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr connect claude-code                 in this repository: hooks and MCP
  herdr connect codex --user --model        and ask the gateway's models, too
  herdr connect cursor --dry-run            only show what would change
  herdr connect claude-code --undo          as it was before

No token is written: where the gateway asks for one, the tools read it from HERDR_GATEWAY_TOKEN.
"""


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
    parser.add_argument("--model", action="store_true", help="have it ask the gateway's models, too")
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
    connections = Connections(recipe.client, folder)
    if args.undo:
        steps = [disconnecting(kept, connections.read(kept.path)) for kept in connections.kept().values()]
        if not steps:
            note(f"{recipe.title} is not connected in {folder}; nothing to undo")
            return 0
    else:
        steps = _steps(recipe, scope, folder, args, connections)
    changing = [step for step in steps if step.now != step.then]
    if args.json:
        print_json({"client": recipe.client, "scope": scope, "undo": args.undo, "changes": _told(steps)})
    else:
        for line in difference(changing):
            print_line(line)
    if args.dry_run:
        return 0
    if changing and not _agreed(args, len(changing)):
        note("nothing was changed")
        return 1
    connections.carry_out(steps, undo=args.undo)
    _say(recipe, args, changing, folder, scope)
    return 0


def _scope(recipe: Recipe, args: argparse.Namespace) -> str:
    wanted = "user" if args.user else "project" if args.project else None
    if wanted is None:
        wanted = "project" if "project" in recipe.files else "user"
    if wanted not in recipe.files:
        other = next(iter(recipe.files))
        raise HerdrError(f"{recipe.title} is configured for the {other} only: use --{other}", "usage")
    return wanted


def _steps(
    recipe: Recipe, scope: str, folder: Path, args: argparse.Namespace, connections: Connections
) -> list[Step]:
    wish = Wish(args.url, bool(args.token or os.environ.get(TOKEN_VARIABLE)), args.model, scope == "user")
    kept = connections.kept()
    steps = []
    for file in recipe.files[scope](wish):
        names = [folder / name for name in (file.path, *file.others)]
        path = str(next((name for name in names if name.exists()), names[0]))
        steps.append(connecting(path, file, connections.read(path), kept.get(path)))
    return steps


def _told(steps: Sequence[Step]) -> list[dict[str, object]]:
    said = {(True, False): "created", (False, True): "removed", (False, False): "changed"}
    return [
        {
            "path": step.path,
            "change": "none" if step.now == step.then else said[step.now is None, step.then is None],
        }
        for step in steps
    ]


def _agreed(args: argparse.Namespace, count: int) -> bool:
    """Ask on a terminal; elsewhere nobody could answer, and everything can be undone."""
    if args.yes or args.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"Change {counted(count, 'file')} like this? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say(
    recipe: Recipe, args: argparse.Namespace, changing: Sequence[Step], folder: Path, scope: str
) -> None:
    if not changing:
        note(f"{recipe.title} is as it should be; nothing was changed")
    elif args.undo:
        note(f"{recipe.title} is as it was: {counted(len(changing), 'file')} put back")
        return
    else:
        note(f"{recipe.title} is connected to {args.url}: {recipe.note}")
    if not args.undo:
        _look(args, folder if scope == "project" else None)


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
