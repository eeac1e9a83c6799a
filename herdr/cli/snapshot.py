"""`herdr snapshot`: what is known of a project as one file, for CI or another machine."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from herdr.cli.client import Gateway, add_connection, gateway_of, part_of, with_query
from herdr.cli.files import write_whole
from herdr.cli.listing import cell, cells, many, moment, number, one_line, print_rows, size
from herdr.cli.project import add_workspace, workspace_of
from herdr.cli.terminal import print_json, print_line
from herdr.context.snapshot import Head, SnapshotDamaged, read_head, read_records

_EPILOG = """\
examples:
  herdr snapshot export shop.herdr
  herdr snapshot import shop.herdr --workspace shop
  herdr snapshot show shop.herdr

It holds the graph, summaries, artifacts and decisions; whole conversations only with --sessions.
"""
SILENCE_S = 300.0  # an export is packed, an import's changed files are parsed, before the gateway answers
KIND = "application/zstd"
DECISIONS_SHOWN = 20  # the newest; --json has all
_ARTIFACTS = ("artifact", "kind", "size", "by", "based on")
_DECISIONS = ("time", "source", "decision", "reason")


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
    show = parts.add_parser(
        "show",
        help="what is in a file",
        description="Verify a file and say what is in it. Asks no gateway.",
        epilog="example: herdr snapshot show shop.herdr",
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    for part in (export, bring, show):
        part.add_argument("file", type=Path, metavar="FILE", help="the snapshot")
    for part in (export, bring):
        add_workspace(part)
        add_connection(part)


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for."""
    if args.part == "show":
        return _show(args)
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


def _show(args: argparse.Namespace) -> int:
    found = contents(args.file)
    if args.json:
        print_json(found)
        return 0
    for line in describe(found, args.file):
        print_line(line)
    artifacts, decisions = found["artifacts"], found["decisions"]
    if artifacts:
        print_line("")
        print_rows(_ARTIFACTS, map(_artifact, artifacts))
    if decisions:
        print_line("")
        print_rows(_DECISIONS, map(_decision, decisions[-DECISIONS_SHOWN:]))
        if (earlier := len(decisions) - DECISIONS_SHOWN) > 0:
            print_line(f"… and {number(earlier)} earlier")
    return 0


def contents(file: Path) -> dict[str, Any]:
    """Return what a snapshot holds, without its graph and the artifacts' content.

    Raises InvalidInput for a file that is not whole, OSError for one that cannot be read.
    """
    artifacts: list[Any] = []
    decisions: list[Any] = []
    sessions: list[Any] = []
    with file.open("rb") as opened:
        records = read_records(opened)
        head: Head = read_head(records)
        for kind, body in ((record.kind, record.body) for record in records):
            try:
                if kind == "artifact":
                    artifacts.append(msgspec.convert(body["about"], dict[str, Any]))
                elif kind == "decisions":
                    decisions = msgspec.convert(body, list[dict[str, Any]])
                elif kind == "session":
                    sessions.append({"session": body["session"], "messages": 0})
                elif kind == "message":
                    sessions[-1]["messages"] += 1
            except (msgspec.ValidationError, LookupError, TypeError):
                raise SnapshotDamaged(f"its {kind} is none") from None
    about = {"artifacts": artifacts, "decisions": decisions, "sessions": sessions}
    return {**msgspec.to_builtins(head), "bytes": file.stat().st_size, **about}


def describe(found: Mapping[str, Any], file: Path) -> Iterator[str]:
    """Yield the lines that say what a snapshot is, without tables."""
    yield f"{file}  {size(found['bytes'])}, whole"
    at = f" at {found['commit'][:12]}" if found["commit"] else ""
    branch = f", {found['branch']}{at}" if found["branch"] or at else ""
    yield f"of         {found['workspace']}{branch}"
    yield f"written    {found['created']} by herdr {found['herdr']}"
    yield f"graph      {size(found['graph_bytes'])} unpacked"
    counts = ((name, len(found[f"{name}s"])) for name in ("artifact", "decision"))
    yield "holds      " + ", ".join(many(count, name) for name, count in counts)
    said = many(len(found["sessions"]), "session") if found["sessions"] else "none"
    messages = sum(session["messages"] for session in found["sessions"])
    yield f"sessions   {said}" + (f", {many(messages, 'message')}" if messages else "")


def _artifact(about: Mapping[str, Any]) -> list[str]:
    return [*cells(about, "name", "kind"), size(about.get("bytes")), *cells(about, "by", "based_on")]


def _decision(decision: Mapping[str, Any]) -> list[str]:
    texts = (one_line(cell(decision.get(name))) for name in ("text", "reason"))
    return [moment(decision.get("time")), *cells(decision, "source"), *texts]
