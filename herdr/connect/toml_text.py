"""Pure: tables of our own in a TOML file, that leave every other byte as it was.

The program whose file it is writes it anew when it likes: with Codex, a comment at the end of ours has moved behind
tables of its own, and the one before ours was gone. So ours are known by their names, not by marks around them.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from herdr.connect.json_text import Unreadable

NOTE = "# Written by `herdr connect`; `--undo` takes it out."
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|\n',
    re.DOTALL,
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER = re.compile(r"[ \t]*\[[^\n]*")


class Table(NamedTuple):
    """A table with a header of its own."""

    name: tuple[str, ...]
    start: int
    end: int
    """Behind its last line; comments and empty lines after it are not its own."""


def parsed(text: str) -> dict[str, Any]:
    """Return what a text holds. Raises Unreadable with the line."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unreadable(str(error) or "it is nested too deeply") from None


def with_tables(text: str, tables: str) -> str:
    """Return the text with the tables, each in place of the one of its name, the others at the end."""
    newline = _newline(text)
    for table in _named(tables):
        body = tables[table.start : table.end].replace("\n", newline)
        known = next((t for t in _named(text) if t.name == table.name), None)
        if known is not None:
            text = text[: known.start] + body + text[known.end :]
            continue
        if text and not text.endswith("\n"):
            text += newline
        gap = newline if text else ""
        text += f"{gap}{NOTE}{newline}{body}"
    return text


def without_tables(text: str, tables: str) -> str:
    """Return the text without the tables, and those below them, and our note."""
    for table in reversed(_with_those_below(text, tables)):
        before, after = text[: table.start], text[table.end :]
        note = before.rstrip("\r\n")
        if note.endswith(NOTE):
            before = _without_gap(note.removesuffix(NOTE))
        elif not after.strip():
            before = _without_gap(before)
        text = before + after
    return text


def tables_of(text: str, tables: str) -> str:
    """Return the tables of the text that have the names of the given ones, or lie below."""
    return "".join([text[table.start : table.end] for table in _with_those_below(text, tables)])


def _with_those_below(text: str, tables: str) -> list[Table]:
    names = [table.name for table in _named(tables)]
    return [table for table in _named(text) if any(table.name[: len(name)] == name for name in names)]


def value_at(text: str, path: Sequence[str]) -> Any:
    """Return the value at a path of keys, or None."""
    node: Any = parsed(text)
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def holds(text: str, tables: str) -> bool:
    """Tell whether all that the tables say is in the text."""
    return _within(parsed(tables), parsed(text))


def _within(wanted: Any, there: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            key in there and _within(value, there[key]) for key, value in wanted.items()
        )
    return bool(wanted == there)


def _without_gap(before: str) -> str:
    """Take out the empty line that was put before ours."""
    for newline in ("\r\n", "\n"):
        if before.endswith(newline * 2):
            return before.removesuffix(newline)
    return before


def _named(text: str) -> list[Table]:
    """Return the tables of a text that is valid; what stands before the first one is none."""
    headers = list(_headers(text))
    ends = [*(at for at, _ in headers[1:]), len(text)]
    return [
        Table(_name(header), at, _end(text, at, end))
        for (at, header), end in zip(headers, ends, strict=False)
    ]


def _headers(text: str) -> Iterator[tuple[int, str]]:
    """Yield where headers begin: lines with a bracket that no value and no string holds."""
    at = 0
    while at <= len(text):
        if header := _HEADER.match(text, at):
            yield at, header[0]
            at = header.end() + 1
            continue
        token, depth = _TOKEN.search(text, at), 0
        while token is not None and (depth or token[0] != "\n"):
            depth += token[0] in ("[", "{")
            depth -= token[0] in ("]", "}")
            token = _TOKEN.search(text, token.end())
        if token is None:
            return
        at = token.end()


def _name(header: str) -> tuple[str, ...]:
    names: list[str] = []
    node: Any = parsed(header.strip())
    while node:
        node = node[0] if isinstance(node, list) else node
        for key, inner in node.items():
            names.append(key)
            node = inner
    return tuple(names)


def _end(text: str, start: int, end: int) -> int:
    """Return where the last line ends that is neither empty nor a comment."""
    lines = _LINE.findall(text[start:end])
    while lines and (not (bare := lines[-1].strip()) or bare.startswith("#")):
        end -= len(lines.pop())
    return end


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
