"""Java."""

from collections.abc import Iterator, Sequence

import tree_sitter_java
from tree_sitter import Node

from herdr.context.graph.language import Files, Language, head_length, one_line, text_of
from herdr.context.graph.outline import Import, Kind

_NEW = """
(object_creation_expression type: {0}) @call
(object_creation_expression type: (generic_type {0})) @call
"""

QUERY = (
    """
(package_declaration [(identifier) (scoped_identifier)] @package)
(import_declaration) @import
(class_declaration name: (_) @name) @definition.class
(record_declaration name: (_) @name) @definition.class
(record_declaration parameters: (formal_parameters
  (formal_parameter name: (identifier) @name) @definition.property))
(interface_declaration name: (_) @name) @definition.interface
(annotation_type_declaration name: (_) @name) @definition.interface
(annotation_type_element_declaration name: (_) @name) @definition.method
(enum_declaration name: (_) @name) @definition.enum
(enum_constant name: (_) @name) @definition.constant
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.constructor
(compact_constructor_declaration name: (_) @name) @definition.constructor
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.constant
(method_invocation !object name: (identifier) @name) @call
(method_invocation object: (_) @receiver name: (identifier) @name) @call
(explicit_constructor_invocation constructor: (_) @name) @call
(method_reference . (_) @receiver "::" (identifier) @name) @call
(method_reference . (identifier) @name "::" "new") @call
(method_reference . (field_access object: (_) @receiver field: (identifier) @name) "::" "new") @call
"""
    + _NEW.format("(type_identifier) @name")
    + _NEW.format("(scoped_type_identifier . (_) @receiver (type_identifier) @name .)")
)
"""A method reference counts as a call: what it means is called through it."""

_TYPES = frozenset({"type_identifier", "scoped_type_identifier", "generic_type"})


def read_imports(node: Node) -> Iterator[Import]:
    """Yield what an import names: a class of a package, a static member of a class, or everything in one."""
    path = next(
        (part for part in node.named_children if part.type in ("identifier", "scoped_identifier")), None
    )
    text = "".join(text_of(path).split())
    line = node.start_point.row + 1
    if any(part.type == "asterisk" for part in node.named_children):
        yield Import(text, line, "*")
    else:
        module, _, name = text.rpartition(".")
        yield Import(module, line, name, name) if module else Import(name, line, "", name)


def find_module(found: Import, _path: str, files: Files) -> Sequence[str]:
    """Return the file of the class that is named, of the one around it, or all files of a package."""
    package, name = found.module, found.name
    if name in ("", "*"):
        if inside := _sources(found.module, files):
            return inside
        package, _, name = package.rpartition(".")
    while package:
        if inside := _with_class(package, name, files):
            return inside
        package, _, name = package.rpartition(".")
    return ()


def _sources(package: str, files: Files) -> list[str]:
    return [file for file in files.packaged(package) if file.endswith(".java")]


def _with_class(package: str, name: str, files: Files) -> list[str]:
    """Return the files of a package with this class: those called so, else those that define it beside one."""
    called = [file for file in files.named(f"{name}.java") if _package(file, files) == package]
    return called or [file for file in _sources(package, files) if _defines(file, name, files)]


def _package(path: str, files: Files) -> str:
    outline = files.outline(path)
    return "" if outline is None else outline.package


def _defines(path: str, name: str, files: Files) -> bool:
    outline = files.outline(path)
    return outline is not None and any(s.name == name and s.parent < 0 for s in outline.symbols)


def neighbours(path: str, files: Files) -> Sequence[str]:
    """Return the other files of the package, in whatever source folder; without one, those of the folder."""
    if package := _package(path, files):
        return [file for file in _sources(package, files) if file != path]
    beside = files.folder(path.rpartition("/")[0])
    return [f for f in beside if f != path and f.endswith(".java") and not _package(f, files)]


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell constants by their modifiers, and drop members of nameless classes: nobody can name them."""
    if kind in ("method", "field"):
        body = node.parent
        around = body.parent if body is not None else None
        if around is not None and around.type == "object_creation_expression":
            return None
    if kind == "field" and {"static", "final"} <= set(_modifiers(node)):
        return "constant"
    return kind


def _modifiers(node: Node) -> list[str]:
    """Return a definition's modifiers without its annotations."""
    first = node.child(0)
    if first is None or first.type != "modifiers":
        return []
    return [text_of(part) for part in first.children if not part.is_named]


def exported(_name: str, node: Node) -> bool:
    """Tell what is not private: files of the package can name the rest, too."""
    return "private" not in _modifiers(node)


def bases(node: Node) -> tuple[str, ...]:
    """Return what a class extends and implements, or an interface extends."""
    if node.type not in (
        "class_declaration",
        "record_declaration",
        "enum_declaration",
        "interface_declaration",
    ):
        return ()
    found: list[Node] = []
    for part in node.named_children:
        if part.type == "superclass":
            found += part.named_children
        elif part.type in ("super_interfaces", "extends_interfaces"):
            found += [written for listed in part.named_children for written in listed.named_children]
    return tuple(text_of(n).partition("<")[0].rstrip() for n in found if n.type in _TYPES)


def signature(node: Node) -> str:
    """Return a definition without annotations and body; of a field, the first line."""
    first = node.child(0)
    start = 0
    if first is not None and first.type == "modifiers":
        start = first.end_byte - node.start_byte
    end = head_length(node)
    if node.type in ("field_declaration", "constant_declaration"):
        text = (node.text or b"")[start:].lstrip()
        end -= len(text) - len(text.partition(b"\n")[0])
    return " ".join([*_modifiers(node), one_line(node, end, start)])


LANGUAGE = Language(
    name="java",
    suffixes=(".java",),
    grammar=tree_sitter_java.language,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    neighbours=neighbours,
    signature=signature,
    bases=bases,
    exported=exported,
    refine=refine,
    annotated=True,
)
