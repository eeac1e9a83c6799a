"""`herdr` as people run it: a process of its own."""

import json
import os
import pty
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any


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

    def at_terminal(self, *args: str, typed: bytes = b"", **environ: str) -> tuple[int, str]:
        """Run it at a terminal of its own; returns its exit code and all that the terminal showed."""
        command = [sys.executable, "-m", "herdr", *args]
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.cwd)
            os.execve(sys.executable, command, self.environ(**environ))
        os.write(terminal, typed)
        shown = b""
        while chunk := _read(terminal):
            shown += chunk
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()

    def events(self, query: str = "after=0&limit=1000") -> list[dict[str, Any]]:
        """Return the events that the gateway holds."""
        with urllib.request.urlopen(f"{self.url}/v1/events?{query}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["events"]
        return found


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""
