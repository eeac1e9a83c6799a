"""YAML text to a tree in which every value and key knows where it stands.

PyYAML speaks YAML 1.1, where `on` is true, `0777` is 511 and `1:30` is 90. Here plain scalars are read by
the core schema of YAML 1.2.2 (section 10.3.2) instead; `0777`, `1_000` and `.inf` stay text, so that a key
that wants a number refuses them rather than guesses. Only these tags exist; nothing is ever constructed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import yaml
from yaml import MappingNode, Mark, Node, ScalarNode, SequenceNode

from herdr.config.problem import Problem

TEXT_BYTES_MAX = 1024 * 1024  # a thousand rules are a tenth of it
DEPTH_MAX = 32  # the deepest key is at 5
VALUES_MAX = 100_000  # aliases can multiply a small file ("billion laughs")

_TAG = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Item:
    """One value: a scalar, or a dict or list of items; where it stands, and where its key stands."""

    value: object
    origin: str
    key_origin: str = ""


class _Refused(Exception):
    """The document breaks a rule at this mark."""

    def __init__(self, mark: Mark, message: str) -> None:
        super().__init__(message)
        self.mark = mark


class _Loader(yaml.SafeLoader):
    """Composes nodes, with plain scalars of YAML 1.2 and a bound on depth."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # PyYAML's own way; filled below, once
    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise _Refused(event.start_mark, f"nested deeper than {DEPTH_MAX} levels")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


for _tag, _regex, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789."),
):
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(rf"(?:{_regex})\Z"), list(_first))

_SCALARS: Mapping[str, Callable[[str], object]] = {
    _TAG + "str": str,
    _TAG + "int": lambda text: int(text, 0),
    _TAG + "float": float,
    _TAG + "bool": lambda text: {"true": True, "false": False}[text.lower()],
    _TAG + "null": lambda text: None,
}


def read_document(data: bytes, name: str) -> tuple[Item | None, list[Problem]]:
    """Return the tree of one YAML document and what is wrong with it; no tree when it cannot be parsed.

    An empty document is an empty mapping. Positions are `name:line:column`, both from 1.
    """

    def at(mark: Mark) -> str:
        return f"{name}:{mark.line + 1}:{mark.column + 1}"

    if len(data) > TEXT_BYTES_MAX:
        return None, [Problem(name, "", f"larger than {TEXT_BYTES_MAX} bytes; this is not a configuration")]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, [Problem(f"{name}:{line}", "", "not UTF-8; save the file in that encoding")]
    item, problems = read_text(text, at)
    if item is not None and item.value is None:
        item.value = {}
    return item, problems


def read_text(text: str, at: Callable[[Mark], str]) -> tuple[Item | None, list[Problem]]:
    """Return the tree of a YAML text, with origins as `at` names them, and what is wrong with it."""
    start = Mark("", 0, 0, 0, None, 0)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        lines = text[: error.position].split("\n")
        mark = Mark("", error.position, len(lines) - 1, len(lines[-1]), None, 0)
        return None, [Problem(at(mark), "", f"the character {error.character!r} is not allowed in YAML")]
    except yaml.MarkedYAMLError as error:
        said = ", ".join(part for part in (error.context, error.problem) if part)
        return None, [Problem(at(error.problem_mark or start), "", f"not YAML: {said}{_tab_hint(said)}")]
    except _Refused as error:
        return None, [Problem(at(error.mark), "", str(error))]
    if node is None:
        return Item(None, at(start)), []
    return _Tree(at).grow(node)


def _tab_hint(said: str) -> str:
    return " (indent with spaces, not tabs)" if r"'\t'" in said else ""


class _Tree:
    """Turns nodes into items and collects what is wrong on the way."""

    def __init__(self, at: Callable[[Mark], str]) -> None:
        self._at = at
        self._problems: list[Problem] = []
        self._values = 0

    def grow(self, node: Node) -> tuple[Item | None, list[Problem]]:
        try:
            return self._item(node, "", 0), self._problems
        except _Refused as error:
            return None, [*self._problems, Problem(self._at(error.mark), "", str(error))]

    def _item(self, node: Node, path: str, depth: int) -> Item:
        self._values += 1
        if self._values > VALUES_MAX or depth > DEPTH_MAX:
            raise _Refused(node.start_mark, "too many values; do aliases repeat each other?")
        if isinstance(node, MappingNode) and node.tag == _TAG + "map":
            return Item(self._mapping(node, path, depth), self._at(node.start_mark))
        if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
            items = [self._item(child, f"{path}[{n}]", depth + 1) for n, child in enumerate(node.value)]
            return Item(items, self._at(node.start_mark))
        return Item(self._scalar(node, path), self._at(node.start_mark))

    def _mapping(self, node: MappingNode, path: str, depth: int) -> dict[str, Item]:
        items: dict[str, Item] = {}
        for key, value in node.value:
            key_origin = self._at(key.start_mark)
            if not isinstance(key, ScalarNode):
                self._problems.append(Problem(key_origin, path, "a key must be a plain name"))
                continue
            below = f"{path}.{key.value}" if path else key.value
            if (twin := items.get(key.value)) is not None:
                message = f"the key is here twice; the first is at {twin.key_origin}"
                self._problems.append(Problem(key_origin, below, message))
            item = self._item(value, below, depth + 1)
            item.key_origin = key_origin
            items[key.value] = item
        return items

    def _scalar(self, node: Node, path: str) -> object:
        make = _SCALARS.get(node.tag)
        if make is None or not isinstance(node, ScalarNode):
            tag = node.tag.replace(_TAG, "!!")
            self._problems.append(
                Problem(self._at(node.start_mark), path, f"the tag {tag} is not allowed; remove it")
            )
            return None
        try:
            return make(node.value)
        except (ValueError, KeyError):
            tag = node.tag.replace(_TAG, "!!")
            self._problems.append(Problem(self._at(node.start_mark), path, f"this is not a value of {tag}"))
            return None
