"""`herdr top`: the gateway at work, once a second: rates, queues, locks, models, tasks, clients."""

import argparse
import os
import select
import shutil
import sys
import termios
import threading
import tty
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.live import Live

from herdr.cli.client import Gateway, add_connection, gateway_of
from herdr.cli.panels import HISTORY, Look, screen
from herdr.cli.terminal import has_colour, print_json, print_line
from herdr.clock import SystemClock
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr top
  herdr top --once
  watch -n 5 herdr top --once

At a terminal it is drawn again each second: q ends it, p halts it and goes on. Elsewhere it is printed once.
"""
EVERY_S = 1.0  # between two looks
ANSWER_S = 3.0  # for each of them; what takes longer is shown as an answer that did not come
KEY_S = 0.2  # how long a key waits at most, and a terminal that has changed its size
PLAIN_COLUMNS = 120  # where there is no terminal, and COLUMNS is not set
PATHS = MappingProxyType(
    {
        "health": "/healthz",
        "locks": "/v1/locks",
        "models": "/v1/pool",
        "tasks": "/v1/tasks?limit=100",
        "clients": "/v1/clients",
    }
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "top",
        help="the gateway at work, live",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--once", action="store_true", help="print it once")
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Show the gateway; returns 0 when it was ended with q."""
    looks = Looks(gateway_of(args, ANSWER_S))
    first = looks.take()
    if looks.error is not None:
        raise looks.error
    if args.json:
        print_json({name: _told(reading) for name, reading in first.readings.items()})
    elif args.once or not sys.stdout.isatty():
        _print(first, args.url)
    else:
        _watch(looks, first, args.url)
    return 0


def _told(reading: Any) -> Any:
    return {"code": reading.code, "detail": reading.detail} if isinstance(reading, HerdrError) else reading


class Looks:
    """Asks the gateway again and again, on a thread of its own, so that keys do not wait for answers."""

    def __init__(self, gateway: Gateway) -> None:
        self.error: HerdrError | None = None
        """The newest reason for which there was nothing to see."""
        self.newest = Look({})
        self.paused = threading.Event()
        self._gateway = gateway
        self._published: deque[float] = deque(maxlen=HISTORY)
        self._delivered: deque[float] = deque(maxlen=HISTORY)
        self._over = threading.Event()

    def take(self) -> Look:
        """Look once. A gateway that is away leaves the readings as they were."""
        health = self._read(PATHS["health"])
        if isinstance(health, dict) and not _is_health(PATHS["health"], health):
            health = self._gateway.stranger(200)
        if isinstance(health, HerdrError):
            self.error = health
            self.newest = self.newest._replace(trouble=health.detail)
            return self.newest
        readings = {"health": health} | {
            name: self._read(path) for name, path in PATHS.items() if name != "health"
        }
        rates = health.get("throughput") or {} if isinstance(health, dict) else {}
        self._published.append(rates.get("published_per_s") or 0.0)
        self._delivered.append(rates.get("delivered_per_s") or 0.0)
        self.newest = Look(readings, tuple(self._published), tuple(self._delivered))
        return self.newest

    def _read(self, path: str) -> Any:
        """Return an answer, or the error in place of one; a failing gateway tells how it is with a status of 503."""
        try:
            answer = self._gateway.ask("GET", path)
            if isinstance(answer.value, dict) and (answer.status < 400 or _is_health(path, answer.value)):
                return answer.value
            return self._gateway.problem(answer)
        except HerdrError as error:
            return error

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Look once a second, for as long as the block lasts."""
        threading.Thread(target=self._look, name="looks", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()

    def _look(self) -> None:
        while not self._over.wait(EVERY_S):
            if not self.paused.is_set():
                self.take()


def _is_health(path: str, value: Mapping[str, Any]) -> bool:
    return path == PATHS["health"] and value.get("status") in ("ok", "degraded", "failing")


def _print(look: Look, url: str) -> None:
    """Print it as plain text."""
    said = os.environ.get("COLUMNS", "")
    width = int(said) if said.isdigit() and int(said) > 0 else PLAIN_COLUMNS
    console = Console(width=width, color_system=None, force_terminal=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(screen(look, url, width, SystemClock().wall_us()))
    for line in captured.get().splitlines():
        print_line(line.rstrip())


def _watch(looks: Looks, first: Look, url: str) -> None:
    clock = SystemClock()
    console = Console(no_color=not has_colour(sys.stdout), highlight=False, emoji=False)
    shown: Any = None
    with looks.going_on(), _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now = (looks.newest, looks.paused.is_set(), shutil.get_terminal_size())
            if now != shown:
                live.update(screen(now[0], url, now[2][0], clock.wall_us(), paused=now[1]), refresh=True)
                shown = now
            key = _key()
            if key == "q":
                return
            if key == "p":
                (looks.paused.clear if looks.paused.is_set() else looks.paused.set)()


@contextmanager
def _keys() -> Iterator[None]:
    """Get keys as they are pressed, and do not show them; Ctrl-C stays what it is."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _key() -> str:
    """Return a key that is pressed within a moment, or nothing."""
    if not sys.stdin.isatty():
        threading.Event().wait(KEY_S)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], KEY_S)
    return os.read(sys.stdin.fileno(), 1).decode("latin-1") if ready else ""
