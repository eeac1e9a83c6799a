"""The how-to on tasks, done as it is printed: its programs in files of their names, its commands in order."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gateway import GatewayProcess

PAGE = Path(__file__).parents[2] / "docs/how-to/hand-over-tasks.md"
PATIENCE_S = 60


class Reader:
    """Whoever does what the page says, in a folder of their own."""

    def __init__(self, gateway: GatewayProcess, folder: Path) -> None:
        self.gateway = gateway
        self.folder = folder
        for language, body in re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            if language == "python":
                (folder / body.split()[1]).write_text(body)
        self.commands = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)

    def environ(self) -> dict[str, str]:
        clean = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
        path = f"{Path(sys.executable).parent}:{clean['PATH']}"
        return {**clean, "PATH": path, "HERDR_GATEWAY_URL": self.gateway.url}

    def begin(self, command: str) -> "subprocess.Popen[str]":
        theirs = command.replace("127.0.0.1:8787", f"127.0.0.1:{self.gateway.port}").replace(
            "curl ", "curl -sS "
        )
        return subprocess.Popen(
            ["bash", "-ec", theirs],
            cwd=self.folder,
            env=self.environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str) -> list[str]:
        return self.said(self.begin(command))

    def said(self, process: "subprocess.Popen[str]") -> list[str]:
        said, complained = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, complained) == (0, ""), said + complained
        return said.splitlines()


@pytest.fixture
def reader(gateway: GatewayProcess, tmp_path: Path) -> Reader:
    return Reader(gateway, tmp_path)


def test_the_how_to_happens_as_it_is_printed(reader: Reader) -> None:
    work, look = reader.commands
    lines = reader.run(work)
    handed = [
        f"what the {role} found out about: Add VAT to the cart" for role in ("architect", "coder", "reviewer")
    ]
    assert "vat submitted for the architect" in lines
    assert [line for line in lines if "reads:" in line] == [
        "architect reads: Prices in src/cart.py are net. The total has to show VAT.",
        f"coder reads: {handed[0]}",
        f"reviewer reads: {handed[1]}",
        f"tester reads: {handed[2]}",
    ]
    task, events = (json.loads(reader.run(line)[0]) for line in look.splitlines())
    assert (task["state"], task["holder"]) == ("completed", None)
    assert [step["type"] for step in task["steps"]] == [event["type"] for event in events["events"]]


def test_asking_back_happens_as_it_is_printed(reader: Reader) -> None:
    answering, asking = reader.begin("python answer.py"), reader.begin("python ask.py")
    assert reader.said(asking) == ["Round to the cent"]
    assert reader.said(answering) == ["To the cent, or to five?"]
