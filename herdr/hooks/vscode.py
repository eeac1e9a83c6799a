"""Pure: VS Code's agent hooks. Their form is Claude Code's; its tools have other names and take lists of files.

Its reference has additional context for these events only: a prompt's hook can show something to the user, no more.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from herdr.hooks import claude_code
from herdr.hooks.call import Call
from herdr.hooks.claude_code import encode
from herdr.hooks.payload import patched, paths

__all__ = ["decode", "encode"]

WRITES = frozenset(
    {
        *("editFiles", "createFile", "insertEdit", "replaceString", "multiReplaceString", "editNotebook"),
        *("insert_edit_into_file", "create_file", "replace_string_in_file", "edit_notebook_file"),
        *("multi_replace_string_in_file", "Edit", "Write", "MultiEdit", "NotebookEdit"),
    }
)
SAY = frozenset({"SessionStart", "SubagentStart", "PreToolUse", "PostToolUse"})
PATCHES = frozenset({"apply_patch", "applyPatch"})


def decode(payload: Mapping[str, Any]) -> Call:
    """Read one payload."""
    call = claude_code.decode(payload, "vscode", _written)
    return msgspec.structs.replace(call, hears=call.event in SAY)


def _written(tool: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if tool in PATCHES:
        return patched(arguments)
    named = paths(arguments)
    replacements = arguments.get("replacements")
    if isinstance(replacements, list):
        named += tuple(p for item in replacements if isinstance(item, dict) for p in paths(item))
    return named if tool in WRITES else ()
