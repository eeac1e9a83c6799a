"""Child processes: started, waited for, measured through /proc, and ended by their own pid."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Child:
    """One process that says on stdout or stderr when it is ready. Use it as a context manager."""

    def __init__(
        self, command: Sequence[str], is_ready: Callable[[str], bool], env: Mapping[str, str] | None = None
    ) -> None:
        self.said: list[str] = []
        self._ready = threading.Event()
        self._is_ready = is_ready
        self._process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._command = command

    def __enter__(self) -> "Child":
        if not self._ready.wait(START_TIMEOUT_S) or self.ready_line is None:
            self.stop()
            raise RuntimeError(f"{' '.join(self._command)} did not start: {' '.join(self.said[-5:])}")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ready_line(self) -> str | None:
        return next((line for line in self.said if self._is_ready(line)), None)

    def wait(self, timeout_s: float) -> str:
        """Wait until it ends by itself and return the last line that it said."""
        code = self._process.wait(timeout_s)
        self._reader.join()
        if code != 0:
            raise RuntimeError(f"{' '.join(self._command)} failed ({code}): {' '.join(self.said[-5:])}")
        return self.said[-1]

    def stop(self) -> None:
        """Ask it to stop, and make sure that it does."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.said.append(line.rstrip())
                if self._is_ready(line):
                    self._ready.set()
        self._ready.set()


def cpu_s(pid: int) -> float:
    """Return the processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Busy:
    """How much of a core each of some processes used since the watch began, in per cent."""

    def __init__(self, **pids: int) -> None:
        self._pids = pids
        self._began = time.monotonic()
        self._before = {name: cpu_s(pid) for name, pid in pids.items()}

    def percent(self) -> dict[str, float]:
        elapsed = time.monotonic() - self._began
        used = {name: cpu_s(pid) - self._before[name] for name, pid in self._pids.items()}
        return {name: 100 * seconds / elapsed for name, seconds in used.items()}
