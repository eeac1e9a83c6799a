"""The tutorial, done as it is printed: every command once and in order, and every number compared."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess
from wire import call

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-events.md"
PRINTED_EPOCH = "777be94c"
MADE_UP = {"id": r"[0-9A-Z]{26}", "epoch": r"[0-9a-f]{8}", "time": r"[-0-9]{10}T[0-9:.]{12}Z"}
LOG = [
    *("tool.result", "tool.result", "user.message", "tool.result", "test.passed", "test.failed"),
    *("change.applied", "conflict.detected"),
]
THEN = ["context.changed", "context.indexed", "file.changed"]  # the last two of them in either order
SHOWN_BY_FOLLOWER = {  # what to wait for in terminal 3, after the command that holds the text
    "Keep the public names.": "3-3-3",
    "Last-Event-ID": "4-4-4",
    "test_login": "6-6-6",
}


class Terminals:
    """Runs the page's commands; `shown` is what the last one in terminal 2 printed."""

    def __init__(self, gateway: GatewayProcess, folder: Path) -> None:
        self.gateway = gateway
        self.folder = folder
        self.epoch = json.loads(call(gateway, "GET", "/healthz").body)["epoch"]
        self.shown = ""
        self.last = ""
        self.follower: subprocess.Popen[str] | None = None

    def theirs(self, text: str) -> str:
        """Put the reader's own address, epoch and folders into what is printed."""
        text = text.replace("127.0.0.1:8787", f"127.0.0.1:{self.gateway.port}").replace("curl ", "curl -sS ")
        text = text.replace("/tmp/", f"{self.folder}/").replace(PRINTED_EPOCH, self.epoch)
        return text.replace(".venv/bin/python", sys.executable)

    def environ(self) -> dict[str, str]:
        clean = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
        return {**clean, "HERDR_GATEWAY_URL": self.gateway.url}

    def run(self, command: str) -> None:
        done = subprocess.run(
            ["bash", "-ec", command], env=self.environ(), capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, done.stderr
        self.last, self.shown = command, done.stdout

    def follow(self, command: str) -> None:
        self.leave()
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.follower = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], env=self.environ(), text=True, **streams
        )
        self.wait_for("id: ")

    def wait_for(self, start: str) -> None:
        assert self.follower is not None and self.follower.stdout is not None
        for line in self.follower.stdout:
            if line.startswith(start):
                return
        raise AssertionError(f"the stream ended before {start!r}")

    def leave(self) -> None:
        if self.follower is not None:
            with self.follower as follower:
                follower.terminate()

    def wait_until_watching(self) -> None:
        while b'"watching"' not in call(self.gateway, "GET", "/v1/workspaces").body:
            pass
        self.wait_until_told("context.indexed")

    def wait_until_told(self, type_: str) -> None:
        while not call(self.gateway, "GET", f"/v1/events?after=0&type={type_}").json()["events"]:
            pass

    def restart(self) -> None:
        port = self.gateway.port
        assert self.gateway.stop() == 0
        self.gateway.args = ("--port", str(port))
        self.gateway.start()


@contextmanager
def terminals(gateway: GatewayProcess, folder: Path) -> Iterator[Terminals]:
    there = Terminals(gateway, folder)
    try:
        yield there
    finally:
        there.leave()


def masked(value: Any) -> Any:
    """Blank what is another one each time."""
    if isinstance(value, dict):
        return {
            name: name if re.fullmatch(MADE_UP.get(name, "$^"), str(inner)) else masked(inner)
            for name, inner in value.items()
        }
    return value


def carry_out(command: str, at: Terminals) -> None:
    if "scripts/serve" in command:  # the fixture has started it
        return
    if "limit=2" in command:
        at.restart()
    if "-N" in command:
        at.follow(command)
    else:
        at.run(command)
    if "/v1/workspaces" in command:
        at.wait_until_watching()
    if "a.txt" in command:
        at.wait_for("event: file.changed")
        at.wait_until_told("context.changed")
    for text, place in SHOWN_BY_FOLLOWER.items():
        if text in command:
            at.wait_for(f"id: {at.epoch}:{place}")


def compare(printed: str, at: Terminals) -> None:
    if '"duplicate"' in printed:
        at.run(at.last)
    if printed.startswith("{"):
        assert masked(json.loads(at.shown)) == masked(json.loads(printed))
    elif printed.startswith("accepted"):
        assert at.shown == printed


def test_the_tutorial_happens_as_it_is_printed(gateway: GatewayProcess, tmp_path: Path) -> None:
    fences = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    with terminals(gateway, tmp_path) as at:
        for language, body in fences:
            text = at.theirs(body)
            if language == "sh":
                carry_out(text, at)
            elif language == "python":
                (tmp_path / "hello.py").write_text(text)
            else:
                compare(text, at)
    events, routes, workspaces = (json.loads(line) for line in at.shown.splitlines())
    assert [event["seq"] for event in events["events"]] == [1, 2]
    assert [rule["name"] for rule in routes["routes"]] == ["failures"]
    assert [workspace["name"] for workspace in workspaces["workspaces"]] == ["herdr-shop"]
    there = json.loads(call(gateway, "GET", "/v1/events?after=0").body)["events"]
    types = [event["type"] for event in sorted(there, key=lambda event: int(event["seq"]))]
    assert (types[:8], sorted(types[8:11]), types[11]) == (LOG, THEN, "test.failed")
    assert set(types[12:]) <= {"context.indexed"}, "the folder is looked through again after a restart"


@pytest.mark.parametrize("number", ["3-3-3", "6-6-6", "It is 7", "an event 8", "9 to 11", "accepted 12"])
def test_these_numbers_are_the_ones_that_are_compared(number: str) -> None:
    assert number in PAGE.read_text()
