"""C#."""

import re
from collections.abc import Iterator, Sequence

import tree_sitter_c_sharp
from tree_sitter import Node

from herdr.context.graph.language import (
    Files,
    Language,
    dotted,
    head_length,
    one_line,
    text_of,
)
from herdr.context.graph.outline import Import, Kind

_NAMES = ("(identifier) @name", "(generic_name (identifier) @name)")
_CALLED = """
(invocation_expression function: {0}) @call
(invocation_expression function: (member_access_expression expression: _ @receiver name: {0})) @call
(invocation_expression function: (conditional_access_expression
  condition: _ @receiver (member_binding_expression name: {0}))) @call
(object_creation_expression type: {0}) @call
(object_creation_expression type: (qualified_name qualifier: (_) @receiver name: {0})) @call
(variable_declaration type: {0} (variable_declarator (implicit_object_creation_expression))) @call
(property_declaration type: {0} value: (implicit_object_creation_expression)) @call
"""

QUERY = """
(file_scoped_namespace_declaration name: (_) @package)
(namespace_declaration name: (_) @package)
(file_scoped_namespace_declaration name: (_) @name @definition.namespace)
(namespace_declaration name: (_) @name @definition.namespace)
(using_directive) @import
(class_declaration name: (_) @name) @definition.class
(record_declaration name: (_) @name) @definition.class
(record_declaration (parameter_list (parameter name: (identifier) @name) @definition.property))
(struct_declaration name: (_) @name) @definition.struct
(interface_declaration name: (_) @name) @definition.interface
(enum_declaration name: (_) @name) @definition.enum
(enum_member_declaration name: (_) @name) @definition.constant
(delegate_declaration name: (_) @name) @definition.type
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.constructor
(local_function_statement name: (_) @name) @definition.function
(property_declaration name: (_) @name) @definition.property
(indexer_declaration "this" @name) @definition.property
(event_declaration name: (_) @name) @definition.property
(event_field_declaration (variable_declaration (variable_declarator name: (_) @name))) @definition.field
(field_declaration (variable_declaration (variable_declarator name: (_) @name))) @definition.field
(constructor_initializer ["base" "this"] @name) @call
""" + "".join(_CALLED.format(name) for name in _NAMES)
"""A namespace is only the line that names it: with it around them, the names in a file would depend on which
of its two forms the file is written in.
"""

_CONDITIONS = re.compile(rb"^[ \t]*#[ \t]*(?:if|elif|else|endif)\b[^\r\n]*", re.MULTILINE)
_FIELDS = frozenset({"field_declaration", "event_field_declaration"})
_PROPERTIES = frozenset({"property_declaration", "indexer_declaration", "event_declaration"})
_LISTED = frozenset({"identifier", "qualified_name", "generic_name", "alias_qualified_name"})
_OPEN = frozenset({"interface_declaration", "compilation_unit", "namespace_declaration"})
"""What gives its members more than private access. https://learn.microsoft.com/dotnet/csharp/language-reference/
keywords/accessibility-levels"""


def prepare(source: bytes) -> bytes:
    """Overwrite the lines that compile one thing or another: the grammar cannot read them everywhere.

    Both things are then read, one after the other.
    """
    return _CONDITIONS.sub(lambda found: b" " * len(found[0]), source)


def read_imports(node: Node) -> Iterator[Import]:
    """Yield what a `using` names: a namespace or a class's members, or under an alias one class."""
    alias = node.child_by_field_name("name")
    target = text_of(node.named_child(node.named_child_count - 1)) if node.named_child_count else ""
    text = "".join(target.partition("<")[0].split()).removeprefix("global::")
    line = node.start_point.row + 1
    if alias is None:
        yield Import(text, line, "*")
        return
    module, _, name = text.rpartition(".")
    yield Import(module or name, line, name if module else "", text_of(alias))


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the files of a namespace, or those of a class and all that is partial of it.

    The name may be short by one of the namespaces that are around it.
    """
    whole = found.module if found.name in ("", "*") else f"{found.module}.{found.name}"
    inside = _meant(whole, path, files)
    around = "" if inside else _namespace(path, files)
    while around and not inside:
        inside = _meant(f"{around}.{whole}", path, files)
        around = around.rpartition(".")[0]
    return inside


def _meant(whole: str, path: str, files: Files) -> Sequence[str]:
    if inside := _sources(whole, files):
        return [file for file in inside if file != path]
    namespace, _, name = whole.rpartition(".")
    while namespace:
        if inside := [file for file in _sources(namespace, files) if _defines(file, name, files)]:
            return inside
        namespace, _, name = namespace.rpartition(".")
    return ()


def _sources(namespace: str, files: Files) -> list[str]:
    return [file for file in files.packaged(namespace) if file.endswith(".cs")]


def _defines(path: str, name: str, files: Files) -> bool:
    outline = files.outline(path)
    return outline is not None and any(
        s.name == name and s.parent < 0 and s.kind != "namespace" for s in outline.symbols
    )


def _namespace(path: str, files: Files) -> str:
    outline = files.outline(path)
    return "" if outline is None else outline.package


def known_keys(path: str, files: Files) -> Sequence[str]:
    """Return the last part of the file's namespace, which need not be its folder's name."""
    namespace = _namespace(path, files)
    return (namespace.rpartition(".")[2],) if namespace else ()


def neighbours(path: str, files: Files) -> Sequence[str]:
    """Return the other files of the namespace and of those around it."""
    namespace = _namespace(path, files)
    found: list[str] = []
    while namespace:
        found += [file for file in _sources(namespace, files) if file != path]
        namespace = namespace.rpartition(".")[0]
    return found


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell constants by their modifier, and structs among the records."""
    if kind == "field" and "const" in _modifiers(node):
        return "constant"
    if node.type == "record_declaration" and any(part.type == "struct" for part in node.children):
        return "struct"
    return kind


def _modifiers(node: Node) -> list[str]:
    return [text_of(part) for part in node.children if part.type == "modifier"]


def exported(_name: str, node: Node) -> bool:
    """Tell what other files can name: neither private nor, as members are without a word, private by default."""
    if node.type in ("enum_member_declaration", "parameter"):
        return True
    modifiers = set(_modifiers(node))
    if modifiers & {"public", "internal", "protected"}:
        return "private" not in modifiers
    if "private" in modifiers or "file" in modifiers or node.type == "local_function_statement":
        return False
    around = node.parent
    while around is not None and around.type == "declaration_list":
        around = around.parent
    return around is None or around.type in _OPEN


def bases(node: Node) -> tuple[str, ...]:
    """Return the class and the interfaces after the colon."""
    listed = next((part for part in node.children if part.type == "base_list"), None)
    if listed is None or node.type == "enum_declaration":
        return ()
    typed = (part.child_by_field_name("type") or part for part in listed.named_children)
    return tuple(text_of(part).partition("<")[0].rstrip() for part in typed if part.type in _LISTED)


def receiver(node: Node) -> str:
    """Return a chain of names without type arguments: `Box` for `Box<int>`."""
    inner = node.named_child(0) if node.type == "generic_name" else None
    return dotted(text_of(inner or node).rstrip("!"))


def signature(node: Node) -> str:
    """Return a definition without attributes and body; of a field, the first line after them."""
    if node.type in _LISTED:
        return f"namespace {text_of(node)}"
    start = 0
    for part in node.children:
        if part.type != "attribute_list" and not part.is_extra:
            start = part.start_byte - node.start_byte
            break
    if node.type in _FIELDS:
        line = (node.text or b"")[start:].partition(b"\n")[0]
        return one_line(node, start + len(line), start)
    bodies = ("body", "accessors", "value") if node.type in _PROPERTIES else ("body",)
    field = next((field for field in bodies if node.child_by_field_name(field) is not None), "body")
    return one_line(node, head_length(node, field), start)


LANGUAGE = Language(
    name="csharp",
    suffixes=(".cs",),
    grammar=tree_sitter_c_sharp.language,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    known_keys=known_keys,
    neighbours=neighbours,
    signature=signature,
    bases=bases,
    exported=exported,
    refine=refine,
    prepare=prepare,
    annotated=True,
    receiver=receiver,
)
