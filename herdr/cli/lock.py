"""`herdr lock run`: run a command while holding locks on what it writes."""

import argparse
import os
from typing import Any

from herdr.cli.child import run_inherited
from herdr.cli.client import TIMEOUT_S, Gateway, add_connection
from herdr.cli.lease import Lease, Taking, lock_body
from herdr.cli.main import INTERRUPTED, Parser
from herdr.cli.owner import OWNER_VARIABLE, named_owner, unique_owner
from herdr.cli.places import spots_of
from herdr.cli.terminal import note
from herdr.clock import SystemClock
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr lock run src/cart.py -- python fix_cart.py
  herdr lock run --wait 60 --purpose 'new parser' src/parser/ 'tests/**/test_parser*' -- claude
  herdr lock run git:HEAD -- git switch main

Paths are meant from where you are: a file, a folder with all that is in it, a glob (quote it), or git:HEAD and
git:index. The command has the terminal, the signals and the exit code to itself. Exit codes of our own: 75 somebody
else holds a path (or waiting would never end), 3 the gateway cannot be reached; the command has not run then.
"""
WAIT_MAX_S = 7 * 86_400.0  # a week: more is a mistake
LOCK_VARIABLE, TOKEN_VARIABLE = "HERDR_LOCK", "HERDR_LOCK_TOKEN"


class _BeforeCommand(Parser):
    """Takes the command line apart at the first `--`: options may stand among the paths, and the rest is not ours."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse what stands before `--`; what follows is `argv`."""
        ours = list(args)
        end = ours.index("--") if "--" in ours else len(ours)
        # argparse itself takes only those paths that come before the first option
        found, rest = argparse.ArgumentParser.parse_known_args(self, ours[:end], namespace)
        if unknown := [word for word in rest if word.startswith("-")]:
            super().parse_known_args(unknown)  # says so, and exits
        found.paths = [*found.paths, *rest]
        found.argv = ours[end + 1 :]
        return found, []


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its part."""
    parser = subparsers.add_parser(
        "lock",
        help="hold locks around a command",
        description=__doc__,
        epilog="example: herdr lock run src/cart.py -- python fix_cart.py",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True, parser_class=_BeforeCommand)
    part = parts.add_parser(
        "run",
        help="run a command while holding locks on what it writes",
        description=__doc__,
        epilog=_EPILOG,
        usage="herdr lock run [OPTIONS] PATH... -- COMMAND...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("paths", metavar="PATH", nargs="*", help="what to lock: all of it, or nothing")
    part.add_argument(
        "--owner",
        metavar="N",
        help=f"who we are (default: {OWNER_VARIABLE}, git's herdr.owner, or a name for this run alone)",
    )
    part.add_argument(
        "--wait",
        type=_wait,
        default=0.0,
        metavar="S",
        help="wait at most so many seconds for others (default: not at all)",
    )
    part.add_argument(
        "--ttl",
        type=_ttl,
        default=60.0,
        metavar="S",
        help="lease, renewed while the command runs: for so long others wait if we die (default 60)",
    )
    part.add_argument(
        "--mode",
        choices=("write", "intent"),
        default="write",
        help="write excludes everybody (default); intent is shared with other intents",
    )
    part.add_argument("--purpose", metavar="TEXT", help="what for; others are told")
    part.add_argument(
        "--workspace", metavar="W", help="which project (default: the one that holds the paths)"
    )
    part.add_argument("--session", metavar="S", help="conversation that it belongs to")
    add_connection(part, as_json=False)


def _wait(text: str) -> float:
    return _seconds(text, 0.0, WAIT_MAX_S)


def _ttl(text: str) -> float:
    return _seconds(text, 1.0, 3600.0)


def _seconds(text: str, least: float, most: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {least:g} to {most:g}")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Take the locks, run the command, give them back; returns the command's exit code."""
    if not args.argv or not args.paths:
        missing = "command" if args.paths else "path"
        raise HerdrError(f"there is no {missing}: herdr lock run src/cart.py -- python fix_cart.py", "usage")

    def to(timeout_s: float) -> Gateway:
        return Gateway(args.url, args.token, timeout_s)

    clock = SystemClock()
    owner = named_owner(args.owner) or unique_owner()
    workspace, paths = spots_of(to(TIMEOUT_S), args.workspace, args.paths)
    body = lock_body(
        paths,
        owner=owner,
        workspace=workspace,
        ttl_s=args.ttl,
        mode=args.mode,
        purpose=args.purpose,
        session=args.session,
        reports=False,  # the command publishes nothing of what it writes
    )
    held = Taking(to, body, clock, note).take(args.wait)
    ours = {LOCK_VARIABLE: held.lock, TOKEN_VARIABLE: str(held.token), OWNER_VARIABLE: owner}
    environ = {**os.environ, **ours}
    if (
        os.environ.get(LOCK_VARIABLE) == held.lock
    ):  # of a run around this one, which keeps it and gives it back
        return run_inherited(args.argv, environ)
    code = INTERRUPTED
    try:
        with Lease(to, held, clock, note):
            code = run_inherited(args.argv, environ)
    except KeyboardInterrupt:  # while giving it back: the command has ended, and its code counts
        note("not given back: interrupted; the lease ends by itself")
    return code
