"""What C and C++ have in common: declarators and `#include`.

A declarator wraps its name the way an expression would use it: `int (*table[3])(int)` is a function_declarator
around a pointer_declarator around an array_declarator around `table`. What stands nearest to the name decides
what it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from herdr.context.graph.language import Files, one_line, plain_signature, text_of
from herdr.context.graph.languages.paths import ending, nearest, normal
from herdr.context.graph.outline import SIGNATURE_MAX, Import, Kind

NOT_NAMES = frozenset({
    "if", "else", "for", "while", "do", "switch", "case", "return", "sizeof", "alignof", "typeof",
    "defined", "catch", "static_cast", "dynamic_cast", "const_cast", "reinterpret_cast", "decltype",
    "noexcept", "typeid", "static_assert", "_Static_assert", "__attribute__", "void", "int", "char",
    "short", "long", "float", "double", "signed", "unsigned", "bool", "auto", "const", "static", "extern",
    "struct", "union", "enum", "typedef",
})  # fmt: skip
"""What stands where a function's name would, also after text that the parser could not read."""

FILE_SCOPE = """
(translation_unit (declaration declarator: (_) @name @definition.variable))
(declaration_list (declaration declarator: (_) @name @definition.variable))
(linkage_specification (declaration declarator: (_) @name @definition.variable))
(preproc_if (declaration declarator: (_) @name @definition.variable))
(preproc_ifdef (declaration declarator: (_) @name @definition.variable))
(preproc_elif (declaration declarator: (_) @name @definition.variable))
(preproc_else (declaration declarator: (_) @name @definition.variable))
(ERROR (declaration declarator: (_) @name @definition.variable))
"""
"""Declarations outside of functions; those under a condition are told apart by `file_scope`."""

COMMON_QUERY = f"""
{FILE_SCOPE}
(function_definition declarator: (_) @name) @definition.function
(field_declaration declarator: (_) @name @definition.field)
(struct_specifier name: (_) @name body: (_)) @definition.struct
(union_specifier name: (_) @name body: (_)) @definition.union
(enum_specifier name: (_) @name body: (_)) @definition.enum
(enumerator name: (identifier) @name) @definition.constant
(type_definition type: (struct_specifier !name body: (_)) declarator: (_) @name) @definition.struct
(type_definition type: (union_specifier !name body: (_)) declarator: (_) @name) @definition.union
(type_definition type: (enum_specifier !name body: (_)) declarator: (_) @name) @definition.enum
(type_definition type: (_) declarator: (_) @name @definition.type)
(preproc_def name: (identifier) @name value: (_)) @definition.macro
(preproc_function_def name: (identifier) @name) @definition.macro
(call_expression function: (identifier) @name) @call
(call_expression function: (field_expression
  argument: (_) @receiver field: (field_identifier) @name)) @call
(preproc_include) @import
"""

SPECIFIERS_MAX = 12  # words at a declaration's beginning; its list of names may have thousands
DEFINING_MAX = (
    30  # files with one name; more of them are programs of their own, such as tests with their `main`
)
REACHED_MAX = 50  # headers behind one file, nearest first, among which one is looked for
_CLIMB_MAX = 64  # conditions around one declaration; each step up costs a search from the root
_DECLARING = frozenset({"declaration", "field_declaration", "type_definition"})
_AROUND_DECLARATIONS = frozenset({"declaration", "template_declaration", "linkage_specification"})
_AROUND_NAMES = {
    "function_declarator": True,
    "pointer_declarator": False,
    "array_declarator": False,
    "reference_declarator": False,
}
_WRAPPERS = frozenset(
    {"parenthesized_declarator", "reference_declarator", "attributed_declarator", "variadic_declarator"}
)
_SOURCES = frozenset({"c", "cc", "cpp", "cxx", "c++"})
_INCLUDE_FOLDERS = frozenset({"", "include", "includes", "inc"})


class Declared(NamedTuple):
    """What a declarator declares."""

    name: Node
    is_function: bool


def declared(node: Node) -> Declared:
    """Return the name in a declarator, and whether it is a function's."""
    is_function = False
    while node.type != "operator_cast":
        is_function = _AROUND_NAMES.get(node.type, is_function)
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in _WRAPPERS:
            inner = next((n for n in node.named_children if not n.type.startswith("attribute")), None)
        if inner is None:
            break
        node = inner
    return Declared(node, is_function or node.type == "operator_cast")


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell prototypes and constants from variables, and a tag's alias of the same name from a type."""
    if kind == "type":
        return None if _repeats_tag(node) else kind
    if kind not in ("variable", "field"):
        return kind
    scope = file_scope(node) if kind == "variable" else ""
    if scope is None:
        return None
    if declared(node).is_function:
        return "function"
    if scope == "ERROR":
        return None  # it may as well be a local one of a function that was not understood
    return "constant" if kind == "variable" and _is_constant(node) else kind


def file_scope(node: Node) -> str | None:
    """Return what a declaration, which may stand under `#if`, is in; None inside of functions and classes."""
    above = node.parent
    for _ in range(_CLIMB_MAX):
        if above is None or not (above.type.startswith("preproc_") or above.type in _AROUND_DECLARATIONS):
            break
        above = above.parent
    if above is None or (above.type == "ERROR" and above.parent and above.parent.parent):
        return None
    return above.type if above.type in ("translation_unit", "declaration_list", "ERROR") else None


def _repeats_tag(node: Node) -> bool:
    """Tell whether this is the second `cart` of `typedef struct cart { … } cart`."""
    tagged = node.parent.child_by_field_name("type") if node.parent else None
    if tagged is None or tagged.child_by_field_name("body") is None:
        return False
    tag = text_of(tagged.child_by_field_name("name"))
    return tag in ("", text_of(node))


def _is_constant(node: Node) -> bool:
    inner = node.child_by_field_name("declarator") if node.type == "init_declarator" else node
    words = specifiers(inner if inner is not None and inner.type == "pointer_declarator" else node.parent)
    return not words.isdisjoint(("const", "constexpr", "constinit"))


def specifiers(node: Node | None) -> set[str]:
    """Return the words before a declaration's type and name: `static`, `inline`, `const`."""
    kinds = ("storage_class_specifier", "type_qualifier")
    count = min(node.child_count, SPECIFIERS_MAX) if node else 0
    first = (node.child(n) for n in range(count)) if node else ()
    return {text_of(part) for part in first if part is not None and part.type in kinds}


def is_internal(node: Node) -> bool:
    """Tell whether linkage keeps a definition within its file; `static inline` is how headers define."""
    words = specifiers(node.parent if node.parent and node.parent.type in _DECLARING else node)
    return "static" in words and "inline" not in words


def signature(node: Node) -> str:
    """Return a definition without its body or its list of values, and with its type."""
    above = node.parent
    if node.type == "type_definition":
        return _composed(node, node.child_by_field_name("declarator"))
    if above is not None and above.type in _DECLARING and not node.type.endswith("_specifier"):
        return _composed(above, node)
    if node.type == "preproc_function_def":
        value = node.child_by_field_name("value")
        head = one_line(node, (value.start_byte if value else node.end_byte) - node.start_byte)
        return head.rstrip("\\ ")
    return plain_signature(node)


def _composed(whole: Node, part: Node | None) -> str:
    """Return one declarator behind the words that it shares with others, without the bodies of types."""
    first = whole.child_by_field_name("declarator")
    if first is None or part is None:
        return one_line(whole, whole.end_byte - whole.start_byte)
    tagged = whole.child_by_field_name("type")
    body = tagged.child_by_field_name("body") if tagged else None
    end = _without_values(whole, part)
    if body is None and first == part:
        return one_line(whole, end - whole.start_byte)
    words = one_line(whole, (body or first).start_byte - whole.start_byte)
    text = f"{words} {one_line(part, end - part.start_byte)}"
    return text if len(text) <= SIGNATURE_MAX else f"{text[: SIGNATURE_MAX - 1]}…"


def _without_values(whole: Node, part: Node) -> int:
    """Return where a declarator ends if its braces are left out."""
    value = part.child_by_field_name("value")
    if value is None:
        value = whole.child_by_field_name("default_value")
        if value is None or part.next_named_sibling != value:
            return part.end_byte
    body = value if value.type == "initializer_list" else value.child_by_field_name("body")
    return body.start_byte if body else value.end_byte


def read_imports(node: Node) -> Iterator[Import]:
    """Yield the header of one `#include`; that of `<…>` keeps its brackets, since it is looked up elsewhere."""
    path = node.child_by_field_name("path")
    if path is not None and path.type in ("string_literal", "system_lib_string"):
        yield Import(text_of(path).strip('"'), node.start_point.row + 1, "*")


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the header's file.

    Include paths are the build's secret, so a header that is not beside the including file counts where one
    file alone (or one nearer to the including file than all others) ends in its whole path; a header in `<…>`
    only from a folder of headers.
    """
    module, folder = found.module, path.rpartition("/")[0]
    if module.startswith("<"):
        return nearest([p for p in ending(module[1:-1], files) if _is_header_root(p, module)], folder)
    beside = normal(f"{folder}/{module}")
    if beside is not None and files.has(beside):
        return (beside,)
    return () if module.startswith(".") else nearest(ending(module, files), folder)


def _is_header_root(path: str, module: str) -> bool:
    root = path[: len(path) - len(module) + 2].rstrip("/")
    return root.rpartition("/")[2] in _INCLUDE_FOLDERS


def keys(path: str) -> Iterable[str]:
    """Return the last parts of what includes the file; a header without ending may stand in `<…>`."""
    name = path.rpartition("/")[2]
    parts = name.split(".")
    return (parts[-2],) if len(parts) > 1 else (name, f"<{name}>", f"{name}>")


def counterparts(path: str, files: Files, defining: Sequence[str]) -> Sequence[str]:
    """Return the files that define what a header declares, and the headers that declare what a file defines.

    With linkage that reaches other files, one name is one function wherever a file includes its header.
    """
    if len(defining) > DEFINING_MAX:
        return ()
    return [p for p in defining if p != path and (_reaches(p, path, files) or _reaches(path, p, files))]


def _reaches(path: str, header: str, files: Files) -> bool:
    """Tell whether a file includes a header, itself or through others."""
    if header.rpartition(".")[2] in _SOURCES:
        return False
    reached = [path]
    for at in reached:  # grows on the way
        outline = files.outline(at)
        for found in outline.imports if outline is not None else ():
            for file in find_module(found, at, files):
                if file == header:
                    return True
                if file not in reached and len(reached) < REACHED_MAX:
                    reached.append(file)
    return False
