"""A gateway that follows one source tree, and how long it takes until its graph answers."""

import contextlib
import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from bench.process import Child

PATIENCE_S = 300.0  # for an index; the larger tree takes a tenth of it on two idle cores


class Indexed:
    """A running gateway with one workspace, which has the name of the tree's folder."""

    def __init__(self, child: Child, workspace: str, began: float) -> None:
        self.pid = child.pid
        self._said = child.said
        self.workspace = workspace
        self.port = int((child.ready_line or "").rpartition(":")[2])
        self._began = began
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def ready_s(self) -> float:
        """Wait until the graph answers; returns seconds since the process was started."""
        self.wait()
        return time.perf_counter() - self._began

    def wait(self) -> None:
        """Wait until the graph has taken in every file; the gateway itself holds a question for ten seconds."""
        until = time.perf_counter() + PATIENCE_S
        while True:
            status, answer = self.ask("GET", self.graph("symbols", name="main", limit=1))
            if status == 200:
                return
            if b'"indexing"' not in answer or time.perf_counter() > until:
                raise RuntimeError(f"the graph is not ready: {answer.decode()}")

    def graph(self, question: str, **query: object) -> str:
        """Return the path of a question to the graph."""
        return f"/v1/context/{self.workspace}/graph/{quote(question)}?{urlencode(query, doseq=True)}"

    def state(self) -> dict[str, Any]:
        """Return what the gateway says of the graph."""
        found: dict[str, Any] = self.get(f"/v1/context/{self.workspace}")["graph"]
        return found

    def pass_s(self) -> float:
        """Return what the indexer says its last look at all files took, in seconds."""
        return float(self.state()["last_pass"]["took_s"])

    def get(self, path: str) -> Any:
        """Return a JSON answer; raises unless it is one."""
        return json.loads(self.good("GET", path))

    def post(self, path: str, body: Any) -> Any:
        """Post JSON and return the JSON answer; raises unless it is one."""
        return json.loads(self.good("POST", path, json.dumps(body).encode()))

    def good(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return an answer's body; raises unless it is a good one."""
        status, answer = self.ask(method, path, body)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}; {' '.join(self._said[-5:])}")
        return answer

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body, over one connection that stays open."""
        self._connection.request(method, path, body, {"content-type": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        """Leave."""
        self._connection.close()


@contextlib.contextmanager
def new_data(folder: Path) -> Iterator[Path]:
    """Make an empty data folder below `folder`, which is removed at the end."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="herdr-") as data:
        yield Path(data)


@contextlib.contextmanager
def indexed(data: Path, tree: Path, *options: str) -> Iterator[Indexed]:
    """Run a gateway on its data folder, which may hold the graph of an earlier run."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HERDR_")}
    places = ("--port", "0", "--data", str(data), "--workspace", str(tree))
    command = [sys.executable, "-m", "herdr", "serve", *places, *options]
    began = time.perf_counter()
    with Child(command, lambda line: "listens on" in line, env) as child:
        herdr = Indexed(child, tree.name, began)
        try:
            yield herdr
        finally:
            herdr.close()
