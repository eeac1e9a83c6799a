"""Pure: reads the payloads of hooks, which nobody promises the form of: what is missing or odd counts as absent."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from herdr.hooks.call import PATHS_MAX, TEXT_MAX

PATH_KEYS = ("file_path", "filePath", "notebook_path", "path", "target_file", "absolute_path", "filename")
_LIST_KEYS = ("files", "paths", "edits")
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
PATCH_MAX = 4 * 1024 * 1024  # characters of one patch that are looked through


def text(payload: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that holds text; empty without one."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value[:TEXT_MAX]
    return ""


def fields(payload: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the first of these fields that holds an object; empty without one."""
    return next((v for name in names if isinstance(v := payload.get(name), dict)), {})


def paths(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a tool call names, each once."""
    found = [value for key in PATH_KEYS if isinstance(value := arguments.get(key), str) and value]
    for key in _LIST_KEYS:
        items = arguments.get(key)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, str):
                found.append(item)
            elif isinstance(item, dict):
                found.extend(v for name in PATH_KEYS if isinstance(v := item.get(name), str) and v)
    return tuple(dict.fromkeys(found))[:PATHS_MAX]


def patched(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a patch in the form of Codex's `apply_patch` touches."""
    found = (m[1].strip() for value in _texts(arguments) for m in _PATCHED.finditer(value[:PATCH_MAX]))
    return tuple(dict.fromkeys(found))[:PATHS_MAX]


def _texts(arguments: Mapping[str, Any]) -> Iterable[str]:
    for value in arguments.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, Sequence):
            yield from (item for item in value if isinstance(item, str))
