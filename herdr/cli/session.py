"""`herdr session`: conversations that all tools share: what they have come to, and what was said."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from herdr.cli.client import Gateway, add_connection, gateway_of, part_of
from herdr.cli.listing import cell, cells, many, moment, number, one_line, print_rows, print_text
from herdr.cli.project import ANSWER_S, add_limit, whole
from herdr.cli.terminal import note, print_json

_EPILOG = """\
examples:
  herdr session list
  herdr session show fix-cart --tokens 4096
  herdr session messages fix-cart --limit 20
  herdr session delete fix-cart
"""
TOKENS_MIN, TOKENS_MAX = 64, 1_000_000  # as the gateway has them
SAID_MAX = 2000  # characters of one message; --json has all
_SESSIONS = ("session", "workspace", "messages", "updated", "sources")
_MESSAGES = ("seq", "time", "role", "source", "content")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its four parts."""
    parser = subparsers.add_parser(
        "session",
        help="conversations that all tools share",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    show = parts.add_parser(
        "show",
        help="its summary and newest messages",
        description="Print what a session has come to and its newest messages: as a tool would read them.",
        epilog="example: herdr session show fix-cart --tokens 4096",
    )
    show.add_argument(
        "--tokens",
        type=whole(TOKENS_MIN, TOKENS_MAX),
        metavar="N",
        help="at most so many (default: as the gateway is set, 2048)",
    )
    listing = parts.add_parser(
        "list", help="the sessions", epilog="example: herdr session list --workspace shop"
    )
    listing.add_argument("--workspace", metavar="W", help="only this project's")
    messages = parts.add_parser(
        "messages", help="what was said", epilog="example: herdr session messages fix-cart --after 1203"
    )
    messages.add_argument(
        "--after", type=whole(0, 2**63 - 1), default=0, metavar="SEQ", help="only those after this one"
    )
    delete = parts.add_parser(
        "delete",
        help="delete a session",
        description="Delete a session. The log keeps its events as long as any others.",
        epilog="example: herdr session delete fix-cart",
    )
    for part in (listing, messages):
        add_limit(part)
    for part in (show, messages, delete):
        part.add_argument("session", metavar="ID", help="the session's id")
    for part in (show, listing, messages, delete):
        add_connection(part, as_json=part is not delete)


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for."""
    gateway = gateway_of(args, ANSWER_S)
    if args.part == "list":
        _list(gateway.read("/v1/sessions", {"workspace": args.workspace, "limit": args.limit}), args.json)
    elif args.part == "show":
        _show(gateway.read(_address(args.session), {"tokens": args.tokens}), args.json)
    elif args.part == "messages":
        _messages(gateway, args)
    else:
        gateway.call("DELETE", _address(args.session))
        note(f"{args.session} is deleted; the log keeps its events as long as any others")
    return 0


def _address(session: str) -> str:
    return f"/v1/sessions/{part_of(session)}"


def _list(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif sessions := found.get("sessions"):
        print_rows(_SESSIONS, map(_session, sessions))
        _tell_more(found, "raise --limit")
    else:
        note("there are no sessions")


def _session(session: Mapping[str, Any]) -> list[str]:
    counts = number(session.get("messages"))
    return [
        *cells(session, "session", "workspace"),
        counts,
        moment(session.get("updated")),
        *cells(session, "sources"),
    ]


def _show(window: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(window)
        return
    print_text(str(window.get("text") or ""))
    tokens, full, saved = (number(window.get(name)) for name in ("tokens", "full_tokens", "saved_tokens"))
    note(
        f"{tokens} tokens ({window.get('tokenizer')}) of {full}, {saved} saved: "
        f"{many(window.get('messages'), 'message')}, summary by {window.get('summariser')}"
    )


def _messages(gateway: Gateway, args: argparse.Namespace) -> None:
    query = {"after": args.after, "limit": args.limit}
    found = gateway.read(f"{_address(args.session)}/messages", query)
    if args.json:
        print_json(found)
    elif messages := found.get("messages"):
        print_rows(_MESSAGES, map(_message, messages))
        last = messages[-1].get("seq")
        _tell_more(found, f"herdr session messages {args.session} --after {last}")
    else:
        note(f"{args.session} has no messages" + (f" after {args.after}" if args.after else ""))


def _message(message: Mapping[str, Any]) -> list[str]:
    said = one_line(content_of(message.get("content") or message.get("text")))
    said = said if len(said) <= SAID_MAX else said[:SAID_MAX] + "…"
    return [*cells(message, "seq"), moment(message.get("time")), *cells(message, "role", "source"), said]


def content_of(content: object) -> str:
    """Return what a message says as one text: its blocks one after another, calls of tools in brackets."""
    if not isinstance(content, list):
        return cell(content)
    return " ".join(_block(block) if isinstance(block, dict) else str(block) for block in content) or "-"


def _block(block: Mapping[str, Any]) -> str:
    if block.get("type") == "tool_use":
        return f"[{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}]"
    return content_of(block.get("text") or block.get("content"))


def _tell_more(found: Mapping[str, Any], advice: str) -> None:
    if more := found.get("more"):
        note(f"more: {advice}" if more is True else f"{number(more)} more: {advice}")
