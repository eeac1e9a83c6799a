"""A stub model and a gateway in front of it, each a process of its own."""

import contextlib
import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.gateway import Gateway
from bench.process import Child


class Stub:
    """A running stub's address and process."""

    def __init__(self, child: Child) -> None:
        self.pid = child.pid
        self.url = (child.ready_line or "").split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def check(self) -> None:
        """Raise if one of its slots ever had two requests at once: the gateway's first duty."""
        with urllib.request.urlopen(f"{self.url}/stub") as answer:
            seen = json.load(answer)
        if seen["collisions"]:
            raise RuntimeError(f"a slot had two requests at once: {seen}")


@contextlib.contextmanager
def stub(slots: int, chunks: int = 32, pace_ms: float = 0.0) -> Iterator[Stub]:
    """Run a stub model."""
    numbers = {"--slots": slots, "--chunks": chunks, "--pace-ms": pace_ms}
    options = [text for name, number in numbers.items() for text in (name, str(number))]
    command = [sys.executable, "-m", "bench.stub_model", *options]
    with Child(command, lambda line: "listens on" in line) as child:
        yield Stub(child)


@contextlib.contextmanager
def pool(folder: Path, url: str) -> Iterator[Gateway]:
    """Run a gateway whose only backend is the llama.cpp server at `url`, otherwise with its defaults."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HERDR_")}
    with tempfile.TemporaryDirectory(dir=folder, prefix="herdr-") as data:
        config = Path(data, "herdr.yaml")
        backend = {"name": "model", "kind": "llamacpp", "url": url}
        config.write_text(json.dumps({"models": {"backends": [backend]}}))
        options = ["--port", "0", "--data", data, "--config", str(config)]
        command = [sys.executable, "-m", "herdr", "serve", *options]
        with Child(command, lambda line: "listens on" in line, env) as child:
            yield Gateway(child)
