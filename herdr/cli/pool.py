"""`herdr pool`: the model pool as a live table: backends, slots and who has them, the queue, the shares."""

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from herdr.cli import plan
from herdr.cli.client import Gateway, add_connection, gateway_of
from herdr.cli.terminal import plain, print_json, print_line, table_lines
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr pool
  herdr pool --once
  herdr pool --json | jq '.backends[].queue.total'
  herdr pool plan --concurrency 10 --seconds-per-call 20 --interval 10

At a terminal the table is drawn again each second until Ctrl-C (130); elsewhere it is printed once.
"""
EVERY_S = 1.0  # between two looks; a call lasts for seconds
_TOP, _LINE_END, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"  # cursor home; erase to the line's end; erase below
_CLEAR = "\x1b[2J"
_COLUMNS = ("slot", "state", "agent", "route", "prompt", "cached", "idle", "call")
_PREFIX_SHOWN = 8  # characters of a prompt's fingerprint: enough to tell those of one pool apart


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its part."""
    parser = subparsers.add_parser(
        "pool",
        help="the model pool, live",
        description=__doc__,
        epilog=_EPILOG,
        usage="herdr pool [--once | --json] [OPTIONS]\n       herdr pool plan [OPTIONS]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--once", action="store_true", help="print the table once")
    add_connection(parser)
    plan.add_parser(
        parser.add_subparsers(
            dest="part", metavar="plan", prog="herdr pool", help="what slots and shares a load needs"
        )
    )


def run(args: argparse.Namespace) -> int:
    """Show the pool, or work out a plan."""
    if args.part == "plan":
        return plan.run(args)
    gateway = gateway_of(args)
    pool = gateway.call("GET", "/v1/pool")
    if args.json:
        print_json(pool)
    elif args.once or not sys.stdout.isatty():
        for line in describe(pool):
            print_line(line)
    else:
        _watch(gateway, pool)
    return 0


def _watch(gateway: Gateway, pool: Mapping[str, Any]) -> None:
    """Draw the table again and again; ends with Ctrl-C. A gateway that goes away is waited for."""
    sys.stdout.write(_CLEAR)
    lines = list(describe(pool))
    while True:
        sys.stdout.write(frame(lines, shutil.get_terminal_size()))
        sys.stdout.flush()
        time.sleep(EVERY_S)
        try:
            lines = list(describe(gateway.call("GET", "/v1/pool")))
        except HerdrError as error:
            if error.code != "unreachable":
                raise
            lines = [f"{plain(error.detail)} (waiting for it)"]


def frame(lines: Sequence[str], size: tuple[int, int]) -> str:
    """Return what draws the lines from the top, cut to a terminal of (columns, rows)."""
    columns, rows = size
    if len(lines) >= rows:
        lines = [*lines[: rows - 2], f"… {len(lines) - rows + 2} lines more"]
    cut = (line if len(line) <= columns else line[: columns - 1] + "…" for line in lines)
    return _TOP + "".join(f"{line}{_LINE_END}\n" for line in cut) + _BELOW


def describe(pool: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that say what `GET /v1/pool` holds."""
    backends = pool.get("backends") or ()
    if not backends:
        yield "no model is configured: write models.backends, or start with `herdr serve --model model.gguf`"
    for backend in backends:
        yield from map(plain, _backend(backend))
    if names := pool.get("names"):
        yield plain("names   " + ", ".join(f"{name} → {backend}" for name, backend in names.items()))


def _backend(backend: Mapping[str, Any]) -> Iterator[str]:
    slots = backend.get("slots") or ()
    yield ", ".join(
        filter(None, (f"{backend.get('name')}  {_state(backend)}", backend.get("kind"), backend.get("url")))
    )
    yield "  " + ", ".join(_abilities(backend, len(slots)))
    if slots:
        yield from (f"  {line}" for line in table_lines(_COLUMNS, map(_slot, slots)))
    yield f"  queue   {_queue(backend.get('queue') or {})}"
    if shares := backend.get("shares"):
        yield f"  shares  {', '.join(_share(route, share) for route, share in shares.items())}"
    yield ""


def _state(backend: Mapping[str, Any]) -> str:
    state = str(backend.get("state"))
    if state == "paused" and backend.get("paused_s"):
        state += f" for {backend['paused_s']:.0f} s"
    return f"{state} ({backend['detail']})" if backend.get("detail") else state


def _abilities(backend: Mapping[str, Any], slots: int) -> Iterator[str]:
    context = backend.get("context")
    held = f" of {context} tokens" if context else ""
    yield f"{slots} slot{'' if slots == 1 else 's'}{held}" if slots else f"no slots to choose from{held}"
    yield f"{backend.get('running', 0)} running"
    if backend.get("restores") is not None and slots:
        yield "saved slots are restored" if backend["restores"] else "does not restore saved slots"


def _slot(slot: Mapping[str, Any]) -> list[str]:
    idle = slot.get("idle_s")
    return [
        _text(slot.get("slot")),
        *(_text(slot.get(name)) for name in ("state", "agent", "route")),
        _text(slot.get("prefix"))[:_PREFIX_SHOWN],
        _text(slot.get("cached_tokens")),
        f"{idle:.0f}s" if isinstance(idle, int | float) else "-",
        _text(slot.get("call")),
    ]


def _text(value: object) -> str:
    return "-" if value in (None, "") else str(value)


def _queue(queue: Mapping[str, Any]) -> str:
    waiting = {p: n for p, n in (queue.get("by_priority") or {}).items() if n}
    if not queue.get("total"):
        return "nobody waits"
    return f"{queue['total']} waiting (" + ", ".join(f"priority {p}: {n}" for p, n in waiting.items()) + ")"


def _share(route: str, share: Mapping[str, Any]) -> str:
    return f"{route} {share.get('running', 0)} of {share.get('part', 0)}"
