"""The gateway under test: a real process with its own data folder, started as a user would start it."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.process import Child


class Gateway:
    """A running gateway's address and process."""

    def __init__(self, child: Child) -> None:
        self.pid = child.pid
        self.url = (child.ready_line or "").split()[-1]
        self.port = int(self.url.rpartition(":")[2])


@contextlib.contextmanager
def gateway(folder: Path, **settings: str) -> Iterator[Gateway]:
    """Run one gateway with HERDR_GATEWAY_* `settings` on an empty log below `folder`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HERDR_")}
    env |= {f"HERDR_GATEWAY_{name}": value for name, value in settings.items()}
    with tempfile.TemporaryDirectory(dir=folder, prefix="herdr-") as data:
        command = [sys.executable, "-m", "herdr", "serve", "--port", "0", "--data", data]
        with Child(command, lambda line: "listens on" in line, env) as child:
            yield Gateway(child)
