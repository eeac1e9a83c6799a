"""`herdr symbols`: where something is defined."""

import argparse
import os
from collections.abc import Mapping
from typing import Any

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.listing import cell, cells, number, print_rows
from herdr.cli.project import ANSWER_S, add_limit, add_workspace, address, paths_of
from herdr.cli.terminal import note, print_json

_EPILOG = """\
examples:
  herdr symbols total
  herdr symbols 'Cart.*' --kind method
  herdr symbols '*_total' --path 'src/**' --json | jq -r '.symbols[].symbol'

NAME is exact, a glob with `*` (in quotes), or dotted: `Cart.total`.
"""
COLUMNS = ("symbol", "line", "kind", "signature")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "symbols",
        help="where something is defined",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="what it is called")
    parser.add_argument("--kind", metavar="K", help="only this kind: class, function, method …")
    parser.add_argument(
        "--path",
        metavar="P",
        help="only in this file or folder, or in files that a glob covers, from where we are",
    )
    add_workspace(parser)
    add_limit(parser)
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Print the symbols."""
    gateway = gateway_of(args, ANSWER_S)
    workspace, paths = paths_of(gateway, args.workspace, [args.path] if args.path is not None else [])
    covered = [f"{path}/**".removeprefix("./") if os.path.isdir(args.path) else path for path in paths]
    query = {"name": args.name, "kind": args.kind, "path": covered, "limit": args.limit}
    found = gateway.read(address(workspace, "/graph/symbols"), query)
    if args.json:
        print_json(found)
    elif symbols := found.get("symbols"):
        print_rows(COLUMNS, map(row, symbols))
        if more := found.get("more"):
            note(f"{number(more)} more: narrow it with --kind or --path, or raise --limit")
    else:
        note(f"nothing in {workspace} is called {args.name}" + (" there" if args.path or args.kind else ""))
    return 0


def row(symbol: Mapping[str, Any]) -> list[str]:
    """Return one symbol as the cells of a row."""
    return [cell(symbol.get("symbol")), *cells(symbol, "line", "kind", "signature")]
