"""`herdr redact`: blank an event's payload in the log for good, such as a secret that was pasted."""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.terminal import note, plain, print_json, print_line
from herdr.errors import HerdrError

_EPILOG = """\
example:
  herdr redact 4711 --yes

Subject, data, tags and other free text of the event are blanked; id, type, source and session stay. Followers
that had it, backups and other copies keep it, so a secret has to be changed all the same.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "redact",
        help="blank an event's payload",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("seq", type=_seq, metavar="SEQ", help="the event's seq")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_connection(parser)


def _seq(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise argparse.ArgumentTypeError(f"{text!r} is not the seq of an event, such as 4711")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Ask, unless told not to, and redact; returns 1 when the answer was no."""
    gateway = gateway_of(args)
    if not args.yes:
        if not sys.stdin.isatty():
            raise HerdrError(
                "this cannot be undone and there is no terminal to ask at: repeat with --yes", "usage"
            )
        if not _agreed(gateway.call("GET", f"/v1/events/{args.seq}")):
            note("nothing was changed")
            return 1
    left = gateway.call("POST", f"/v1/events/{args.seq}/redact")
    print_json(left) if args.json else print_line(f"event {left['seq']} is blanked: {_name(left)}")
    note("followers that had it, and backups, still hold it; if it was a secret, change it")
    return 0


def _agreed(event: Mapping[str, Any]) -> bool:
    print(
        f"Blank event {event['seq']} for good? {plain(_name(event))} [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _name(event: Mapping[str, Any]) -> str:
    about = f" about {event['subject']}" if event.get("subject") else ""
    return f"{event['type']} from {event.get('source', '?')}{about}"
