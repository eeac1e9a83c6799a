"""`herdr map`: the outline of a project that matters most, within a number of tokens."""

import argparse

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.listing import many, print_text
from herdr.cli.project import ANSWER_S, add_its_workspace, address, paths_of, whole
from herdr.cli.terminal import note, print_json

_EPILOG = """\
examples:
  herdr map
  herdr map shop --tokens 4096 --focus src/cart.py --name total
  herdr map --json | jq .ref

The map goes to stdout, what it costs to stderr: a prompt can take it as it is.
"""
TOKENS_DEFAULT, TOKENS_MIN, TOKENS_MAX = 1024, 16, 100_000  # as the gateway has them


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "map",
        help="a project's outline within a number of tokens",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_its_workspace(parser)
    parser.add_argument(
        "--tokens",
        type=whole(TOKENS_MIN, TOKENS_MAX),
        default=TOKENS_DEFAULT,
        metavar="N",
        help=f"at most so many (default {TOKENS_DEFAULT})",
    )
    parser.add_argument(
        "--focus",
        action="append",
        default=[],
        metavar="PATH",
        help="weighs more, from where we are; repeatable",
    )
    parser.add_argument(
        "--name", action="append", default=[], metavar="IDENT", help="a name that weighs more; repeatable"
    )
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Print the map."""
    gateway = gateway_of(args, ANSWER_S)
    workspace, focus = paths_of(gateway, args.workspace, args.focus)
    query = {"tokens": args.tokens, "focus": focus, "name": args.name}
    found = gateway.read(address(workspace, "/graph/map"), query)
    if args.json:
        print_json(found)
        return 0
    print_text(str(found.get("text") or ""))
    note(
        f"{many(found.get('tokens'), 'token')} ({found.get('tokenizer')}): {many(found.get('symbols'), 'symbol')} in "
        f"{many(found.get('files'), 'file')} of {workspace}"
    )
    return 0
