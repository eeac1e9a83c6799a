"""Pure: reads what editors and tools call JSONC (JSON with comments and trailing commas), and where each value is."""

import json
import re
from typing import Any, NamedTuple

from herdr.errors import HerdrError

DEPTH_MAX = 100  # of nesting; real files have ten, and reading recurses

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
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
    at = skip(text, 0)
    if at == len(text):
        return Node(at, at, "object")
    try:
        node = _value(text, at, 0)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    at = skip(text, node.end)
    if at != len(text):
        raise _wrong(text, at, "nothing more should follow")
    return node


def skip(text: str, at: int) -> int:
    """Return the place behind the space and the comments at a place."""
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
    at = skip(text, start + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        if key is None:
            raise _wrong(text, at, 'a key in quotes or "}" is missing')
        colon = skip(text, key.end())
        if text[colon : colon + 1] != ":":
            raise _wrong(text, colon, '":" is missing')
        node = _value(text, skip(text, colon + 1), depth + 1)
        members.append((json.loads(key[0]), at, node))
        at = _after(text, node.end, "}")
    return Node(start, at + 1, "object", members=tuple(members))


def _array(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    at = skip(text, start + 1)
    while text[at : at + 1] != "]":
        node = _value(text, at, depth + 1)
        items.append(node)
        at = _after(text, node.end, "]")
    return Node(start, at + 1, "array", items=tuple(items))


def _after(text: str, at: int, closer: str) -> int:
    """Return the place of the next member, or of the closer."""
    at = skip(text, at)
    if text[at : at + 1] == ",":
        return skip(text, at + 1)
    if text[at : at + 1] != closer:
        raise _wrong(text, at, f'"," or "{closer}" is missing')
    return at
