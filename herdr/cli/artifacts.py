"""`herdr artifacts`: what tools have worked out and others may use: patches, digests of logs, analyses of errors."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from herdr.cli.client import Gateway, add_connection, gateway_of, with_query
from herdr.cli.files import write_whole
from herdr.cli.holders import from_now, moment_of
from herdr.cli.listing import cells, number, print_rows, print_text, size
from herdr.cli.project import ANSWER_S, add_limit, add_workspace, whole, workspace_of
from herdr.cli.terminal import note, plain, print_json, print_line
from herdr.clock import SystemClock
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr artifacts
  herdr artifacts list --kind patch
  pytest 2>&1 | herdr artifacts put digests/pytest --kind log_digest --ttl 3600
  herdr artifacts get digests/pytest --output pytest.txt
  herdr artifacts delete digests/pytest
"""
TTL_MAX_S = 30 * 86_400  # as the gateway has it
CONTENT_MAX = 256 * 1024**2  # bytes read before they are sent; no gateway keeps as much by default
_COLUMNS = ("name", "kind", "size", "by", "session", "expires", "based on")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its four parts."""
    parser = subparsers.add_parser(
        "artifacts",
        help="what tools have worked out and others may use",
        description=__doc__,
        epilog=_EPILOG,
        usage="herdr artifacts [list | get | put | delete] [OPTIONS]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_connection(parser)
    parts = parser.add_subparsers(dest="part", metavar="PART", prog="herdr artifacts")
    listing = parts.add_parser(
        "list", help="what there is", epilog="example: herdr artifacts list --kind patch"
    )
    get = parts.add_parser(
        "get", help="the content", epilog="example: herdr artifacts get fix.patch | git apply"
    )
    put = parts.add_parser(
        "put", help="store content", epilog="example: herdr artifacts put fix.patch fix.patch --kind patch"
    )
    delete = parts.add_parser("delete", help="delete one", epilog="example: herdr artifacts delete fix.patch")
    for part in (get, put, delete):
        part.add_argument("name", metavar="NAME", help="what it is called; it may hold /")
    get.add_argument("--output", type=Path, metavar="FILE", help="a file, in place of stdout")
    _add_put(put)
    _add_list(listing)
    for part in (listing, get, put, delete):
        add_workspace(part)
        add_connection(part)
        for action in part._actions:
            if action.dest in ("url", "token", "json"):
                action.default = argparse.SUPPRESS  # or it would hide what stands before the part


def _add_put(put: argparse.ArgumentParser) -> None:
    put.add_argument("file", nargs="?", default="-", metavar="FILE", help="the content (default: -, stdin)")
    put.add_argument(
        "--kind", metavar="K", help="patch, log_digest, error_analysis, or another lower-case word"
    )
    put.add_argument(
        "--ttl", type=whole(1, TTL_MAX_S), metavar="S", help="seconds after which it goes (default: 7 days)"
    )
    put.add_argument("--session", metavar="ID", help="the conversation that it belongs to")
    put.add_argument("--based-on", metavar="WHAT", help="what it was made from")


def _add_list(listing: argparse.ArgumentParser) -> None:
    listing.add_argument("--kind", metavar="K", help="only this kind")
    listing.add_argument("--session", metavar="ID", help="only this conversation's")
    add_limit(listing)


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for; without one, list."""
    gateway = gateway_of(args, ANSWER_S)
    if args.part == "put":
        content = _content(args.file)  # before anybody is asked: the file may not be there
    workspace = workspace_of(gateway, getattr(args, "workspace", None))
    if args.part == "get":
        _get(gateway, workspace, args)
    elif args.part == "put":
        _put(gateway, workspace, content, args)
    elif args.part == "delete":
        gateway.call("DELETE", _address(args.name, {"workspace": workspace}))
        note(f"{args.name} is deleted")
    else:
        _list(gateway, workspace, args)
    return 0


def _address(name: str, query: Mapping[str, object]) -> str:
    return with_query(f"/v1/artifacts/{quote(name, safe='/', errors='surrogateescape')}", query)


def _list(gateway: Gateway, workspace: str, args: argparse.Namespace) -> None:
    filters = {name: getattr(args, name, None) for name in ("kind", "session", "limit")}
    found = gateway.read("/v1/artifacts", {"workspace": workspace, **filters})
    if args.json:
        print_json(found)
        return
    artifacts = found.get("artifacts") or ()
    now_us = SystemClock().wall_us()
    if artifacts:
        print_rows(_COLUMNS, (_row(artifact, now_us) for artifact in artifacts))
    else:
        note(f"{workspace} has no artifacts" + (" such as these" if any(filters.values()) else ""))
    if more := found.get("more"):
        note(f"{number(more)} more: `herdr artifacts list --limit N`")
    if artifacts and found.get("limit_bytes"):
        note(
            f"{size(found.get('bytes'))} of {size(found['limit_bytes'])} are taken; the least recently used go first"
        )


def _row(artifact: Mapping[str, Any], now_us: int) -> list[str]:
    return [
        *cells(artifact, "name", "kind"),
        size(artifact.get("bytes")),
        *cells(artifact, "by", "session"),
        from_now(moment_of(artifact.get("expires")), now_us),
        *cells(artifact, "based_on"),
    ]


def _get(gateway: Gateway, workspace: str, args: argparse.Namespace) -> None:
    address = _address(args.name, {"workspace": workspace})
    if args.output is not None:
        count = write_whole(args.output, gateway.chunks(address))
        note(f"{args.output}: {size(count)}")
    if args.json:
        print_json(gateway.read(_address(args.name, {"workspace": workspace, "meta": "true"})))
    elif args.output is None and sys.stdout.isatty():
        _show(b"".join(gateway.chunks(address)), args.name)
    elif args.output is None:
        for block in gateway.chunks(address):
            sys.stdout.buffer.write(block)


def _show(content: bytes, name: str) -> None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise HerdrError(f"{plain(name)} is no text: write it to a file with --output FILE") from None
    print_text(text)


def _put(gateway: Gateway, workspace: str, content: bytes, args: argparse.Namespace) -> None:
    query = {"workspace": workspace, "kind": args.kind, "ttl_s": args.ttl, "session": args.session}
    address = _address(args.name, {**query, "based_on": args.based_on})
    stored = gateway.object(gateway.send("PUT", address, content, len(content), _type_of(content)))
    if args.json:
        print_json(stored)
        return
    print_line(f"{stored.get('name')}  {size(stored.get('bytes'))}  {stored.get('ref')}")
    if redacted := stored.get("redacted"):
        note(
            f"what looked like a secret was blanked, {number(redacted)} times: ask for the artifact to see it"
        )


def _content(file: str) -> bytes:
    if file == "-":
        content = sys.stdin.buffer.read(CONTENT_MAX + 1)
    else:
        with Path(file).open("rb") as source:
            content = source.read(CONTENT_MAX + 1)
    if len(content) > CONTENT_MAX:
        raise HerdrError(f"the content is larger than {size(CONTENT_MAX)}: store a digest of it", "usage")
    return content


def _type_of(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
