"""`herdr callers`: who calls something, or what it calls, and how sure that is."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from herdr.cli import symbols
from herdr.cli.client import add_connection, gateway_of
from herdr.cli.listing import cell, cells, many, number, print_rows
from herdr.cli.project import ANSWER_S, LIMIT_MAX, add_workspace, address, whole, workspace_of
from herdr.cli.terminal import note, print_json, print_line

_EPILOG = """\
examples:
  herdr callers src/cart.py::Cart.total
  herdr callers total --workspace shop
  herdr callers Cart.total --callees
  herdr callers total --json | jq -r '.callers[].path'

SYMBOL is an id as `herdr symbols` prints it, or a name, which stands for all of its definitions. `exact` was followed
through scopes and imports; `name, 3 candidates` knows only that the names are equal; `external` leads out of the
project.
"""
LINES_SHOWN = 5  # of one caller; --json has all
_CALLERS = ("caller", "lines", "call", "resolved")
_CALLEES = ("call", "lines", "resolved", "definition")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "callers",
        help="who calls something, or what it calls",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("symbol", metavar="SYMBOL", help="its id, or its name")
    parser.add_argument("--callees", action="store_true", help="what it calls, instead of who calls it")
    add_workspace(parser)
    parser.add_argument("--limit", type=whole(1, LIMIT_MAX), metavar="N", help="at most so many")
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Print definitions, and callers or callees."""
    gateway = gateway_of(args, ANSWER_S)
    what = "callees" if args.callees else "callers"
    where = address(workspace_of(gateway, args.workspace), f"/graph/{what}")
    found = gateway.read(where, {"symbol": args.symbol, "limit": args.limit})
    if args.json:
        print_json(found)
        return 0
    print_rows(symbols.COLUMNS, map(symbols.row, found.get("definitions") or ()))
    others = found.get(what) or ()
    if others:
        print_line("")
        print_rows(*((_CALLEES, map(_callee, others)) if args.callees else (_CALLERS, map(_caller, others))))
    else:
        note("it calls nothing" if args.callees else "nothing in the project calls it")
    if more := found.get("more"):
        note(f"{number(more)} more: raise --limit")
    return 0


def _caller(caller: Mapping[str, Any]) -> list[str]:
    name = caller.get("symbol") or caller.get("path")
    return [cell(name), _lines(caller), *cells(caller, "call"), resolved(caller)]


def _callee(callee: Mapping[str, Any]) -> list[str]:
    targets = [str(target.get("symbol")) for target in callee.get("targets") or ()]
    more = len(targets) - 1
    definition = targets[0] + (f" and {more} more" if more else "") if targets else "-"
    return [cell(callee.get("call") or callee.get("name")), _lines(callee), resolved(callee), definition]


def _lines(call: Mapping[str, Any]) -> str:
    lines: Sequence[object] = call.get("lines") or ()
    return cell(lines[:LINES_SHOWN]) + (" …" if len(lines) > LINES_SHOWN else "")


def resolved(call: Mapping[str, Any]) -> str:
    """Return how sure a call is: `exact`, `name, 3 candidates`, `external`."""
    resolution, candidates = cell(call.get("resolution")), call.get("candidates")
    if resolution != "name" or not candidates:
        return resolution
    return f"name, {many(candidates, 'candidate')}"
