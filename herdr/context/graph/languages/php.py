"""PHP, also between HTML.

A class is found by its namespace and name, wherever its file lies, so no map of an autoloader is needed.
"""

from collections.abc import Iterable, Iterator, Sequence

import tree_sitter_php
from tree_sitter import Node

from herdr.context.graph.language import Files, Language, dotted, first_line, one_line, text_of
from herdr.context.graph.languages.paths import ending, nearest, normal
from herdr.context.graph.outline import Import, Kind

QUERY = """
(namespace_definition name: (namespace_name) @package)
(namespace_use_declaration) @import
(require_expression) @import
(require_once_expression) @import
(include_expression) @import
(include_once_expression) @import
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(anonymous_class) @name @definition.class
(enum_case name: (name) @name) @definition.constant
(function_definition name: (name) @name) @definition.function
(method_declaration name: (name) @name) @definition.method
(property_element name: (variable_name) @name) @definition.field
(const_element . (name) @name) @definition.constant
((function_call_expression function: (name) @_define
    arguments: (arguments . (argument (string (string_content) @name)))) @definition.constant
  (#eq? @_define "define"))
(function_call_expression function: (name) @name) @call
(function_call_expression function: (qualified_name) @name @receiver) @call
(function_call_expression function: (relative_name) @name @receiver) @call
(member_call_expression object: (_) @receiver name: (name) @name) @call
(nullsafe_member_call_expression object: (_) @receiver name: (name) @name) @call
(scoped_call_expression scope: (_) @receiver name: (name) @name) @call
(object_creation_expression (name) @name) @call
(object_creation_expression (qualified_name) @name @receiver) @call
(object_creation_expression (relative_name) @name @receiver) @call
"""

_OWN = frozenset({"self", "static", "parent"})
_PATHS = frozenset({"qualified_name", "relative_name"})
_TYPES = frozenset(
    {"class_declaration", "interface_declaration", "trait_declaration", "enum_declaration", "anonymous_class"}
)
_NAMES = frozenset({"name", *_PATHS})
_DIRNAME = frozenset({"dirname(__FILE__)", "__DIR__"})
_ELEMENTS = frozenset({"property_element", "const_element"})
_WORDS_MAX = 12  # words before a name; a list of names may have thousands
_PACKAGE_MAX = 2_000  # files of one namespace among which a name that no file is called by is looked for


def spelling(node: Node) -> str:
    """Return a name without its namespace or its `$`; `new self` makes what the class is, by no name."""
    if node.type == "anonymous_class":
        return "class@anonymous"  # as PHP itself calls it
    text = text_of(node)
    if node.type == "name":
        return "" if text in _OWN else text
    return text.rpartition("\\")[2].removeprefix("$")


def receiver(node: Node) -> str:
    """Return what a method is called on, or the namespace in front of a name, with dots."""
    text = text_of(node).removeprefix("namespace\\").removeprefix("\\").replace("\\", ".")
    above = node.parent
    if node.type in _PATHS and above is not None and above.type != "scoped_call_expression":
        return text.rpartition(".")[0]
    return dotted(text)


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell constructors by their name."""
    if kind == "method" and text_of(node.child_by_field_name("name")) == "__construct":
        return "constructor"
    return kind


def signature(node: Node) -> str:
    """Return a definition up to its body; one of several properties with what they share."""
    above = node.parent
    if node.type in _ELEMENTS and above is not None:
        return " ".join(
            [*(text_of(n) for n in _words(above) if n.type != "attribute_list"), first_line(node)]
        )
    attributes, body = node.child_by_field_name("attributes"), node.child_by_field_name("body")
    end = body.start_byte if body else node.end_byte
    return one_line(node, end - node.start_byte, attributes.end_byte - node.start_byte if attributes else 0)


def _words(node: Node) -> Iterator[Node]:
    """Yield what stands before the first name of a declaration."""
    for place in range(min(node.child_count, _WORDS_MAX)):
        word = node.child(place)
        if word is None or word.type in _ELEMENTS:
            return
        yield word


def bases(node: Node) -> tuple[str, ...]:
    """Return the traits that a class uses, then what it extends and implements: the order of look-ups."""
    if node.type not in _TYPES:
        return ()
    body = node.child_by_field_name("body")
    traits = [n for n in (body.named_children if body else ()) if n.type == "use_declaration"]
    clauses = [n for n in node.children if n.type in ("base_clause", "class_interface_clause")]
    return tuple(
        text_of(n).removeprefix("\\").replace("\\", ".")
        for part in (*traits, *clauses)
        for n in part.named_children
        if n.type in _NAMES
    )


def exported(_name: str, node: Node) -> bool:
    """Tell that a member is not private."""
    holder = node.parent if node.type in _ELEMENTS else node
    words = _words(holder) if holder else ()
    return all(text_of(word) != "private" for word in words if word.type == "visibility_modifier")


def read_imports(node: Node) -> Iterator[Import]:
    """Yield the names that a `use` binds, or the file of a `require` as far as it is written out."""
    line = node.start_point.row + 1
    if node.type != "namespace_use_declaration":
        if path := _written_path(node.named_child(0)):
            yield Import(path, line, "*")
        return
    group = node.child_by_field_name("body")
    names = (n for n in node.named_children if n.type == "namespace_name")
    prefix = f"{text_of(next(names, None))}\\" if group is not None else ""
    for clause in (group or node).named_children:
        written = next((n for n in clause.named_children if n.type in _NAMES), None)
        if clause.type == "namespace_use_clause" and written is not None:
            module = (prefix + text_of(written)).removeprefix("\\")
            alias = text_of(clause.child_by_field_name("alias"))
            yield Import(module, line, "", alias or module.rpartition("\\")[2])


def _written_path(given: Node | None) -> str:
    """Return a literal path: with `./` if it begins at this file's folder, its end if at some constant."""
    while given is not None and given.type == "parenthesized_expression":
        given = given.named_child(0)
    if given is None or given.type != "binary_expression":
        return _literal(given)
    start, tail = given.child_by_field_name("left"), _literal(given.child_by_field_name("right"))
    if not tail:
        return ""
    if text_of(start) in _DIRNAME:
        return f"./{tail.lstrip('/')}"
    return tail.lstrip("/") if start is not None and start.type == "name" else ""


def _literal(node: Node | None) -> str:
    content = node.named_child(0) if node is not None and node.type in ("string", "encapsed_string") else None
    plain = content is not None and node is not None and node.named_child_count == 1
    return text_of(content) if plain and content is not None and content.type == "string_content" else ""


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the files that hold what a `use` names, that belong to a namespace, or that are required."""
    if found.name == "*":
        return _required(found.module, path.rpartition("/")[0], files)
    if not found.alias:
        return _namespace(found.module, path, files)
    module = f"{found.module}\\{found.name}" if found.name else found.module
    space, _, name = module.rpartition("\\")
    return _defining(space, name, files) or files.packaged(module)


def _required(module: str, folder: str, files: Files) -> Sequence[str]:
    beside = normal(f"{folder}/{module}")
    if beside is not None and files.has(beside):
        return (beside,)
    return () if module.startswith(".") else nearest(ending(module, files), folder)


def _namespace(name: str, path: str, files: Files) -> Sequence[str]:
    """Return the files of a namespace that is named in full, or from the one that the file is in."""
    outline = files.outline(path)
    inner = f"{outline.package}\\{name}" if outline is not None and outline.package else ""
    return (files.packaged(inner) if inner else ()) or files.packaged(name)


def _defining(space: str, name: str, files: Files) -> Sequence[str]:
    own = [file for file in files.named(f"{name}.php") if _defines(file, space, name, files)]
    if own or not space:
        return own
    return [f for f in files.packaged(space)[:_PACKAGE_MAX] if _defines(f, space, name, files)]


def _defines(path: str, space: str, name: str, files: Files) -> bool:
    outline = files.outline(path)
    if outline is None or outline.language != "php" or outline.package != space:
        return False
    return any(s.name == name and s.parent < 0 for s in outline.symbols)


def keys(path: str) -> Iterable[str]:
    """Return the class that a file is called by, and with two dots what a path to it ends in."""
    parts = path.rpartition("/")[2].split(".")
    return {parts[0], parts[-2] if len(parts) > 1 else parts[0]}


def known_keys(path: str, files: Files) -> Sequence[str]:
    """Return what a file defines at its top: any of it can be named by a `use`."""
    outline = files.outline(path)
    names = (
        (s.name for s in outline.symbols if s.parent < 0) if outline is not None and outline.package else ()
    )
    return tuple(dict.fromkeys(names))


def neighbours(path: str, files: Files) -> Sequence[str]:
    """Return the other files of the same namespace; the global one belongs to no project alone."""
    outline = files.outline(path)
    if outline is None or not outline.package:
        return ()
    return [file for file in files.packaged(outline.package) if file != path]


LANGUAGE = Language(
    name="php",
    suffixes=(".php", ".phtml", ".inc"),
    grammar=tree_sitter_php.language_php,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    keys=keys,
    known_keys=known_keys,
    neighbours=neighbours,
    annotated=True,
    signature=signature,
    bases=bases,
    exported=exported,
    refine=refine,
    spelling=spelling,
    receiver=receiver,
    self_names=frozenset({"$this", "self", "static"}),
)
