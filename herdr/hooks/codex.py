"""Pure: Codex's hooks. Their form is Claude Code's; its edits are patches whose paths begin at the `cwd`."""

from collections.abc import Mapping
from typing import Any

from herdr.hooks import claude_code
from herdr.hooks.call import Call
from herdr.hooks.claude_code import encode
from herdr.hooks.payload import patched, paths

__all__ = ["decode", "encode"]

PATCHES = frozenset({"apply_patch", "ApplyPatch"})
_WRITES = frozenset({"Edit", "Write", "write_file", "edit_file"})


def decode(payload: Mapping[str, Any]) -> Call:
    """Read one payload."""
    return claude_code.decode(payload, "codex", _written)


def _written(tool: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if tool in PATCHES:
        return patched(arguments)
    return paths(arguments) if tool in _WRITES else ()
