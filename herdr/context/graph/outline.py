"""Pure: what is known of one file by itself. The graph is these outlines; everything else is worked out.

An outline depends on the file's bytes alone, so it is stored by their hash, and a graph that was updated file
by file equals one that was built afresh.
"""

from typing import Literal

import msgspec

OUTLINE_FORMAT = 1
"""Raised whenever the same bytes would give another outline: a new grammar, query or rule."""

SIGNATURE_MAX = 300  # characters; what stands beyond is cut and ends in `…`

Kind = Literal[
    "module", "namespace", "class", "interface", "struct", "union", "enum", "trait", "impl",
    "function", "method", "constructor", "property", "field", "constant", "variable", "type", "macro",
    "heading",
]  # fmt: skip


class Symbol(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One definition."""

    name: str
    """As it is called: `save`, not `Model.save`."""
    kind: Kind
    line: int
    """From 1."""
    end_line: int
    signature: str
    """One line, without the body: `def save(self, force: bool = False) -> None`."""
    parent: int = -1
    """Place of the enclosing definition in `Outline.symbols`; -1 at the top."""
    exported: bool = True
    """Whether other files can name it, by the language's rule or, where it has none, its convention."""
    bases: tuple[str, ...] = ()
    """Dotted names of what a class extends or implements, as they are written."""
    owner: str = ""
    """The type that it belongs to where its text stands elsewhere: `Cart` of Go's `func (c *Cart) Total()`."""


class Import(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One name that an import binds, or one module that it brings in."""

    module: str
    """As it is written, without quotes: `django.db.models`, `..views`, `./cart.js`, `crate::shop::cart`."""
    line: int
    name: str = ""
    """What is taken from the module; empty for the module itself, `*` for everything."""
    alias: str = ""
    """What it is called in this file; empty when nothing is bound."""


class Call(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """All calls of one name by one function through one receiver."""

    name: str
    """The last part: `save`."""
    receiver: str
    """What stands before it: empty, `self`, `models`, `shop.cart`; `?` for anything else than dotted names."""
    caller: int
    """Place of the innermost enclosing function or class in `Outline.symbols`; -1 at the top of the file."""
    lines: tuple[int, ...]
    """From 1, ascending; the first LINES_MAX of them."""


LINES_MAX = 20  # places of one call within one function


class Outline(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One file."""

    language: str
    lines: int
    symbols: tuple[Symbol, ...] = ()
    """In the order of the text, so that a parent stands before its children."""
    imports: tuple[Import, ...] = ()
    calls: tuple[Call, ...] = ()
    package: str = ""
    """The package or namespace that the file says it belongs to (Go, Java, C#, PHP, Rust: empty)."""
    broken: bool = False
    """Whether the parser met something that it could not read; the rest is still here."""


def qualified_name(outline: Outline, place: int) -> str:
    """Return a symbol's name with those of the definitions around it: `Cart.total`."""
    names = []
    while place >= 0:
        symbol = outline.symbols[place]
        names.append(f"{symbol.owner}.{symbol.name}" if symbol.owner else symbol.name)
        place = symbol.parent
    return ".".join(reversed(names))
