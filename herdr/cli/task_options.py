"""The options that the parts of `herdr task` share, and what becomes of them."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from herdr.cli.client import add_connection

CLAIM_VARIABLES = ("HERDR_TASK", "HERDR_TASK_TOKEN")
"""A task and its token, as `herdr task work` tells them to the command that it runs."""

_FIELDS = {"ttl": "ttl_s", "wait": "wait_s"}
_LISTS = {
    "decision": ("decisions", "TEXT", "something that was decided"),
    "file": ("files", "PATH", "a file that was changed or matters"),
    "artifact": ("artifacts", "NAME", "an artifact to look at"),
    "open_question": ("open_questions", "TEXT", "something that is not clear yet"),
}
_WORK_EPILOG = """\
examples:
  herdr task work --role tester -- scripts/test
  herdr task work --role reviewer --once -- sh -c 'claude -p "Review $HERDR_TASK_TITLE"'

The command gets HERDR_TASK, HERDR_TASK_TOKEN and HERDR_TASK_TITLE, and the task as JSON on stdin; we renew while it
runs. When it exits with 0 the task is finished, unless the command has handed it over or ended it itself; any other
code gives the task back. Ctrl-C and SIGTERM go to the command, and end our work with it.
"""


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return what reads a number of seconds within bounds."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number of seconds from {least:g} to {most:g}"
            )
        return number

    return read


def add_note(parser: argparse.ArgumentParser) -> None:
    """Add the options for what goes along with a task."""
    parser.add_argument("--summary", metavar="TEXT", help="what whoever has it next should know")
    for option, (_, kind, text) in _LISTS.items():
        parser.add_argument(
            f"--{option.replace('_', '-')}", action="append", metavar=kind, help=f"{text}; may be repeated"
        )


def add_claim(parser: argparse.ArgumentParser) -> None:
    """Add the option for the token that says that one holds a task."""
    default = os.environ.get(CLAIM_VARIABLES[1])
    parser.add_argument(
        "--task-token",
        type=_token,
        default=default or None,
        required=not default,
        metavar="N",
        help=f"the token that came with the claim (default: {CLAIM_VARIABLES[1]})",
    )


def add_work(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `herdr task work`."""
    part = parts.add_parser(
        "work",
        help="run a command for each task of a role",
        description="Run a command for one task of a role after the other, waiting for more.",
        epilog=_WORK_EPILOG,
        usage="herdr task work --role R [OPTIONS] -- COMMAND...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("--role", required=True, metavar="R", help="whose tasks")
    part.add_argument("--workspace", metavar="W", help="which project (default: default)")
    part.add_argument(
        "--owner",
        metavar="N",
        help="who we are (default: HERDR_OWNER, git's herdr.owner, or a name for this run alone)",
    )
    part.add_argument("--once", action="store_true", help="stop after one task, with the command's exit code")
    part.add_argument(
        "--ttl",
        type=seconds(1, 3600),
        default=120.0,
        metavar="S",
        help="lease, renewed while the command runs: after so long the task returns if we die (default 120)",
    )
    add_connection(part)
    part.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command, after --")


def _token(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**63):
        raise argparse.ArgumentTypeError(
            f"{text[:80]!r} is no token: that is the number that came with the claim"
        )
    return int(text)


def body_of(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the fields that are given, and the note if there is any."""
    given = {_FIELDS.get(name, name): getattr(args, name, None) for name in names}
    lists = {field: getattr(args, option, None) for option, (field, _, _) in _LISTS.items()}
    told = {"summary": getattr(args, "summary", None), **lists}
    noted = {field: value for field, value in told.items() if value}
    body = {name: value for name, value in given.items() if value is not None}
    return {**body, "note": noted} if noted else body
