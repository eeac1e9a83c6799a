"""Settings of the process that a busy gateway profits from."""

import contextlib
import gc
import resource
import sys

OPEN_FILES_WANTED = 65_536  # one socket a connection; the usual soft limit of 1,024 is soon reached
GENERATION_0 = 50_000  # events are made and dropped by the ten thousand, and none of them is part of a cycle
SWITCH_INTERVAL_S = 0.0005
"""The log's thread asks for the interpreter once a batch, and with the default of 5 ms it then waits for that long
beside a busy event loop (256-row batches beside a loop that never sleeps: 147,000 instead of 33,900 rows/s)."""


def tune_process() -> None:
    """Raise the limit of open files as far as allowed, and keep the garbage collector off the hot path."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    gc.collect()
    gc.freeze()
    gc.set_threshold(GENERATION_0, 20, 50)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
