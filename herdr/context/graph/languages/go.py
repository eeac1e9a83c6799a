"""Go."""

import re
from collections.abc import Iterable, Iterator, Sequence

import tree_sitter_go
from tree_sitter import Node

from herdr.context.graph.language import Files, Language, first_line, plain_signature, text_of
from herdr.context.graph.outline import Import, Kind

QUERY = """
(package_clause (package_identifier) @package)
(import_spec) @import
(function_declaration name: (identifier) @name) @definition.function
(method_declaration name: (field_identifier) @name) @definition.method
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(type_spec type: (struct_type (field_declaration_list
  (field_declaration name: (field_identifier) @name) @definition.field)))
(type_spec type: (interface_type (method_elem name: (field_identifier) @name) @definition.method))
(source_file (const_declaration (const_spec (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition.variable)))
(call_expression function: (identifier) @name) @call
(call_expression function: (selector_expression
  operand: (_) @receiver field: (field_identifier) @name)) @call
(call_expression function: (parenthesized_expression (unary_expression operand: (identifier) @name))) @call
((call_expression function: (index_expression operand: (identifier) @name index: (_) @type)) @call
  (#match? @type "^([A-Z*]|u?int|string|bool|float|complex|byte|rune|any|error)"))
((call_expression function: (index_expression
  operand: (selector_expression operand: (_) @receiver field: (_) @name) index: (_) @type)) @call
  (#match? @type "^([A-Z*]|u?int|string|bool|float|complex|byte|rune|any|error)"))
(type_conversion_expression type: (generic_type type: (type_identifier) @name)) @call
(type_conversion_expression type: (generic_type
  type: (qualified_type package: (_) @receiver name: (_) @name))) @call
(composite_literal type: (type_identifier) @name) @call
(composite_literal type: (qualified_type package: (_) @receiver name: (_) @name)) @call
(composite_literal type: (generic_type type: (type_identifier) @name)) @call
(composite_literal type: (generic_type
  type: (qualified_type package: (_) @receiver name: (_) @name))) @call
"""
"""A composite literal counts as a call of its type: it is how a value of it is made.

To the grammar, `f[int]()` is an element of a map of functions, so the index must look like a type, and `f[K](x)`
is a conversion to a generic type.
"""

_VERSION = re.compile(r"v\d+")
_NO_NAME = re.compile(r"[^\w].*", re.DOTALL)
_WORDS = {"type_spec": "type ", "type_alias": "type ", "const_spec": "const ", "var_spec": "var "}


def read_imports(node: Node) -> Iterator[Import]:
    """Yield what one import brings in, under the name that calls go through."""
    module = text_of(node.child_by_field_name("path"))[1:-1]
    line = node.start_point.row + 1
    alias = text_of(node.child_by_field_name("name"))
    if alias == ".":
        yield Import(module, line, "*")
    elif module:
        yield Import(module, line, "", "" if alias == "_" else alias or assumed_name(module))


def assumed_name(module: str) -> str:
    """Return the name that the package at an import path most likely gives itself.

    As `ImportPathToAssumedName` of golang.org/x/tools/internal/imports has it.
    """
    parts = module.split("/")
    if len(parts) > 1 and _VERSION.fullmatch(parts[-1]):
        parts.pop()
    return _NO_NAME.sub("", parts[-1].removeprefix("go-"))


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the files of the package at an import path, without its tests."""
    for folder in _folders(found.module, path, files):
        if inside := [f for f in files.folder(folder) if f.endswith(".go") and not f.endswith("_test.go")]:
            return inside
    return ()


def _folders(module: str, path: str, files: Files) -> Iterator[str]:
    """Yield where a package may be: in a module of the workspace, the longest path first, or vendored."""
    parts = module.split("/")
    if "." in parts[0]:
        yield f"vendor/{module}"
    for length in range(len(parts), 0, -1):
        for root in _roots("/".join(parts[:length]), path, files):
            yield "/".join(part for part in (root, *parts[length:]) if part)
    # without a manifest, a single folder's name would be a guess, and the standard library has no dot
    if "." in parts[0] and not files.named("go.mod"):
        for start in range(len(parts) - 1):
            yield "/".join(parts[start:])
            yield "/".join(("src", *parts[start:]))


def _roots(module: str, path: str, files: Files) -> Iterable[str]:
    """Return the folders of a module, that of the importing file first."""
    manifests = (file for file in files.packaged(module) if file.rpartition("/")[2] == "go.mod")
    roots = [file.rpartition("/")[0] for file in manifests]
    return sorted(roots, key=lambda root: not path.startswith(f"{root}/"))


def keys(path: str) -> Iterable[str]:
    """Return the folder's name."""
    folder = path.rpartition("/")[0]
    return (folder.rpartition("/")[2],) if folder else ()


def known_keys(path: str, files: Files) -> Sequence[str]:
    """Return the package's name: that of a module's root stands in no folder's name."""
    outline = files.outline(path)
    return (outline.package,) if outline is not None and outline.package else ()


def neighbours(path: str, files: Files) -> Sequence[str]:
    """Return the other files of the package; its tests only for a test."""
    outline = files.outline(path)
    if outline is None:
        return ()
    folder, test = path.rpartition("/")[0], path.endswith("_test.go")
    return [
        file
        for file in files.packaged(outline.package)
        if file != path
        and file.rpartition("/")[0] == folder
        and file.endswith(".go")
        and (test or not file.endswith("_test.go"))
    ]


def spelling(node: Node) -> str:
    """Return a name; the blank one defines nothing."""
    name = text_of(node)
    return "" if name == "_" else name


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell structs and interfaces from other types."""
    if kind == "type" and node.type == "type_spec":
        written = node.child_by_field_name("type")
        if written is not None and written.type == "struct_type":
            return "struct"
        if written is not None and written.type == "interface_type":
            return "interface"
    return kind


def signature(node: Node) -> str:
    """Return a function up to its body, or the first line of anything else with its keyword."""
    if node.type in ("function_declaration", "method_declaration"):
        return plain_signature(node)
    return _WORDS.get(node.type, "") + first_line(node)


def bases(node: Node) -> tuple[str, ...]:
    """Return the types that a struct or an interface embeds."""
    written = node.child_by_field_name("type") if node.type == "type_spec" else None
    if written is None or written.type not in ("struct_type", "interface_type"):
        return ()
    return tuple(name for name in map(_name, _embedded(written)) if name)


def _embedded(written: Node) -> Iterator[Node | None]:
    inside = written if written.type == "interface_type" else written.named_child(0)
    for part in inside.named_children if inside is not None else ():
        if part.type == "type_elem" and part.named_child_count == 1:
            yield part.named_child(0)
        elif part.type == "field_declaration" and part.child_by_field_name("name") is None:
            yield part.child_by_field_name("type")


def owner(node: Node) -> str:
    """Return the type that a method's receiver has."""
    parameter = _receiver(node)
    return "" if parameter is None else _name(parameter.child_by_field_name("type")).rpartition(".")[2]


def self_name(node: Node) -> str:
    """Return what a method calls its receiver."""
    parameter = _receiver(node)
    name = "" if parameter is None else text_of(parameter.child_by_field_name("name"))
    return "" if name == "_" else name


def _receiver(node: Node) -> Node | None:
    written = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    parameters = written.named_children if written is not None else ()
    return next((part for part in parameters if part.type == "parameter_declaration"), None)


def _name(node: Node | None) -> str:
    """Return a type's dotted name without pointer and type arguments; empty for types without a name."""
    while node is not None and node.type in ("pointer_type", "parenthesized_type", "generic_type"):
        node = node.named_child(0)
    return text_of(node) if node is not None and node.type in ("type_identifier", "qualified_type") else ""


LANGUAGE = Language(
    name="go",
    suffixes=(".go",),
    grammar=tree_sitter_go.language,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    keys=keys,
    known_keys=known_keys,
    neighbours=neighbours,
    signature=signature,
    bases=bases,
    exported=lambda name, _node: name[:1].isupper(),
    owner=owner,
    self_name=self_name,
    refine=refine,
    spelling=spelling,
)
