"""`herdr` as people run it: a process of its own."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Makes stdin the controlling terminal, so that Ctrl-C is a signal, and then is the real thing
TAKE_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Cli:
    """Runs `python -m herdr` in a folder, by default against one gateway."""

    def __init__(self, url: str, cwd: Path) -> None:
        self.url = url
        self.cwd = cwd

    def environ(self, **extra: str) -> dict[str, str]:
        clean = {name: text for name, text in os.environ.items() if not name.startswith("HERDR_")}
        clean.pop("NO_COLOR", None)
        return {**clean, "HERDR_GATEWAY_URL": self.url, "TZ": "UTC", "TERM": "xterm", **extra}

    def __call__(self, *args: str, stdin: str = "", **environ: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "herdr", *args],
            cwd=self.cwd,
            env=self.environ(**environ),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def start(self, *args: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start it with pipes; use as a context manager."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-m", "herdr", *args],
            cwd=self.cwd,
            env=self.environ(),
            bufsize=0,
            **{**streams, **options},
        )

    @contextmanager
    def terminal(self, *args: str, **environ: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
        """Start it at a terminal of its own; gives the process and our end of the terminal."""
        ours, its = os.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, "-m", "herdr", *args],
            **{"stdin": its, "stdout": its, "stderr": its},
            cwd=self.cwd,
            env=self.environ(**environ),
            start_new_session=True,
        )
        os.close(its)
        try:
            yield process, ours
        finally:
            os.close(ours)
            process.kill()
            process.wait()

    def at_terminal(self, *args: str, typed: bytes = b"", **environ: str) -> tuple[int, str]:
        """Run it at a terminal; returns its exit code and all that the terminal showed."""
        with self.terminal(*args, **environ) as (process, terminal):
            os.write(terminal, typed)
            shown = b""
            while chunk := read_terminal(terminal):
                shown += chunk
            return process.wait(60), shown.decode()

    def events(self, query: str = "after=0&limit=1000") -> list[dict[str, Any]]:
        """Return the events that the gateway holds."""
        with urllib.request.urlopen(f"{self.url}/v1/events?{query}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["events"]
        return found


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def read_until(terminal: int, awaited: bytes) -> bytes:
    """Return what the terminal shows up to and with what is awaited."""
    shown = b""
    while awaited not in shown:
        chunk = read_terminal(terminal)
        assert chunk, f"the terminal was closed before {awaited!r}: {shown!r}"
        shown += chunk
    return shown
