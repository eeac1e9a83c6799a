"""The how-tos on shared context, done as they are printed: every command once and in order, in a real project."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import call

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
README = Path(__file__).parents[2] / "README.md"
PATIENCE_S = 60


def fences(page: str) -> list[tuple[str, str]]:
    text = (HOW_TO / f"{page}.md").read_text()
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


class Reader:
    """Somebody who follows a page: a folder, a gateway, and what was printed last."""

    def __init__(self, gateway: GatewayProcess, folder: Path) -> None:
        self.gateway = gateway
        self.folder = folder
        self.shown = ""

    def run(self, command: str) -> str:
        port = self.gateway.port
        text = command.replace("127.0.0.1:8787", f"127.0.0.1:{port}").replace(":8788", f":{port}")
        text = text.replace("curl ", "curl -sS ").replace("/path/to/shop", str(self.folder))
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        path = f"{Path(sys.executable).parent}:{clean['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", text],
            cwd=self.folder,
            env={**clean, "PATH": path, "HERDR_GATEWAY_URL": self.gateway.url},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.shown = done.stdout
        return self.shown

    def run_python(self, program: str) -> str:
        (self.folder.parent / "example.py").write_text(program)
        return self.run(f"python {self.folder.parent}/example.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


@pytest.fixture
def reader(tmp_path: Path, folder: Path) -> Iterator[Reader]:
    with running_gateway(tmp_path / "data") as process:
        yield Reader(process, folder)


def of_readme() -> list[str]:
    """Return the commands of the README's part on shared context."""
    part = README.read_text().partition("## Share what is known")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", part, re.DOTALL | re.MULTILINE)


def lines(text: str) -> list[str]:
    """Return what is printed without numbers of messages: how many events came before them is not always the same."""
    return [re.sub(r"^#\d+ ", "#N ", line.rstrip()) for line in text.strip().splitlines()]


def ask(reader: Reader, path: str) -> Any:
    return call(reader.gateway, "GET", path).json()


def test_sharing_context_happens_as_it_is_printed(reader: Reader) -> None:
    printed: dict[str, str] = {}
    for language, body in fences("share-context-between-tools"):
        if language == "sh":
            printed[body] = reader.run(body)
        elif language == "python":
            printed[body] = reader.run_python(body)
        elif language == "json":
            assert json.loads(reader.shown) == json.loads(body)
        elif language == "text":
            assert lines(reader.shown) == lines(body)
    (told,) = ask(reader, "/v1/events?after=0&type=context.changed")["events"]
    (signature,) = told["data"]["signatures"]
    assert (signature["symbol"], signature["callers"]) == ("src/cart.py::Cart.total", ["src/till.py"])
    assert "currency: str" in signature["new"] and "currency" not in signature["old"]
    (decisions,) = (text for body, text in printed.items() if "summary.decisions" in body)
    assert "Use integers for money" in decisions and "floats round\n" in decisions
    assert "Never change bill()" in decisions
    (listed,) = (text for body, text in printed.items() if body.startswith("herdr artifacts list"))
    assert "log_digest" in listed and "fix-cart" in listed


def test_the_commands_of_the_readme_work(reader: Reader) -> None:
    (reader.folder / "cart.py").write_text("class Cart:\n    def total(self):\n        return 1\n")
    (reader.folder / "till.py").write_text("from cart import Cart\n\nCart.total(Cart())\n")
    reader.run(f"herdr workspace add {reader.folder}")
    shown = [reader.run(command) for command in of_readme()]
    assert "def total(self)" in shown[0]
    assert [caller["path"] for caller in json.loads(shown[1])["callers"]] == ["till.py"]


def test_a_snapshot_works_in_ci_as_it_is_printed(reader: Reader, tmp_path: Path) -> None:
    (reader.folder / "cart.py").write_text("def total():\n    return 1\n")
    (reader.folder / "till.py").write_text("from cart import total\n\ntotal()\n")
    export, serve, asked, imported = (
        body for language, body in fences("use-a-snapshot-in-ci") if language == "sh"
    )
    reader.run(f"herdr workspace add {reader.folder}")
    said = {"role": "user", "content": "Use integers for money, because floats round.", "workspace": "shop"}
    assert call(reader.gateway, "POST", "/v1/sessions/s/messages", said).status == 201
    assert "1 decision" in reader.run(export)
    (reader.folder / "late.py").write_text("from cart import total\n\ntotal()\n")

    flags = serve.split()
    assert flags[:3] == ["herdr", "serve", "--ci"] and flags[3:5] == ["--snapshot", "shop.herdr"]
    file = str(reader.folder / "shop.herdr")
    watched = ("--workspace", str(reader.folder))
    with running_gateway(tmp_path / "ci", "--ci", "--snapshot", file, *watched) as process:
        in_ci = Reader(process, reader.folder)
        shown = in_ci.run(asked)
        assert "cart.py::total" in shown and "till.py" in shown and "late.py" in shown
        assert "Use integers for money" in shown
        refused = call(process, "PUT", "/v1/artifacts/a", b"text")
        assert (refused.status, refused.json()["code"]) == (403, "read_only")
        assert call(process, "POST", "/v1/sessions/s/messages", said).status == 403
        assert ask(in_ci, "/v1/sessions")["sessions"] == [], "conversations are in it only if asked for"
    assert "2 as in the snapshot" in reader.run(imported)
