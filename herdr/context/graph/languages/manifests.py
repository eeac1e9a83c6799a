"""Files that say what others call their folder: a Go module's path, a Rust crate's name. They define nothing."""

import re
import tomllib
from collections.abc import Iterator

import tree_sitter_go
import tree_sitter_rust
from tree_sitter import Node

from herdr.context.graph.language import Language
from herdr.context.graph.outline import Import, Outline

_MODULE = re.compile(rb'^\s*module\s+(?:"([^"\n]+)"|`([^`\n]+)`|([^\s"`/(][^\s"`(]*))', re.MULTILINE)


def read_go_module(source: bytes) -> Outline:
    """Return the module's path as the package. https://go.dev/ref/mod#go-mod-file-module"""
    found = _MODULE.search(source)
    name = next((group for group in found.groups() if group), b"") if found else b""
    return Outline("go.mod", source.count(b"\n"), package=name.decode(errors="replace"), broken=not name)


def read_cargo(source: bytes) -> Outline:
    """Return the library's name as sources write it; empty where the file only lists a workspace's crates.

    https://doc.rust-lang.org/cargo/reference/cargo-targets.html#the-name-field
    """
    lines = source.count(b"\n")
    try:
        content = tomllib.loads(source.decode(errors="replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return Outline("cargo", lines, broken=True)
    names = (section.get("name") for section in _tables(content, "lib", "package"))
    name = next((name for name in names if isinstance(name, str)), "")
    return Outline("cargo", lines, package=name.replace("-", "_"))


def _tables(content: dict[str, object], *names: str) -> Iterator[dict[str, object]]:
    for name in names:
        if isinstance(table := content.get(name), dict):
            yield table


def _no_imports(_node: Node) -> tuple[Import, ...]:
    return ()


GO_MODULE = Language(
    name="go.mod",
    suffixes=(),
    grammar=tree_sitter_go.language,
    query="",
    find_module=lambda _found, _path, _files: (),
    read_imports=_no_imports,
    filenames=("go.mod",),
    read=read_go_module,
)

CARGO = GO_MODULE._replace(
    name="cargo", grammar=tree_sitter_rust.language, filenames=("Cargo.toml",), read=read_cargo
)
