"""`herdr locks`: who holds what, and who waits for whom."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.holders import from_now, moment_of
from herdr.cli.places import spots_of
from herdr.cli.terminal import plain, print_json, print_line, table_lines
from herdr.clock import SystemClock

_EPILOG = """\
examples:
  herdr locks
  herdr locks --path src/cart.py
  herdr locks --json | jq '.locks[].owner'
  herdr locks release 01M8P532BP53ND5G61AVK3QGY7 --reason 'its tool has crashed'
"""
_HELD = ("paths", "owner", "mode", "since", "expires", "waiting", "purpose", "lock")
_WAITING = ("paths", "owner", "mode", "since", "waits for", "purpose")
_WAITS = ("owner", "waits for", "purpose")
PATHS_SHOWN = 3  # of one lock; --json has all


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its part."""
    parser = subparsers.add_parser(
        "locks",
        help="who holds what, and who waits for whom",
        description=__doc__,
        epilog=_EPILOG,
        usage="herdr locks [--workspace W] [--path P] [--json]\n       herdr locks release LOCK --reason TEXT",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workspace", metavar="W", help="only this project's")
    parser.add_argument(
        "--path", metavar="P", help="only those that cover some of this path, from where we are"
    )
    add_connection(parser)
    parts = parser.add_subparsers(dest="part", metavar="release", prog="herdr locks")
    release = parts.add_parser(
        "release",
        help="take a lock from its holder",
        description="Take a lock from its holder, who is told so; needs the scope admin.",
        epilog="example: herdr locks release 01M8P532BP53ND5G61AVK3QGY7 --reason 'its tool has crashed'",
    )
    release.add_argument("lock", metavar="LOCK", help="the lock's id, as `herdr locks` shows it")
    release.add_argument("--reason", required=True, metavar="TEXT", help="why; goes into the log")
    add_connection(release)
    for action in release._actions:
        if action.dest in ("url", "token", "json"):
            action.default = argparse.SUPPRESS  # or it would hide what stands before `release`


def run(args: argparse.Namespace) -> int:
    """Show the locks, or release one."""
    if args.part == "release":
        return _release(args)
    gateway = gateway_of(args)
    asked = {"workspace": args.workspace, "path": None}
    if args.path is not None:
        asked["workspace"], (asked["path"],) = spots_of(gateway, args.workspace, [args.path])
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    answer = gateway.call("GET", f"/v1/locks?{query}" if query else "/v1/locks")
    if args.json:
        print_json(answer)
        return 0
    for line in describe(answer, SystemClock().wall_us()):
        print_line(line)
    return 0


def _release(args: argparse.Namespace) -> int:
    gateway, path = gateway_of(args), f"/v1/locks/{quote(args.lock, safe='')}"
    lock = gateway.call("GET", path)
    gateway.call("DELETE", f"{path}?{urlencode({'force': 'true', 'reason': args.reason})}")
    if args.json:
        print_json(lock)
    else:
        print_line(
            f"released {args.lock} of {lock.get('owner')}: {', '.join(map(str, lock.get('paths') or ()))}"
        )
    return 0


def describe(answer: Mapping[str, Any], now_us: int) -> Iterator[str]:
    """Yield the lines that say what `GET /v1/locks` holds: the holders, who waits in line, and declared waits."""
    locks = answer.get("locks") or ()
    tables = (
        ("", _HELD, [_held(lock, now_us) for lock in locks]),
        ("in line", _WAITING, [_waiting(waiter, now_us) for waiter in answer.get("waiting") or ()]),
        ("waiting for results", _WAITS, [_wait(wait) for wait in answer.get("waits") or ()]),
    )
    if not locks:
        yield "no locks are held"
    for title, header, rows in tables:
        if rows:
            yield from ["", title] if title else []
            yield from table_lines(header, rows)


def _held(lock: Mapping[str, Any], now_us: int) -> Sequence[str]:
    return [
        _paths(lock),
        *(_text(lock.get(name)) for name in ("owner", "mode")),
        *(from_now(moment_of(lock.get(name)), now_us) for name in ("since", "expires")),
        _text(", ".join(map(str, lock.get("waiters") or ()))),
        *(_text(lock.get(name)) for name in ("purpose", "lock")),
    ]


def _waiting(waiter: Mapping[str, Any], now_us: int) -> Sequence[str]:
    return [
        _paths(waiter),
        *(_text(waiter.get(name)) for name in ("owner", "mode")),
        from_now(moment_of(waiter.get("since")), now_us),
        _text(", ".join(map(str, waiter.get("blockers") or ()))),
        _text(waiter.get("purpose")),
    ]


def _wait(wait: Mapping[str, Any]) -> Sequence[str]:
    return [_text(wait.get(name)) for name in ("owner", "on", "purpose")]


def _paths(holder: Mapping[str, Any]) -> str:
    paths = [plain(str(path)) for path in holder.get("paths") or ()]
    more = f" and {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
    workspace = holder.get("workspace")
    where = f" ({workspace})" if workspace not in (None, "default") else ""
    return ", ".join(paths[:PATHS_SHOWN]) + more + where


def _text(value: object) -> str:
    return "-" if value in (None, "") else str(value)
