"""Reads JSONC by taking out what JSON lacks: another way than the one under test."""

import json
import re
from typing import Any

STRINGS_OR_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def parse(text: str) -> Any:
    bare = STRINGS_OR_COMMENTS.sub(lambda m: m[1] or " ", text.removeprefix("\ufeff"))
    return json.loads(TRAILING.sub(lambda m: m[1] or "", bare))


def comments(text: str) -> list[str]:
    return [m[0].strip() for m in STRINGS_OR_COMMENTS.finditer(text) if m[1] is None]


def holds(now: Any, before: Any) -> bool:
    """Tell whether everything of `before` is in `now`, in its order; lists may have more behind."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(k in now and holds(now[k], v) for k, v in before.items())
    if isinstance(before, list):
        return isinstance(now, list) and now[: len(before)] == before
    return bool(now == before)
