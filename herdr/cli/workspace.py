"""`herdr workspace`: have the gateway watch folders; it remembers them over restarts."""

import argparse
import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.terminal import note, print_json, print_line, print_table

_EPILOG = """\
examples:
  herdr workspace add ~/src/shop
  herdr workspace add . --name shop
  herdr workspace list
  herdr workspace remove shop
"""
_COLUMNS = ("name", "path", "status", "files", "note")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its three parts."""
    parser = subparsers.add_parser(
        "workspace",
        help="watch folders",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    add = parts.add_parser(
        "add", help="watch a folder", epilog="example: herdr workspace add ~/src/shop --name shop"
    )
    add.add_argument("path", metavar="PATH", help="a folder on the machine of the gateway")
    add.add_argument("--name", metavar="N", help="workspace in its events (default: the folder's name)")
    listing = parts.add_parser(
        "list", help="the watched folders", epilog="example: herdr workspace list --json"
    )
    remove = parts.add_parser(
        "remove", help="stop watching a folder", epilog="example: herdr workspace remove shop"
    )
    remove.add_argument("name", metavar="NAME", help="the workspace's name")
    for part in (add, listing, remove):
        add_connection(part)


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for."""
    gateway = gateway_of(args)
    if args.part == "list":
        _list(gateway.call("GET", "/v1/workspaces")["workspaces"], args.json)
    elif args.part == "add":
        body = {"path": os.path.abspath(os.path.expanduser(args.path))}  # the gateway stands elsewhere
        added = gateway.call("POST", "/v1/workspaces", body | ({"name": args.name} if args.name else {}))
        print_json(added) if args.json else print_line(f"{added['name']}  {added['path']}")
    else:
        gateway.call("DELETE", f"/v1/workspaces/{quote(args.name, safe='')}")
        note(f"{args.name} is no longer watched")
    return 0


def _list(workspaces: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    workspaces = list(workspaces)
    if as_json:
        for workspace in workspaces:
            print_json(workspace)
    elif workspaces:
        print_table(_COLUMNS, ([_cell(w.get(column)) for column in _COLUMNS] for w in workspaces))
    else:
        note("no folder is watched; add one with `herdr workspace add PATH`")


def _cell(value: object) -> str:
    return "-" if value in (None, "") else str(value)
