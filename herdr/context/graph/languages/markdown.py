"""Markdown: its headings, nested by level."""

import re

import tree_sitter_markdown
from tree_sitter import Node

from herdr.context.graph.language import Language, text_of

QUERY = """
(document (section (atx_heading heading_content: (_) @name) @definition.heading))
(section (section (atx_heading heading_content: (_) @name) @definition.heading))
(document (section (setext_heading heading_content: (_) @name) @definition.heading))
(section (section (setext_heading heading_content: (_) @name) @definition.heading))
"""
"""Not those in lists and quotes, which are no parts of the document."""

_SPACE = re.compile(r"\s+")
_CLOSING = re.compile(r"\s+#+$")


def spelling(node: Node) -> str:
    """Return a heading's text as it is written, on one line."""
    return _CLOSING.sub("", _SPACE.sub(" ", text_of(node)).strip())


def level(node: Node) -> int:
    """Return 1 to 6."""
    marks = [child.type for child in node.children if child.type.startswith(("atx_h", "setext_h"))]
    found = re.search(r"_h(\d)", marks[0]) if marks else None
    return int(found[1]) if found else 6


def signature(node: Node) -> str:
    """Return the heading behind as many `#` as it is deep."""
    return f"{'#' * level(node)} {spelling(node.child_by_field_name('heading_content') or node)}"


LANGUAGE = Language(
    name="markdown",
    suffixes=(".md", ".markdown", ".mdx"),
    grammar=tree_sitter_markdown.language,
    query=QUERY,
    find_module=lambda _found, _path, _files: (),
    read_imports=lambda _node: (),
    keys=lambda _path: (),
    signature=signature,
    spelling=spelling,
    level=level,
)
