"""`herdr pool plan`: what slots and shares a load needs, and what is impossible. Asks no gateway."""

import argparse
from collections.abc import Iterator
from math import isfinite

import msgspec

from herdr.cli.terminal import counted, print_json, print_line, table_lines
from herdr.errors import HerdrError
from herdr.pool.plan import Plan, plan

_EPILOG = """\
examples:
  herdr pool plan --concurrency 10 --seconds-per-call 20 --interval 10
  herdr pool plan --concurrency 3 --seconds-per-call 8 --interval 30 --slots 4 --share primary_agent=0.5 --json

So many agents each start a call every so many seconds, and a call keeps its slot for so long. Exit code 1 if --slots
are too few. Waits are those of calls that come at random; calls in step wait less.
"""
SHARE_DEFAULT = ("primary_agent", 0.6)  # as models.shares
_COLUMNS = ("route", "slots", "calls a minute", "agents")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the part to `herdr pool`."""
    parser = subparsers.add_parser(
        "plan",
        help="what slots and shares a load needs",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--concurrency", type=_count, required=True, metavar="N", help="agents")
    parser.add_argument(
        "--seconds-per-call", type=_seconds, required=True, metavar="S", help="for which a call has its slot"
    )
    parser.add_argument(
        "--interval", type=_seconds, required=True, metavar="S", help="seconds between an agent's calls"
    )
    parser.add_argument(
        "--slots", type=_count, metavar="N", help="that there are (default: as many as needed)"
    )
    parser.add_argument(
        "--share",
        type=_share,
        action="append",
        metavar="R=F",
        help="part of the slots, 0 to 1, that a route owns; repeatable (default primary_agent=0.6)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999")
    return int(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return -1.0
    return number if isfinite(number) else -1.0


def _seconds(text: str) -> float:
    if (seconds := _number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _share(text: str) -> tuple[str, float]:
    route, _, share = text.partition("=")
    if not route or not 0 <= _number(share) <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not ROUTE=SHARE, such as primary_agent=0.6")
    return route, float(share)


def run(args: argparse.Namespace) -> int:
    """Print the plan; returns 1 when the slots cannot carry the load."""
    shares = dict(args.share or [SHARE_DEFAULT])
    if sum(shares.values()) > 1 + 1e-9:
        raise HerdrError(f"the shares add up to {sum(shares.values()):g}: they can be 1 at most", "usage")
    try:
        found = plan(args.concurrency, args.seconds_per_call, args.interval, args.slots, shares)
    except ValueError as error:
        raise HerdrError(str(error), "usage") from None
    if args.json:
        print_json(msgspec.to_builtins(found))
    else:
        for line in describe(found, args.concurrency, args.interval):
            print_line(line)
    return 0 if found.possible else 1


def describe(found: Plan, agents: int, interval_s: float) -> Iterator[str]:
    """Yield the lines that say what a plan holds."""
    yield f"load    {found.load:.4g} slots busy on average; it needs {counted(found.slots_needed, 'slot')}"
    if found.possible:
        yield (
            f"slots   {found.slots}, busy {found.utilisation:.0%}: a call waits with a chance of "
            f"{found.wait_chance:.0%}, {found.wait_s:.3g} s on average"
        )
    else:
        yield f"slots   {found.slots}: impossible, the queue would grow for ever"
        yield (
            f"        they carry {counted(found.concurrency_max, 'such agent')} instead of {agents}, or an interval "
            f"above {found.interval_min_s:.4g} s instead of {interval_s:.4g} s"
        )
    yield f"share   {_needed(found)}"
    yield ""
    yield from table_lines(
        _COLUMNS,
        (
            [
                route,
                str(r.part),
                f"{r.calls_per_minute:.3g}",
                f"{r.agents:.3g}",
            ]
            for route, r in found.routes.items()
        ),
    )


def _needed(found: Plan) -> str:
    if found.share_needed is None:
        return f"no share of {counted(found.slots, 'slot')} is enough for a route that has all of this load to itself"
    return f"a route with all of this load needs {found.share_needed:.2g} for itself"
