"""`herdr routes`: look at the routing table and change it; changes are kept over restarts."""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.terminal import note, print_json, print_line, print_table

_EPILOG = """\
examples:
  herdr routes list
  herdr routes set failures --event 'test.failed' --target debugger --priority P0
  herdr routes set python --event 'file.*' --target indexer --match 'subject=src/**' --match data.change=modified
  herdr routes set failures --event 'test.failed' --target debugger --session-tokens 2048 --graph
  herdr routes delete python
"""
_COLUMNS = ("name", "event", "target", "match", "priority", "timeout_ms", "format", "context", "origin")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its four parts."""
    parser = subparsers.add_parser(
        "routes",
        help="list and change the rules",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    listing = parts.add_parser("list", help="the rules in force", epilog="example: herdr routes list")
    show = parts.add_parser("show", help="one rule", epilog="example: herdr routes show failures")
    put = parts.add_parser(
        "set",
        help="add a rule, or replace the one of this name",
        epilog="example: herdr routes set failures --event 'test.failed' --target debugger --priority P0",
    )
    delete = parts.add_parser("delete", help="remove a rule", epilog="example: herdr routes delete failures")
    for part in (show, put, delete):
        part.add_argument("name", metavar="NAME", help="the rule's name")
    _add_rule(put)
    for part in (listing, show, put, delete):
        add_connection(part)


def _add_rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--event", required=True, metavar="GLOB", help="types that it takes, such as 'test.*'"
    )
    parser.add_argument("--target", required=True, help="who gets them")
    parser.add_argument(
        "--match",
        action="append",
        default=[],
        type=_condition,
        metavar="F=V",
        help="further condition: a field (subject, source, data.level, attr.activity …) and a glob, number, true "
        "or false; put text that looks like a number in quotes: data.code='\"3\"'. The same field again adds a "
        "choice",
    )
    parser.add_argument("--priority", choices=["P0", "P1", "P2"], help="lane of these events")
    parser.add_argument("--timeout-ms", type=int, metavar="N", help="within which the target must be reached")
    parser.add_argument("--format", choices=["full", "summary", "ref"], help="how much of the event is sent")
    parser.add_argument(
        "--session-tokens", type=int, metavar="N", help="put the window of the event's session beside it"
    )
    parser.add_argument("--graph", action="store_true", help="put the outline of the event's file beside it")


def _condition(text: str) -> tuple[str, Any]:
    """Read `field=value`; numbers, true, false and quoted texts as JSON, everything else as a glob."""
    field, equals, value = text.partition("=")
    if not field or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=VALUE, such as data.level=error")
    try:
        parsed = json.loads(value, parse_constant=str)  # NaN is no JSON, and a fair name
    except ValueError:
        return field, value
    return field, parsed if isinstance(parsed, str | int | float) else value


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for."""
    gateway = gateway_of(args)
    path = f"/v1/routes/{quote(args.name, safe='')}" if args.part != "list" else "/v1/routes"
    if args.part == "list":
        rules = gateway.call("GET", path)["routes"]
        _list(rules, args.json)
    elif args.part == "delete":
        gateway.call("DELETE", path)
        note(f"the rule {args.name} is gone")
    else:
        rule = gateway.call("PUT", path, _rule(args)) if args.part == "set" else gateway.call("GET", path)
        _show(rule, args.json)
    return 0


def _rule(args: argparse.Namespace) -> dict[str, Any]:
    match: dict[str, list[Any]] = {}
    for field, value in args.match:
        match.setdefault(field, []).append(value)
    wanted = {
        "event": args.event,
        "target": args.target,
        "match": {field: values[0] if len(values) == 1 else values for field, values in match.items()},
        "priority": args.priority,
        "timeout_ms": args.timeout_ms,
        "format": args.format,
        "context": _context(args),
    }
    return {name: value for name, value in wanted.items() if value not in (None, {})}


def _context(args: argparse.Namespace) -> dict[str, Any]:
    tokens = {} if args.session_tokens is None else {"session_tokens": args.session_tokens}
    return {**tokens, **({"graph": True} if args.graph else {})}


def _list(rules: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    rules = list(rules)
    if as_json:
        for rule in rules:
            print_json(rule)
    elif not rules:
        note(
            "there are no rules: events reach only those who follow without a name; try `herdr routes set --help`"
        )
    else:
        print_table(_COLUMNS, ([_cell(rule, column) for column in _COLUMNS] for rule in rules))


def _show(rule: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(rule)
        return
    for column in _COLUMNS:
        print_line(f"{column:<10}  {_cell(rule, column)}")


def _cell(rule: Mapping[str, Any], column: str) -> str:
    value = rule.get(column)
    if column == "match":
        return " ".join(_conditions(value or {})) or "-"
    if column == "format":
        return str(value or "full")
    if column == "context" and isinstance(value, dict):
        return " ".join(f"{name}={json.dumps(wanted)}" for name, wanted in value.items())
    return "-" if value is None else str(value)


def _conditions(match: Mapping[str, Any]) -> Iterator[str]:
    """Yield the conditions as `--match` takes them."""
    for field, wanted in match.items():
        for value in wanted if isinstance(wanted, list) else [wanted]:
            is_clear = isinstance(value, str) and _condition(f"x={value}")[1] == value
            yield f"{field}={value if is_clear else json.dumps(value)}"
