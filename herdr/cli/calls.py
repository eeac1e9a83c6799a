"""`herdr calls`: the newest calls of the model pool, one a line: who waited how long, and what was cached."""

import argparse
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.terminal import note, print_json, print_table

_EPILOG = """\
examples:
  herdr calls
  herdr calls --agent reviewer --limit 100 --json

Newest first. prompt, cached and output are tokens: of the prompt, of it those that were in the slot already, and of
the answer. `changed` names the first part of the prompt that differed from what the slot held.
"""
LIMIT_DEFAULT = 20
_COLUMNS = (
    *("time", "agent", "route", "prio", "backend", "slot", "queue", "first", "total"),
    *("prompt", "cached", "output", "end", "changed"),
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "calls",
        help="the newest model calls",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--agent", help="only this agent's")
    parser.add_argument("--route", help="only this route's")
    parser.add_argument(
        "--limit",
        type=_count,
        default=LIMIT_DEFAULT,
        metavar="N",
        help=f"at most so many (default {LIMIT_DEFAULT})",
    )
    add_connection(parser)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Print the calls."""
    asked = {"limit": args.limit, "agent": args.agent, "route": args.route}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    calls = gateway_of(args).call("GET", f"/v1/calls?{query}")["calls"]
    if args.json:
        for call in calls:
            print_json(call)
    elif calls:
        print_table(_COLUMNS, map(cells, calls))
    else:
        note("no model call is recorded" + (" for these" if args.agent or args.route else " yet"))
    return 0


def cells(call: Mapping[str, Any]) -> list[str]:
    """Return one call as the cells of a row."""
    return [
        _local_time(call.get("time")),
        *(_text(call.get(name)) for name in ("agent", "route", "priority", "backend", "slot")),
        *(seconds(call.get(name)) for name in ("queue_ms", "first_token_ms", "total_ms")),
        *(_text(call.get(name)) for name in ("prompt_tokens", "cached_tokens", "output_tokens")),
        _text(call.get("error") or call.get("stop_reason")),
        _text(call.get("changed")),
    ]


def _text(value: object) -> str:
    return "-" if value in (None, "") else str(value)


def seconds(value: object) -> str:
    """Return milliseconds as seconds with two decimals; `-` for none."""
    return f"{value / 1000:.2f}s" if isinstance(value, int | float) else "-"


def _local_time(time: object) -> str:
    """Return an RFC 3339 time as day and time where the reader is."""
    try:
        return datetime.fromisoformat(str(time)).astimezone().strftime("%m-%d %H:%M:%S")
    except ValueError:
        return "-"
