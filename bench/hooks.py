"""What a tool's hooks add to a tool call: before and after an edit, over one connection, and by a process each."""

import http.client
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.gateway import Gateway, gateway
from bench.plan import Plan
from bench.report import Line
from bench.timing import spread_ms

CALLS = 1000
BY_CURL = 100  # tool calls: each starts two processes
FILES = 50
AT_MOST_MS = 5.0
JSON = {"Content-Type": "application/json"}
PATIENCE_S = 60.0

Post = Callable[[bytes], None]


def hooks(plan: Plan) -> list[Line]:
    """Time the hooks of edits, the smallest request on the same connection, and a `curl` for each hook."""
    both = Line("hooks of one tool call, HTTP, both", "ms", [], at_most=AT_MOST_MS, beside={"p99 ms": []})
    each = {
        event: Line(f"{event}, HTTP", "ms", [], "GET /livez on the same connection", beside={"p99 ms": []})
        for event in ("PreToolUse", "PostToolUse")
    }
    curl = Line("hooks of one tool call, a curl process each, both", "ms", [], "HTTP", beside={"p99 ms": []})
    with tempfile.TemporaryDirectory(dir=plan.folder, prefix="repository-") as name:
        folder = Path(name)
        for number in range(FILES):
            (folder / f"file{number}.py").write_text(f"def f{number}():\n    return 0\n")
        with gateway(plan.folder) as herdr:
            connection = http.client.HTTPConnection("127.0.0.1", herdr.port, timeout=PATIENCE_S)
            _watch(connection, folder)
            _edits(folder, 20, lambda body: _ask(connection, body))  # warm up
            for _ in range(plan.repeats):
                idle = spread_ms(_livez(connection, plan.sized(CALLS)))
                took = _edits(folder, plan.sized(CALLS), lambda body: _ask(connection, body))
                for line, times in zip(each.values(), took, strict=True):
                    _note(line, times)
                    line.peer_seen.append(idle["p50"])
                _note(both, [sum(pair) for pair in zip(*took, strict=True)])
                by_curl = _edits(folder, plan.sized(BY_CURL), lambda body: _curl(herdr, body))
                _note(curl, [sum(pair) for pair in zip(*by_curl, strict=True)])
                curl.peer_seen.append(both.seen[-1])
            connection.close()
    return [both, *each.values(), curl]


def _note(line: Line, seconds: list[float]) -> None:
    spread = spread_ms(seconds)
    line.seen.append(spread["p50"])
    line.beside["p99 ms"].append(spread["p99"])


def _edits(folder: Path, count: int, post: Post) -> tuple[list[float], list[float]]:
    """Edit so many times, as a tool would; return how long each hook before it, and after it, took."""
    before, after = [], []
    for number in range(count):
        path = folder / f"file{number % FILES}.py"
        before.append(_timed(post, _payload("PreToolUse", path, number)))
        path.write_text(f"def f{number}():\n    return {number}\n")
        after.append(_timed(post, _payload("PostToolUse", path, number)))
    return before, after


def _timed(post: Post, body: bytes) -> float:
    began = time.perf_counter()
    post(body)
    return time.perf_counter() - began


def _payload(event: str, path: Path, number: int) -> bytes:
    written = {"file_path": str(path), "old_string": "return 0", "new_string": f"return {number}"}
    told: dict[str, Any] = {
        "session_id": "0f5b6a52-4d1e-4c1b-9f0a-2b7c1a2b3c4d",
        "transcript_path": "/home/me/.claude/projects/shop/0f5b6a52.jsonl",
        "cwd": str(path.parent),
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": "Edit",
        "tool_input": written,
        "tool_use_id": f"toolu_{number:08}",
    }
    if event == "PostToolUse":
        told |= {"tool_response": {"filePath": str(path), "structuredPatch": []}, "duration_ms": 12}
    return json.dumps(told).encode()


def _ask(connection: http.client.HTTPConnection, body: bytes) -> None:
    connection.request("POST", "/hooks/claude-code", body, JSON)
    _check(connection.getresponse().read())


def _curl(herdr: Gateway, body: bytes) -> None:
    """As `herdr connect` has it for tools whose hooks are commands."""
    command = [
        "curl",
        "-sf",
        "--max-time",
        "5",
        "-H",
        "Content-Type: application/json",
        "--data-binary",
        "@-",
    ]
    done = subprocess.run([*command, f"{herdr.url}/hooks/claude-code"], input=body, stdout=-1, check=True)
    _check(done.stdout)


def _check(answer: bytes) -> None:
    if b"deny" in answer or b"systemMessage" in answer:
        raise RuntimeError(f"a hook was answered {answer.decode()[:500]}")


def _livez(connection: http.client.HTTPConnection, count: int) -> list[float]:
    def ask(_: bytes) -> None:
        connection.request("GET", "/livez")
        connection.getresponse().read()

    return [_timed(ask, b"") for _ in range(count)]


def _watch(connection: http.client.HTTPConnection, folder: Path) -> None:
    """Have the folder watched, and wait until it is."""
    connection.request("POST", "/v1/workspaces", json.dumps({"path": str(folder)}), JSON)
    connection.getresponse().read()
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        connection.request("GET", "/v1/workspaces")
        if b'"watching"' in connection.getresponse().read():
            return
        time.sleep(0.05)
    raise RuntimeError("the folder is not watched")
