"""C. A prototype and its definition are two symbols of one name; macro bodies are text, not calls."""

import re

import tree_sitter_c
from tree_sitter import Node

from herdr.context.graph.language import Language, text_of
from herdr.context.graph.languages import c_family, c_macros, cpp

_CPP = re.compile(
    rb"""^[ \t]*(?:
        namespace\b | template[ \t]*< | using[ \t]+\w | (?:public|private|protected)[ \t]*: | constexpr\b
        | class[ \t]+\w+(?:[ \t]+\w+)?[ \t]*[;:{\r\n] | enum[ \t]+class\b | virtual[ \t]
        | \#[ \t]*include[ \t]*<\w+>
    ) | \bstd::\w""",
    re.MULTILINE | re.VERBOSE,
)


def is_cpp(source: bytes) -> bool:
    """Tell whether a `.h` is C++: its words at the start of a line, or a header without an ending."""
    return _CPP.search(source) is not None


def spelling(node: Node) -> str:
    """Return the name in a declarator."""
    name = text_of(node if node.type == "identifier" else c_family.declared(node).name)
    return "" if name in c_family.NOT_NAMES else name


LANGUAGE = Language(
    name="c",
    suffixes=(".c", ".h"),
    grammar=tree_sitter_c.language,
    query=c_family.COMMON_QUERY,
    find_module=c_family.find_module,
    read_imports=c_family.read_imports,
    keys=c_family.keys,
    counterparts=c_family.counterparts,
    signature=c_family.signature,
    exported=lambda _name, node: not c_family.is_internal(node),
    refine=c_family.refine,
    prepare=c_macros.without_macros,
    spelling=spelling,
    instead=(is_cpp, cpp.LANGUAGE),
    self_names=frozenset(),
    callable_kinds=frozenset({"function", "macro", "field"}),  # a field may hold a function's address
)
