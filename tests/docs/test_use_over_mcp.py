"""The commands of the how-to about MCP, run as they stand there against a gateway on another port."""

import json
import re
import subprocess
from pathlib import Path

from gateway import running_gateway

PAGE = Path(__file__).parents[2] / "docs/how-to/use-over-mcp.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_what_is_printed_works(tmp_path: Path) -> None:
    register, lock = [body for language, body in _FENCE.findall(PAGE.read_text()) if language == "sh"]
    with running_gateway(tmp_path / "data") as gateway:

        def run(command: str, **environ: str) -> list[dict[str, object]]:
            there = command.replace("127.0.0.1:8787", f"127.0.0.1:{gateway.port}")
            done = subprocess.run(
                ["bash", "-ec", there],
                capture_output=True,
                text=True,
                env=environ | {"PATH": "/usr/bin:/bin"},
            )
            assert done.returncode == 0, done
            return [json.loads(answer) for answer in re.split(r"(?<=})\n*(?=\{\")", done.stdout.strip())]

        (registered,) = run(register)
        me = registered["result"]["structuredContent"]  # type: ignore[index]
        taken, listed = run(lock, HANDLE=me["agent"])
        assert taken["result"]["structuredContent"]["paths"] == ["README.md"]  # type: ignore[index]
        assert [held["owner"] for held in listed["locks"]] == [me["name"]]  # type: ignore[index]


def test_the_configuration_that_is_printed_is_json() -> None:
    (printed,) = [body for language, body in _FENCE.findall(PAGE.read_text()) if language == "json"]
    assert json.loads(printed)["mcpServers"]["herdr"]["url"].endswith(":8787/mcp")
