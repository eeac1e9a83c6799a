"""A real gateway process for tests: `python -m herdr serve` on a free port, with its own data folder."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import Empty, Queue

START_TIMEOUT_S = 30.0


class GatewayProcess:
    """One running gateway: its address, its data folder, and ways to end it."""

    def __init__(
        self,
        data: Path,
        args: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        program: tuple[str, ...] = ("-m", "herdr"),
    ) -> None:
        self.data = data
        self.program = program
        self.args = args
        self.env = dict(env or {})
        self.url = ""
        self.log: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def start(self) -> "GatewayProcess":
        """Start it and wait until it has said where it listens."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith("HERDR_")} | self.env
        serve = ["serve", "--port", "0", "--data", str(self.data), *self.args]
        command = [sys.executable, *self.program, *serve]
        self._process = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        said: Queue[str | None] = Queue()
        threading.Thread(target=self._read_stdout, args=(self._process, said), daemon=True).start()
        threading.Thread(target=self._read_stderr, args=(self._process,), daemon=True).start()
        try:
            line = said.get(timeout=START_TIMEOUT_S)
        except Empty:
            line = None
        if line is None:
            code = self._process.wait(5)
            raise RuntimeError(f"the gateway did not start (exit code {code}): {' '.join(self.log)}")
        self.url = line.split()[-1]
        return self

    def stop(self) -> int:
        """Ask it to stop (SIGTERM) and return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """End it at once (SIGKILL)."""
        return self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop the process in its tracks (SIGSTOP); `resume` lets it go on."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: signal.Signals) -> int:
        process = self._process
        assert process is not None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        code = process.wait(30)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            with contextlib.suppress(ValueError):
                stream.close()
        return code

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @staticmethod
    def _read_stdout(process: "subprocess.Popen[str]", said: "Queue[str | None]") -> None:
        assert process.stdout is not None
        with contextlib.suppress(ValueError):
            for line in process.stdout:
                if "listens on" in line:
                    said.put(line.strip())
        said.put(None)

    def _read_stderr(self, process: "subprocess.Popen[str]") -> None:
        assert process.stderr is not None
        with contextlib.suppress(ValueError):
            for line in process.stderr:
                self.log.append(line.rstrip())


@contextlib.contextmanager
def running_gateway(data: Path, *args: str, env: Mapping[str, str] | None = None) -> Iterator[GatewayProcess]:
    """Start a gateway and make sure that it is gone afterwards."""
    process = GatewayProcess(data, args, env).start()
    try:
        yield process
    finally:
        if process.running():
            process.kill()


def refused_start(data: Path, *args: str, env: Mapping[str, str] | None = None) -> str:
    """Start a gateway that must not start, and return the one line that it says instead."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("HERDR_")} | dict(env or {})
    command = [sys.executable, "-m", "herdr", "serve", "--port", "0", "--data", str(data), *args]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=START_TIMEOUT_S)
    assert done.returncode == 1, done
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("herdr: ") and "Traceback" not in done.stderr, done.stderr
    return done.stderr.strip()
