"""Pure: what a language's module declares. Adding a language is one such module and a fixture.

A query's captures say what its nodes are: `@definition.KIND` with `@name`, `@call` with `@name` and perhaps
`@receiver`, `@import` (one statement), `@package` (the text that names it), `@export` (a name that is given out).
https://tree-sitter.github.io/tree-sitter/using-parsers/queries/
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from tree_sitter import Node

from herdr.context.graph.outline import SIGNATURE_MAX, Import, Kind, Outline

_SPACE = re.compile(r"\s+")
_COMMENT_SIGNS = re.compile(rb"#|//|/\*")
_BROKEN_OPEN = re.compile(r"([(\[])\s*\n\s*")
_BROKEN_CLOSE = re.compile(r",?\s*\n\s*([)\]])")
_LINKS = re.compile(r"\s*(?:->|::|\?\.|!\.|\.)\s*")
_DOTTED = re.compile(r"[\w$@]+(?:\.[\w$@]+)*")


class Files(Protocol):
    """What the resolution of imports may ask about the workspace. Paths are relative, with `/`."""

    def has(self, path: str) -> bool:
        """Tell whether this file is there."""
        ...

    def named(self, name: str) -> Sequence[str]:
        """Return the files with this last part (`Cart.java`), sorted."""
        ...

    def folder(self, path: str) -> Sequence[str]:
        """Return the files directly in a folder, sorted; empty when there is no such folder."""
        ...

    def outline(self, path: str) -> Outline | None:
        """Return a file's outline, if it has one."""
        ...

    def packaged(self, name: str) -> Sequence[str]:
        """Return the files that say they belong to this package or namespace, sorted."""
        ...


ReadImports = Callable[[Node], Iterable[Import]]
FindModule = Callable[[Import, str, Files], Sequence[str]]
"""Which files an import in the file at this path brings in; empty when it leads out of the workspace."""

Keys = Callable[[str], Iterable[str]]
"""Under which last parts of a module name other files may import the file at this path."""

Related = Callable[[str, Files], Sequence[str]]
"""Something about the file at this path that other files decide, too."""


Counterparts = Callable[[str, Files, Sequence[str]], Sequence[str]]
"""Which files, of those that define some name, define the same thing under it as the file at this path."""


def no_counterparts(_path: str, _files: Files, _defining: Sequence[str]) -> Sequence[str]:
    """For languages in which nothing is declared in one file and defined in another."""
    return ()


def nothing_related(_path: str, _files: Files) -> Sequence[str]:
    """For languages in which a file's path and imports say everything."""
    return ()


def plain_signature(node: Node) -> str:
    """Return a definition up to its body."""
    return one_line(node, head_length(node))


def head_length(node: Node, field: str = "body") -> int:
    """Return how many bytes of a definition stand before its body and the comments in front of that."""
    body = node.child_by_field_name(field)
    if body is None:
        return node.end_byte - node.start_byte
    last = body.prev_sibling
    while last is not None and last.is_extra:
        last = last.prev_sibling
    return (body.start_byte if last is None else last.end_byte) - node.start_byte


def first_line(node: Node, start: int = 0) -> str:
    """Return the first line of a definition that has no body: of a variable, not all that it holds."""
    text = (node.text or b"")[start:]
    return one_line(node, start + len(text.partition(b"\n")[0]), start)


def one_line(node: Node, end: int, start: int = 0) -> str:
    """Return the bytes from `start` to `end` of a node as one line of at most SIGNATURE_MAX characters.

    Comments are left out, and so is what only makes several lines look well.
    """
    head = (node.text or b"")[start : min(end, start + 8 * SIGNATURE_MAX)]
    if _COMMENT_SIGNS.search(head):
        head = _without_comments(node, head, node.start_byte + start)
    text = _BROKEN_CLOSE.sub(r"\1", _BROKEN_OPEN.sub(r"\1", head.decode(errors="replace")))
    text = _SPACE.sub(" ", text).strip().rstrip("{:=; ")
    return text if len(text) <= SIGNATURE_MAX else f"{text[: SIGNATURE_MAX - 1]}…"


def _without_comments(node: Node, head: bytes, at: int) -> bytes:
    """Return the text that begins at a byte of the file, each comment as a space."""
    waiting, cuts = [node], []
    while waiting:
        for child in waiting.pop().children:
            if child.start_byte >= at + len(head):
                break
            if "comment" in child.type:
                cuts.append((child.start_byte - at, child.end_byte - at))
            elif child.end_byte > at and child.child_count:
                waiting.append(child)
    for first, last in sorted(cuts, reverse=True):
        head = head[: max(first, 0)] + b" " + head[max(last, 0) :]
    return head


def no_bases(_node: Node) -> tuple[str, ...]:
    """For languages in which nothing is inherited."""
    return ()


def text_of(node: Node | None) -> str:
    """Return a node's text; empty for none."""
    return "" if node is None or node.text is None else node.text.decode(errors="replace")


def first_named(node: Node | None) -> Node | None:
    """Return the first part of a node that is no mere sign; None if it has none, as in code that is not finished."""
    return node.named_child(0) if node is not None and node.named_child_count else None


def dotted(text: str) -> str:
    """Return a chain of names with dots between them (`a->b` is `a.b`), or `?` for anything else."""
    text = _LINKS.sub(".", text.strip())
    if text == "super()":
        return "super"
    return text if _DOTTED.fullmatch(text) else "?"


def dotted_node(node: Node) -> str:
    """Return what `dotted` makes of a node's text."""
    return dotted(text_of(node))


def stem_keys(path: str) -> Iterable[str]:
    """Return the file's own name without its ending, and its folder's: enough for most languages."""
    folder, _, name = path.rpartition("/")
    yield name.partition(".")[0]
    if folder:
        yield folder.rpartition("/")[2]


class Language(NamedTuple):
    """One language. Only the first six fields have no useful default."""

    name: str
    suffixes: tuple[str, ...]
    grammar: Callable[[], object]
    query: str
    find_module: FindModule
    read_imports: ReadImports
    filenames: tuple[str, ...] = ()
    """Whole names of files that have no telling ending."""
    keys: Keys = stem_keys
    signature: Callable[[Node], str] = plain_signature
    bases: Callable[[Node], tuple[str, ...]] = no_bases
    exported: Callable[[str, Node], bool] = lambda _name, _node: True
    owner: Callable[[Node], str] = lambda _node: ""
    """The type that a definition belongs to though it stands outside of it."""
    refine: Callable[[Kind, Node], Kind | None] = lambda kind, _node: kind
    """Corrects a definition's kind; None drops it."""
    prepare: Callable[[bytes], bytes] = lambda source: source
    """Overwrites with spaces what the grammar cannot read (C's macros); every byte keeps its place."""
    spelling: Callable[[Node], str] = text_of
    """The name in what a query captured as `@name`, where that is more than a name; empty drops it."""
    receiver: Callable[[Node], str] = dotted_node
    """What a call's `@receiver` is in an outline: names with dots between them, or `?`."""
    instead: tuple[Callable[[bytes], bool], "Language"] | None = None
    """What a file with this ending may be written in as well, and what tells it from its bytes (`.h`)."""
    level: Callable[[Node], int] | None = None
    """How deep a heading is, where definitions reach to the next one of their level (Markdown)."""
    scripts: bool = False
    """Whether files that neither import nor export are scripts, which see each other's top-level names."""
    self_names: frozenset[str] = frozenset({"self", "cls", "this"})
    """Receivers that mean the object or class that the calling method belongs to."""
    annotated: bool = False
    """Whether annotations are a definition's first part, so that it stands where its name does."""
    self_name: Callable[[Node], str] = lambda _node: ""
    """What a method calls its own object where it chooses the name itself (Go); its calls then say `self`."""
    neighbours: Related = nothing_related
    """The other files whose top-level names are seen in a file without an import: those of its package."""
    known_keys: Related = nothing_related
    """Further `keys` of a file, by what files say: a package's own name, a crate's name in its manifest."""
    counterparts: Counterparts = no_counterparts
    """Where a definition stands a second time: C's prototype and the function behind it."""
    read: Callable[[bytes], Outline] | None = None
    """Reads a file that needs no grammar: a manifest that says what its folder is called."""
    callable_kinds: frozenset[str] = frozenset(
        {"function", "method", "constructor", "class", "struct", "macro", "property", "enum", "type"}
    )
    """Kinds that a call can mean; a call of a constant is a call of what it holds, which is not known."""
