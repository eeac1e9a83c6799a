"""Child processes: started, waited for, measured through /proc, and ended by their own pid."""

import os
import signal
import subprocess
import threading
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
                if self._is_ready(self.said[-1]):
                    self._ready.set()
        self._ready.set()


def cpu_s(pid: int, thread: int | None = None) -> float:
    """Return the processor seconds that a process, or one thread of it, has used."""
    path = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
    fields = Path(path).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def idle_s() -> float:
    """Return the seconds that the machine's cores together have had nothing to do."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / _TICKS
