"""`herdr tail`: follow the bus, one line an event, through restarts of the gateway and lost connections."""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from herdr.cli.client import Gateway, add_connection, gateway_of
from herdr.cli.stream import SILENCE_MAX_S, Block, Follower
from herdr.cli.terminal import has_colour, note, plain, print_line, print_raw_json
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr tail --type 'test.*' --type 'lint.*' --after 0
  herdr tail --as debugger --attr activity=debugging --json | my-tool

Filters are exact or globs (*, ?, ** over /); one that is repeated takes any of its values. Ctrl-C ends it (130).
"""
_FILTERS = ("type", "source", "subject", "class", "priority", "workspace", "session")
_COLOURS: Mapping[str, str] = MappingProxyType({"P0": "\x1b[1;33m", "P1": "", "P2": "\x1b[2m"})
_DATA_SHOWN_MAX = 2000  # characters of a payload on a line for people; --json shows all of it


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "tail",
        help="follow events",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in _FILTERS:
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="GLOB", help=f"filter on {name}"
        )
    parser.add_argument(
        "--as",
        dest="target",
        metavar="TARGET",
        help="follow as this target of the routing table; what was printed is acknowledged",
    )
    parser.add_argument(
        "--after",
        metavar="CURSOR",
        help="begin after this cursor or seq; 0: the oldest retained (default: only what is new)",
    )
    parser.add_argument(
        "--attr",
        action="append",
        default=[],
        metavar="N=V",
        type=_attribute,
        help="attribute of this subscriber that rules match; repeatable",
    )
    parser.add_argument("--count", type=_positive, metavar="N", help="end after N events, with exit code 0")
    add_connection(parser)


def _attribute(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as activity=debugging")
    return f"attr.{name}", value


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Print events until there were enough, or until Ctrl-C."""
    query = [(name, value) for name in _FILTERS for value in getattr(args, name)]
    query += [(name, value) for name, value in (("as", args.target), ("after", args.after)) if value]
    query += args.attr
    printer = Printer(args.json, args.count)
    acknowledge = Acknowledge(gateway_of(args), args.target)
    follower = Follower(gateway_of(args, SILENCE_MAX_S), query, note)
    for blocks in follower.blocks():
        try:
            printer.show(blocks)
        finally:  # also when Ctrl-C breaks off in the middle
            acknowledge(printer.hand_over())
        if printer.is_done:
            break
    return 0


class Printer:
    """Prints events to stdout, and what the stream says about itself to stderr."""

    def __init__(self, as_json: bool, count: int | None) -> None:
        self._cursor: str | None = None
        self._json = as_json
        self._left = count
        self._colour = has_colour(sys.stdout)
        self._width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    @property
    def is_done(self) -> bool:
        """Whether as many events were printed as were asked for."""
        return self._left == 0

    def show(self, blocks: list[Block]) -> None:
        """Print a batch, as far as more events are wanted."""
        for block in blocks:
            if self.is_done:
                break
            envelope = json.loads(block.data)
            if "seq" not in envelope:
                note(_aside(block.event, envelope))
                continue
            self._print(block, envelope)
            self._cursor = block.cursor
            if self._left is not None:
                self._left -= 1

    def hand_over(self) -> str | None:
        """Have stdout take what was printed; returns the cursor just after it."""
        sys.stdout.flush()
        return self._cursor

    def _print(self, block: Block, envelope: Mapping[str, Any]) -> None:
        if self._json:
            print_raw_json(block.data)
            return
        line = event_line(envelope)
        if self._width is not None and len(line) > self._width:
            line = line[: self._width - 1] + "…"
        colour = _COLOURS.get(envelope.get("priority", ""), "") if self._colour else ""
        print_line(line, colour)


class Acknowledge:
    """Tells the gateway how far a target has got; does nothing without a target."""

    def __init__(self, gateway: Gateway, target: str | None) -> None:
        self._gateway = gateway
        self._path = f"/v1/targets/{quote(target, safe='')}/ack" if target is not None else None
        self._sent: str | None = None

    def __call__(self, cursor: str | None) -> None:
        """Acknowledge everything up to a cursor, once. A gateway that is away is told by the next one."""
        if self._path is None or cursor is None or cursor == self._sent:
            return
        try:
            self._gateway.call("POST", self._path, {"cursor": cursor})
        except HerdrError as error:
            note(f"not acknowledged, so these events may come again: {error.detail}")
        else:
            self._sent = cursor


def event_line(envelope: Mapping[str, Any]) -> str:
    """Return one line for people: seq, time, lane, type, source, subject, payload."""
    parts = [
        str(envelope["seq"]).rjust(6),
        _clock_time(envelope.get("accepted")),
        envelope.get("priority", ""),
        envelope["type"],
        envelope.get("source", ""),
        envelope.get("subject", ""),
        _payload(envelope),
    ]
    return plain("  ".join(part for part in parts if part))


def _payload(envelope: Mapping[str, Any]) -> str:
    if envelope.get("data") is not None:
        text = json.dumps(envelope["data"], ensure_ascii=False)
        return text if len(text) <= _DATA_SHOWN_MAX else text[:_DATA_SHOWN_MAX] + "…"
    if "data_bytes" in envelope:
        return f"({envelope['data_bytes']} bytes at {envelope.get('ref')})"
    return str(envelope.get("detail") or envelope.get("ref") or "")


def _clock_time(accepted: object) -> str:
    """Return an RFC 3339 time as the time of day where the reader is."""
    try:
        return datetime.fromisoformat(str(accepted)).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return ""


def _aside(event: str, data: Mapping[str, Any]) -> str:
    match event:
        case "herdr.gap":
            return f"gap: {_missing(data)}; going on from the oldest retained"
        case "herdr.busy":
            return f"the gateway is busy: {data.get('detail')}"
        case "herdr.bye":
            return "the gateway is stopping"
        case _:
            return f"{event}: {data.get('detail') or json.dumps(data)}"


def _missing(gap: Mapping[str, Any]) -> str:
    """Say in words why events cannot be had."""
    match gap.get("reason"):
        case "rewound":
            return f"the log ends at {gap.get('to')}, before your cursor: it was reset or restored"
        case "epoch":
            return "this is another log than your cursor's: a new or restored one, or another gateway"
        case _:
            return f"events {gap.get('from')} to {gap.get('to')} are no longer kept"
