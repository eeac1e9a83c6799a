"""Pure: the answers to questions about the graph, as they go over the wire."""

from typing import Literal

import msgspec

from herdr.context.graph.outline import Kind, Outline, qualified_name


class SymbolAnswer(msgspec.Struct, frozen=True, gc=False):
    """One definition."""

    symbol: str
    """`src/a.py::Cart.total`; overloads share one."""
    name: str
    kind: Kind
    path: str
    line: int
    """From 1."""
    end_line: int
    signature: str
    exported: bool


class SymbolsAnswer(msgspec.Struct, frozen=True, gc=False):
    """Definitions by path and line."""

    symbols: tuple[SymbolAnswer, ...]
    more: int
    """Found beyond the limit, and files that were not looked into."""


class CallerAnswer(msgspec.Struct, frozen=True, gc=False):
    """All calls of one thing by one function through one receiver."""

    symbol: str | None
    """The calling function or class; null at the top of a file."""
    path: str
    lines: tuple[int, ...]
    call: str
    """As it is written, without arguments: `self.cart.total`."""
    resolution: Literal["exact", "name"]
    candidates: int
    """How many definitions may be meant."""
    target: str | None
    """Which one is, if that is known."""
    signature: str
    """The caller's; empty at the top of a file."""


class CallersAnswer(msgspec.Struct, frozen=True, gc=False):
    """Exact callers first, then by path and line."""

    definitions: tuple[SymbolAnswer, ...]
    callers: tuple[CallerAnswer, ...]
    more: int
    """Found beyond the limit, and files that were not looked into."""


class CalleeAnswer(msgspec.Struct, frozen=True, gc=False):
    """What one function calls by one name through one receiver."""

    name: str
    call: str
    path: str
    lines: tuple[int, ...]
    resolution: Literal["exact", "name", "external"]
    candidates: int
    targets: tuple[SymbolAnswer, ...]
    """The first few of them."""


class CalleesAnswer(msgspec.Struct, frozen=True, gc=False):
    """In the order of the text."""

    definitions: tuple[SymbolAnswer, ...]
    callees: tuple[CalleeAnswer, ...]
    more: int


class DependentAnswer(msgspec.Struct, frozen=True, gc=False):
    """A file that imports another one, or one that imports such a file."""

    path: str
    distance: int
    via: str
    """The nearer file that it imports."""


class DependentsAnswer(msgspec.Struct, frozen=True, gc=False):
    """The nearest first, then by path."""

    path: str
    dependents: tuple[DependentAnswer, ...]
    more: int
    """Found beyond the limit, and files that were not looked into."""


class ImportAnswer(msgspec.Struct, frozen=True, gc=False):
    """One name that a file imports."""

    module: str
    name: str
    alias: str
    line: int
    resolution: Literal["exact", "external"]
    paths: tuple[str, ...]


class FileAnswer(msgspec.Struct, frozen=True, gc=False):
    """One file. What its bytes alone say (hash, size) is not here."""

    path: str
    language: str
    lines: int
    symbols: tuple[SymbolAnswer, ...]
    imports: tuple[ImportAnswer, ...]
    importers: tuple[str, ...]
    broken: bool
    more: int
    """Symbols, imports and importers beyond the limits."""


def symbol_answer(path: str, outline: Outline, place: int) -> SymbolAnswer:
    """Describe one symbol."""
    symbol = outline.symbols[place]
    return SymbolAnswer(
        f"{path}::{qualified_name(outline, place)}",
        symbol.name,
        symbol.kind,
        path,
        symbol.line,
        symbol.end_line,
        symbol.signature,
        symbol.exported,
    )
