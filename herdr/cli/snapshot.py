"""`herdr snapshot`: what is known of a project as one file, for CI or another machine."""

import argparse
from pathlib import Path

from herdr.cli.client import Gateway, add_connection, gateway_of, part_of, with_query
from herdr.cli.files import write_whole
from herdr.cli.listing import many, number, size
from herdr.cli.project import add_workspace, workspace_of
from herdr.cli.terminal import print_json, print_line

_EPILOG = """\
examples:
  herdr snapshot export shop.herdr
  herdr snapshot import shop.herdr --workspace shop
  herdr snapshot show shop.herdr

It holds the graph, summaries, artifacts and decisions; whole conversations only with --sessions.
"""
SILENCE_S = 300.0  # an export is packed, an import's changed files are parsed, before the gateway answers
KIND = "application/zstd"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its parts."""
    parser = subparsers.add_parser(
        "snapshot",
        help="what is known of a project, as one file",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    export = parts.add_parser(
        "export",
        help="write the file",
        description="Write the file, in place of what is there once it is whole.",
        epilog="example: herdr snapshot export shop.herdr --workspace shop",
    )
    export.add_argument("--sessions", action="store_true", help="whole conversations too")
    bring = parts.add_parser(
        "import",
        help="take a file in",
        description="Take in what a file knows; files that differ from it are parsed. Needs the scope admin.",
        epilog="example: herdr snapshot import shop.herdr --workspace shop",
    )
    for part in (export, bring):
        part.add_argument("file", type=Path, metavar="FILE", help="the snapshot")
        add_workspace(part)
        add_connection(part)


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for."""
    gateway = gateway_of(args, SILENCE_S)
    workspace = workspace_of(gateway, args.workspace)
    (_export if args.part == "export" else _import)(gateway, workspace, args)
    return 0


def _address(workspace: str) -> str:
    return f"/v1/snapshots/{part_of(workspace)}"


def _export(gateway: Gateway, workspace: str, args: argparse.Namespace) -> None:
    query = {"sessions": "true" if args.sessions else "false"}
    count = write_whole(args.file, gateway.chunks(with_query(_address(workspace), query)))
    if args.json:
        print_json({"workspace": workspace, "file": str(args.file), "bytes": count})
    else:
        print_line(f"{args.file}  {size(count)} of {workspace}")


def _import(gateway: Gateway, workspace: str, args: argparse.Namespace) -> None:
    with args.file.open("rb") as body:
        count = args.file.stat().st_size
        found = gateway.object(gateway.send("POST", _address(workspace), body, count, KIND))
    if args.json:
        print_json(found)
        return
    print_line(
        f"{workspace}: {many(found.get('files'), 'file')}, {number(found.get('reused'))} as in the snapshot, "
        f"{number(found.get('parsed'))} parsed"
    )
    brought = ("artifacts", "decisions", "sessions")
    print_line("  " + ", ".join(f"{number(found.get(name))} {name}" for name in brought))
