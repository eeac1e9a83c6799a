"""Pure: changes in JSON text that leave every other byte as it was, comments and odd formatting included.

An edit is made in the text, at the place that the reading has found, and never by writing the whole anew.
"""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from herdr.connect.json_text import Node, Unreadable, read, skip

INDENT = "  "  # where a file shows none of its own
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\r\n]*?\*/)*(?://[^\r\n]*)?(?=[\r\n]|$)")


def find(text: str, path: Sequence[str]) -> Node | None:
    """Return the value at a path of keys, or None. Raises Unreadable."""
    node: Node | None = read(text)
    for key in path:
        node = None if node is None or node.kind != "object" else node.get(key)
    return node


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set the value at a path of keys, making the objects on the way. Raises Unreadable where one is no object."""
    node = read(text)
    if node.start == node.end:
        gap = _newline(text) if text and not text.endswith(("\n", "\r")) else ""
        return text + gap + _dump(_nested(path, value), "", INDENT, _newline(text)) + _newline(text)
    for depth, key in enumerate(path):
        if node.kind != "object":
            raise Unreadable(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        inner = node.get(key)
        if inner is None:
            return _insert(text, node, json.dumps(key), _nested(path[depth + 1 :], value))
        node = inner
    return text if node.plain() == value else replace(text, node, value)


def append(text: str, path: Sequence[str], value: Any) -> str:
    """Append to the array at a path, which is made when it is missing. Raises Unreadable where it is no array."""
    array = find(text, path)
    if array is None:
        return put(text, path, [value])
    if array.kind != "array":
        raise Unreadable(f"{'.'.join(path)} is not a list")
    return _insert(text, array, None, value)


def drop(text: str, path: Sequence[str]) -> str:
    """Remove the member at a path, if it is there; of several with one key the last."""
    parent = find(text, path[:-1])
    if parent is None or parent.kind != "object":
        return text
    places = [n for n, (key, _, _) in enumerate(parent.members) if key == path[-1]]
    return cut(text, parent, places[-1]) if places else text


def drop_empty(text: str, path: Sequence[str]) -> str:
    """Remove the object or array at a path if nothing is in it, not even a comment."""
    node = find(text, path)
    is_empty = node is not None and node.kind != "scalar" and not text[node.start + 1 : node.end - 1].strip()
    return drop(text, path) if is_empty else text


def replace(text: str, node: Node, value: Any) -> str:
    """Write another value in place of one."""
    new = _dump(value, _margin(text, node.start), _unit(text), _newline(text))
    return text[: node.start] + new + text[node.end :]


def cut(text: str, parent: Node, place: int) -> str:
    """Remove a member or an item, the comma that it needs no more, and its line when nothing else is on it."""
    starts, ends = parent.starts(), parent.ends()
    begin, end = starts[place], ends[place]
    comma = skip(text, end)
    if text[comma] != "," and place:
        comma = skip(text, ends[place - 1])
    if comma == end and text[comma] == ",":
        end += 1
    elif text[comma] == ",":
        text = text[:comma] + text[comma + 1 :]
        moved = int(comma < begin)
        begin, end = begin - moved, end - moved
    left, right = _widened(text, begin, end)
    text = text[:left] + text[right:]
    inside = parent.start + 1
    closing = skip(text, inside)
    if text[closing] in "}]" and not text[inside:closing].strip():
        return text[:inside] + text[closing:]  # the last one left nothing behind
    return text


def _widened(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the span of something with the space that stands there only for it."""
    left, right = begin, end
    while text[left - 1] in " \t":
        left -= 1
    while text[right] in " \t":
        right += 1
    if text[left - 1] == "\n" and text[right] in "\r\n":
        return left - 2 if text[left - 2] == "\r" else left - 1, right
    if text[right] in "}]":
        return left, end
    return begin, right


def _insert(text: str, parent: Node, key: str | None, value: Any) -> str:
    """Add a member, or an item where there is no key, behind the last one and the comment on its line."""
    newline, unit = _newline(text), _unit(text)
    starts, ends = parent.starts(), parent.ends()
    head = "" if key is None else f"{key}: "
    if not starts:
        margin, closing = _margin(text, parent.start), parent.end - 1
        inner = margin + unit
        new = f"{newline}{inner}{head}{_dump(value, inner, unit, newline)}{newline}{margin}"
        return text[:closing].rstrip() + new + text[closing:]
    last = ends[-1]
    if "\n" not in text[parent.start : parent.end]:
        return f"{text[:last]}, {head}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    inner = _margin(text, starts[-1])
    new = f"{newline}{inner}{head}{_dump(value, inner, unit, newline)}"
    after = skip(text, last)
    if text[after] == ",":  # a trailing comma stays one
        at = _line_end(text, after + 1)
        return f"{text[:at]}{new},{text[at:]}"
    at = _line_end(text, last)
    return f"{text[:last]},{text[last:at]}{new}{text[at:]}"


def _line_end(text: str, at: int) -> int:
    """Return the end of the line when only comments are left on it."""
    found = _REST_OF_LINE.match(text, at)
    return at if found is None else found.end()


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _dump(value: Any, margin: str, unit: str, newline: str) -> str:
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    return text.replace("\n", newline + margin)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _margin(text: str, at: int) -> str:
    """Return the space that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return what a level is indented by: what the first indented line has more than the line before."""
    margins = list(_margins(text))
    for before, after in itertools.pairwise(margins):
        if after.startswith(before) and len(after) > len(before):
            return after[len(before) :]
    return INDENT


def _margins(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if (stripped := line.lstrip(" \t")) and not stripped.startswith(("//", "/*", "*")):
            yield line[: len(line) - len(stripped)]
