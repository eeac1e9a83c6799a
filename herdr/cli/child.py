"""Runs a command as if nothing stood between it and the terminal, and keeps the end of what it printed."""

import os
import select
import selectors
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, NamedTuple

from herdr.cli.terminal import note
from herdr.clock import Clock

READ_MAX = 1024**2  # bytes of stdout that readers look at, from its end: where tools sum up
TAIL_MAX = 8 * 1024  # bytes of stdout and stderr together that go into the event
NOT_FOUND, NOT_RUN, SIGNALLED = 127, 126, 128  # the shell's own exit codes
_CHUNK = 64 * 1024
_AFTER_END_MAX = (
    1024**2
)  # bytes still passed on after the command's end: what pipes hold, not what others add
_FROM_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)
_PASSED = (*_FROM_KEYBOARD, signal.SIGTERM, signal.SIGHUP)


class Outcome(NamedTuple):
    """How a command ended."""

    exit_code: int
    """As a shell would say: 128 and the number of the signal that ended it."""
    signal: str | None
    duration_s: float
    stdout: bytes
    """The end of it."""
    tail: bytes
    """The end of stdout and stderr, in the order in which they came."""


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take what came; the bound is checked at twice the limit, so that trimming costs little."""
        self._kept += chunk
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]

    def bytes(self) -> bytes:
        """Return at most the limit."""
        return bytes(self._kept[-self._limit :])


class Kept(NamedTuple):
    """What is kept of both streams."""

    stdout: Tail
    both: Tail


def run_command(command: Sequence[str], clock: Clock) -> Outcome:
    """Run a command with our stdin, passing on its output and our signals; never raises for what it does."""
    kept, started = Kept(Tail(READ_MAX), Tail(TAIL_MAX)), clock.monotonic()
    with _signals_passed_on() as passing:
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        except (OSError, ValueError) as error:
            return _not_run(command[0], error)
        with process:
            passing.to(process)
            _pass_on(process, kept)
            code = process.wait()
    name = signal.Signals(-code).name if code < 0 else None
    code = SIGNALLED - code if code < 0 else code
    return Outcome(code, name, clock.monotonic() - started, kept.stdout.bytes(), kept.both.bytes())


def run_inherited(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command on our own stdin, stdout and stderr, passing on our signals; returns a shell's exit code."""
    with _signals_passed_on() as passing:
        return _run(command, environ, None, passing)


def run_fed(command: Sequence[str], environ: Mapping[str, str], stdin: bytes) -> tuple[int, bool]:
    """Run a command as `run_inherited` does, but with this on its stdin.

    Returns a shell's exit code, and whether a signal told us to stop meanwhile.
    """
    with _signals_passed_on() as passing, tempfile.TemporaryFile() as file:  # a pipe would want to be read
        file.write(stdin)
        file.seek(0)
        return _run(command, environ, file, passing), passing.told


def _run(
    command: Sequence[str], environ: Mapping[str, str], stdin: IO[bytes] | None, passing: "_Passing"
) -> int:
    try:
        process = subprocess.Popen(command, env=environ, stdin=stdin)
    except (OSError, ValueError) as error:
        return _not_run(command[0], error).exit_code
    with process:
        passing.to(process)
        code = process.wait()
    return SIGNALLED - code if code < 0 else code


def _not_run(name: str, error: Exception) -> Outcome:
    found = not isinstance(error, FileNotFoundError)
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    advice = "check that it may be executed" if found else "check the spelling and PATH"
    text = f"cannot run {name}: {why}; {advice}"
    note(text)
    return Outcome(NOT_RUN if found else NOT_FOUND, None, 0.0, b"", text.encode("utf-8", "surrogateescape"))


class _Passing:
    """The handler of the signals that go on to the command; those that come before it runs wait for it."""

    def __init__(self) -> None:
        self.told = False
        """Whether any came."""
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.told = True
        if number in _FROM_KEYBOARD and _terminal_tells_the_command():
            return  # twice would be once too often: pytest's second Ctrl-C is an abort
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)

    def to(self, process: "subprocess.Popen[bytes]") -> None:
        """Send what came, and what comes, to this process."""
        self._process = process
        for number in self._early:
            process.send_signal(number)


def _terminal_tells_the_command() -> bool:
    """Tell whether Ctrl-C reaches the command by itself: it shares our process group, in the foreground."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextmanager
def _signals_passed_on() -> Iterator[_Passing]:
    passing = _Passing()
    # One that is ignored (nohup, a shell's background job) stays so, for the command too
    known = {number: signal.getsignal(number) for number in _PASSED}
    before = {number: h for number, h in known.items() if h not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, passing)
    try:
        yield passing
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_on(process: "subprocess.Popen[bytes]", kept: Kept) -> None:
    """Copy both streams until the command has ended and they are empty.

    Not until they are closed: a process that the command left in the background may hold them for ever.
    """
    assert process.stdout is not None and process.stderr is not None
    streams: dict[IO[bytes], int] = {process.stdout: 1, process.stderr: 2}
    spare, running = _AFTER_END_MAX, True
    with _end_of(process) as ended, selectors.DefaultSelector() as selector:
        for source in (ended, *streams):
            selector.register(source, selectors.EVENT_READ)
        while running or (streams and spare > 0):
            ready = [key.fileobj for key, _ in selector.select(None if running else 0)]
            if not ready:
                return
            if ended in ready:
                selector.unregister(ended)
                running = False
            for source in streams.keys() & ready:
                chunk = os.read(source.fileno(), _CHUNK)
                spare -= 0 if running else len(chunk)
                if not chunk or not _write(streams[source], chunk, kept):
                    selector.unregister(source)
                    del streams[source]
                    source.close()  # when nobody reads our output, the command is to learn it as it would


def _end_of(process: "subprocess.Popen[bytes]") -> IO[bytes]:
    """Return a file that becomes readable when the process has ended."""
    reading, writing = os.pipe()

    def wait() -> None:
        process.wait()
        os.close(writing)

    threading.Thread(target=wait, daemon=True).start()
    return open(reading, "rb", buffering=0)


def _write(target: int, chunk: bytes, kept: Kept) -> bool:
    """Write everything to our stdout or stderr; False when nobody reads it any more."""
    if target == 1:
        kept.stdout.add(chunk)
    kept.both.add(chunk)
    view = memoryview(chunk)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # whoever started us has set it so
            select.select([], [target], [])
        except OSError:
            return False
    return True
