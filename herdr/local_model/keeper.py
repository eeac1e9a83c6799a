"""Runs a command for as long as stdin stays open: a child that cannot outlive the one that started it.

The gateway holds the other end of that pipe, and the kernel closes it however the gateway ends, SIGKILL
included. (Linux could tell the child by a signal, PR_SET_PDEATHSIG; a pipe does it everywhere.)

Run by its path, with the command as its arguments; it imports nothing of Herdr. Exit codes are the shell's:
the command's own, 128 and the signal's number, 127 when it cannot be run.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import FrameType

GRACE_S = 5.0  # from SIGTERM to SIGKILL; llama.cpp needs well under a second unless it hangs
NOT_RUN, SIGNALLED = 127, 128


def main(command: Sequence[str]) -> int:
    """Run the command to its end, or until stdin closes; returns the exit code."""
    stop = _Stop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_RUN
    stop.passes_on_to(process)
    threading.Thread(target=_end_with_stdin, args=(process,), daemon=True).start()
    code = process.wait()
    return SIGNALLED - code if code < 0 else code


class _Stop:
    """Ends the command when a signal comes, also one that came before it ran."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._process is None:
            self._early = True
        else:
            self._process.terminate()

    def passes_on_to(self, process: "subprocess.Popen[bytes]") -> None:
        """Say what runs."""
        self._process = process
        if self._early:
            process.terminate()


def _end_with_stdin(process: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 4096):  # not sys.stdin: a thread that waits in it would spoil our own exit
        pass
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
