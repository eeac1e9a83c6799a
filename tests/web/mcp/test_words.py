"""What models are told: complete, and short enough to be read with every request."""

from unittest.mock import MagicMock

import msgspec
import pytest

from herdr.web.mcp.around import Tool
from herdr.web.mcp.bus_tools import BusTools
from herdr.web.mcp.context_tools import ContextTools
from herdr.web.mcp.lock_tools import LockTools
from herdr.web.mcp.schemas import schema_of
from herdr.web.mcp.task_tools import TaskTools
from herdr.web.mcp.words import DESCRIPTIONS, INSTRUCTIONS

ALL_MAX = 12_500  # characters of the whole list: some 3,000 tokens, of every conversation


def tools() -> list[Tool]:
    nothing = MagicMock()
    return [
        *BusTools(nothing, nothing, nothing, 0).tools(),
        *LockTools(nothing, nothing, nothing, nothing, nothing).tools(),
        *ContextTools(nothing, nothing, nothing, nothing, nothing).tools(),
        *TaskTools(nothing, nothing, nothing).tools(),
    ]


def test_there_are_twelve_tools_and_all_are_described() -> None:
    assert [tool.name for tool in tools()] == list(DESCRIPTIONS)
    assert len(DESCRIPTIONS) == 12


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool.name)
def test_every_argument_is_described_and_nothing_else(tool: Tool) -> None:
    fields = set(tool.arguments.__struct_fields__)
    assert fields <= set(tool.words)
    assert set(tool.words) - fields <= {"session"}  # of the general ones
    if tool.name != "register":
        assert {"agent", "workspace"} <= fields


def test_the_list_is_short() -> None:
    size = sum(
        len(msgspec.json.encode(schema_of(tool.arguments, tool.words))) + len(DESCRIPTIONS[tool.name])
        for tool in tools()
    )
    assert size < ALL_MAX
    assert len(INSTRUCTIONS) < 800


def test_what_changes_nothing_is_told() -> None:
    reading = {tool.name for tool in tools() if tool.reads}
    assert reading == {"events", "check_paths", "project_map", "find_symbol", "callers", "session_window"}
