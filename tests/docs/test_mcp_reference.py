"""The reference of the MCP server, checked against what models are told and what the conformance run leaves out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from herdr.web.mcp.around import Tool
from herdr.web.mcp.bus_tools import BusTools
from herdr.web.mcp.context_tools import ContextTools
from herdr.web.mcp.lock_tools import LockTools
from herdr.web.mcp.resources import Resources
from herdr.web.mcp.schemas import schema_of
from herdr.web.mcp.task_tools import TaskTools
from herdr.web.mcp.words import DESCRIPTIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/mcp.md"
GENERAL = ("agent", "workspace")  # explained once, above the tools


def tools() -> Iterator[Tool]:
    parts = [BusTools, LockTools, ContextTools, TaskTools]
    for part, count in zip(parts, (4, 5, 5, 3), strict=True):
        yield from part(*(MagicMock() for _ in range(count))).tools()  # type: ignore[operator]


def form(field: dict[str, Any], required: bool) -> str:
    """Say in a few words what an argument takes."""
    kind = field.get("type", "any JSON")
    if kind == "array":
        kind = f"list of {field['items']['type']}s"
    if "enum" in field:
        kind = ", ".join(f"`{one}`" for one in field["enum"])
    bounds = [str(field.get(name, "")) for name in ("minimum", "maximum")]
    low = bounds[0] or (f"over {field['exclusiveMinimum']}" if "exclusiveMinimum" in field else "")
    if (low or bounds[1]) and len(bounds[1]) < 12:
        kind += f", {low} to {bounds[1]}"
    if required:
        return f"{kind}; required"
    return f"{kind}; default {json.dumps(field['default'])}" if "default" in field else kind


def rendered(tool: Tool) -> str:
    """Return a tool's part of the page, word for word."""
    schema = schema_of(tool.arguments, tool.words)
    scope = f"Scope `{tool.scope}`." if tool.scope else "Any token will do."
    lines = [f"### `{tool.name}`", "", f"{DESCRIPTIONS[tool.name]} {scope}", ""]
    lines += ["| argument | takes | meaning |", "| --- | --- | --- |"]
    for name, field in schema["properties"].items():
        if name not in GENERAL or tool.name == "register":
            required = name in schema.get("required", ())
            lines.append(f"| `{name}` | {form(field, required)} | {field['description']} |")
    return "\n".join(lines).replace("<", "&lt;")


@pytest.mark.parametrize("tool", list(tools()), ids=lambda tool: tool.name)
def test_every_tool_is_there_word_for_word(tool: Tool) -> None:
    assert rendered(tool) in PAGE.read_text(), f"docs/reference/mcp.md should have:\n\n{rendered(tool)}"


def test_no_other_tool_is_there() -> None:
    named = [line for line in PAGE.read_text().splitlines() if line.startswith("### `")]
    assert named == [f"### `{tool.name}`" for tool in tools()]


async def test_every_resource_is_there() -> None:
    workspaces = MagicMock()
    workspaces.names.return_value = []
    resources = Resources(MagicMock(), MagicMock(), MagicMock(), MagicMock(), workspaces)
    listed = (await resources.list(MagicMock(), MagicMock()))["resources"]
    templates = (await resources.templates(MagicMock(), MagicMock()))["resourceTemplates"]
    uris = [one["uri"] for one in listed] + [one["uriTemplate"] for one in templates]
    assert len(uris) == 5
    for uri in uris:
        assert f"| `{uri}` |" in PAGE.read_text()


def test_what_the_conformance_run_leaves_out_is_there_with_the_reason() -> None:
    left_out = json.loads((ROOT / "tests/conformance/left_out.json").read_text())
    page = PAGE.read_text()
    for name, why in {**left_out["scenarios"], **left_out["checks"]}.items():
        assert f"| `{name}` | {why} |" in page


if __name__ == "__main__":
    print("\n\n".join(map(rendered, tools())))
