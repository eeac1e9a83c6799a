"""Pure: changes in JSON text that leave every other byte as it was, comments and odd formatting included.

Reads what editors and tools call JSONC: JSON with comments and trailing commas. An edit is made in the text, at the
place that the reading has found, and never by writing the whole anew.
"""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from herdr.errors import HerdrError

DEPTH_MAX = 100  # of nesting; real files have ten, and reading recurses
INDENT = "  "  # where a file shows none of its own

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')


class Unreadable(HerdrError):
    """A file is not what it should be; the detail has the line."""

    code = "unreadable_configuration"


class Node(NamedTuple):
    """A value in the text, from `start` to `end`."""

    start: int
    end: int
    kind: str
    """`object`, `array` or `scalar`."""
    value: Any = None
    """Of a scalar."""
    members: tuple[tuple[str, int, "Node"], ...] = ()
    """Of an object: key, where the key begins, value."""
    items: tuple["Node", ...] = ()
    """Of an array."""

    def get(self, key: str) -> "Node | None":
        """Return an object's value; of several with one key the last, as readers take it."""
        return next((node for name, _, node in reversed(self.members) if name == key), None)

    def plain(self) -> Any:
        """Return the value itself."""
        if self.kind == "object":
            return {key: node.plain() for key, _, node in self.members}
        return [node.plain() for node in self.items] if self.kind == "array" else self.value

    def starts(self) -> list[int]:
        """Return where its members or items begin."""
        return [at for _, at, _ in self.members] + [node.start for node in self.items]

    def ends(self) -> list[int]:
        """Return where its members or items end."""
        return [node.end for _, _, node in self.members] + [node.end for node in self.items]


def read(text: str) -> Node:
    """Read a text; an empty one is an empty object of no length. Raises Unreadable."""
    at = _skip(text, 0)
    if at == len(text):
        return Node(at, at, "object")
    try:
        node = _value(text, at, 0)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    at = _skip(text, node.end)
    if at != len(text):
        raise _wrong(text, at, "nothing more should follow")
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _wrong(text: str, at: int, what: str) -> Unreadable:
    line = text.count("\n", 0, at) + 1
    return Unreadable(f"line {line}: {what}")


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEPTH_MAX:
        raise _wrong(text, at, "it is nested too deeply")
    opener = text[at : at + 1]
    if opener == "{":
        return _object(text, at, depth)
    if opener == "[":
        return _array(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise _wrong(text, at, "a value is missing" if at < len(text) else "the text ends too early")
    try:
        return Node(at, found.end(), "scalar", json.loads(found[0]))
    except ValueError:
        raise _wrong(text, at, f"{found[0][:40]} is no JSON value") from None


def _object(text: str, start: int, depth: int) -> Node:
    members: list[tuple[str, int, Node]] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        if key is None:
            raise _wrong(text, at, 'a key in quotes or "}" is missing')
        colon = _skip(text, key.end())
        if text[colon : colon + 1] != ":":
            raise _wrong(text, colon, '":" is missing')
        node = _value(text, _skip(text, colon + 1), depth + 1)
        members.append((json.loads(key[0]), at, node))
        at = _after(text, node.end, "}")
    return Node(start, at + 1, "object", members=tuple(members))


def _array(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        node = _value(text, at, depth + 1)
        items.append(node)
        at = _after(text, node.end, "]")
    return Node(start, at + 1, "array", items=tuple(items))


def _after(text: str, at: int, closer: str) -> int:
    """Return the place of the next member, or of the closer."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closer:
        raise _wrong(text, at, f'"," or "{closer}" is missing')
    return at


# Edits -------------------------------------------------------------------------------------------------------


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set the value at a path of keys, making the objects on the way. Raises Unreadable where one is no object."""
    node = read(text)
    if node.start == node.end:
        return text + _dump(_nested(path, value), "", INDENT, _newline(text)) + _newline(text)
    for depth, key in enumerate(path):
        if node.kind != "object":
            raise Unreadable(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        inner = node.get(key)
        if inner is None:
            return _insert(text, node, json.dumps(key), _nested(path[depth + 1 :], value))
        node = inner
    return text if node.plain() == value else _replace(text, node, value)


def append(text: str, path: Sequence[str], value: Any, mark: str) -> str:
    """Append to the array at a path, or replace the item whose text has the mark: that is an earlier one of ours."""
    array = find(text, path)
    if array is None:
        return put(text, path, [value])
    if array.kind != "array":
        raise Unreadable(f"{'.'.join(path)} is not a list")
    for item in array.items:
        if mark in text[item.start : item.end]:
            return text if item.plain() == value else _replace(text, item, value)
    return _insert(text, array, None, value)


def find(text: str, path: Sequence[str]) -> Node | None:
    """Return the value at a path, or None."""
    node: Node | None = read(text)
    for key in path:
        node = None if node is None or node.kind != "object" else node.get(key)
    return node


def drop(text: str, path: Sequence[str]) -> str:
    """Remove the member at a path, if it is there."""
    parent = find(text, path[:-1])
    if parent is None or parent.kind != "object":
        return text
    place = next((n for n, (key, _, _) in enumerate(parent.members) if key == path[-1]), None)
    return text if place is None else _cut(text, parent, place)


def drop_items(text: str, path: Sequence[str], mark: str) -> str:
    """Remove the items whose text has the mark from the array at a path."""
    while True:
        array = find(text, path)
        items = array.items if array is not None and array.kind == "array" else ()
        place = next((n for n, item in enumerate(items) if mark in text[item.start : item.end]), None)
        if array is None or place is None:
            return text
        text = _cut(text, array, place)


def drop_empty(text: str, path: Sequence[str]) -> str:
    """Remove the object or array at a path if nothing is in it."""
    node = find(text, path)
    return drop(text, path) if node is not None and node.kind != "scalar" and not node.ends() else text


def _cut(text: str, parent: Node, place: int) -> str:
    """Remove a member or an item with the comma that belongs to it and the space around."""
    starts, ends = parent.starts(), parent.ends()
    if place + 1 < len(starts):
        return text[: starts[place]] + text[starts[place + 1] :]
    begin = ends[place - 1] if place else parent.start + 1
    closing = parent.end - 1
    rest = text[ends[place] : closing]
    after = _skip(text, ends[place])
    if text[after : after + 1] == ",":
        rest = text[after + 1 : closing]
    return text[:begin] + (rest if place else rest.strip() and rest) + text[closing:]


def _replace(text: str, node: Node, value: Any) -> str:
    new = _dump(value, _margin(text, node.start), _unit(text), _newline(text))
    return text[: node.start] + new + text[node.end :]


def _insert(text: str, parent: Node, key: str | None, value: Any) -> str:
    """Add a member, or an item where there is no key, behind the last one."""
    newline, unit, margin = _newline(text), _unit(text), _margin(text, parent.start)
    starts, ends = parent.starts(), parent.ends()
    head = "" if key is None else f"{key}: "
    closing = parent.end - 1
    if not starts:
        inner = margin + unit
        new = f"{newline}{inner}{head}{_dump(value, inner, unit, newline)}{newline}{margin}"
        return text[: parent.start + 1] + text[parent.start + 1 : closing].rstrip() + new + text[closing:]
    last = ends[-1]
    if "\n" not in text[parent.start : parent.end]:
        return f"{text[:last]}, {head}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    inner = _margin(text, starts[-1])
    new = f"{newline}{inner}{head}{_dump(value, inner, unit, newline)}"
    after = _skip(text, last)
    if text[after : after + 1] == ",":  # a trailing comma stays one
        return f"{text[: after + 1]}{new},{text[after + 1 :]}"
    return f"{text[:last]},{new}{text[last:]}"


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
