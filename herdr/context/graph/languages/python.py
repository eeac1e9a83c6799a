"""Python."""

import sys
from collections.abc import Iterable, Iterator, Sequence

import tree_sitter_python
from tree_sitter import Node

from herdr.context.graph.language import (
    Files,
    Language,
    dotted,
    first_line,
    head_length,
    one_line,
    plain_signature,
    text_of,
)
from herdr.context.graph.outline import Import, Kind

_TARGETS = """
  (assignment left: (identifier) @name) @definition.{kind}
  (assignment left: (pattern_list (identifier) @name @definition.{kind}))
  (assignment left: (pattern_list (list_splat_pattern (identifier) @name @definition.{kind})))
  (assignment left: (tuple_pattern (identifier) @name @definition.{kind}))
  (assignment right: (assignment left: (identifier) @name) @definition.{kind})
"""
_VARIABLE, _FIELD = _TARGETS.format(kind="variable"), _TARGETS.format(kind="field")

QUERY = f"""
(class_definition name: (identifier) @name) @definition.class
(function_definition name: (identifier) @name) @definition.function
(type_alias_statement left: (type (identifier) @name)) @definition.type
(type_alias_statement left: (type (generic_type (identifier) @name))) @definition.type

(module (expression_statement [{_VARIABLE}]))
(module (if_statement (block (expression_statement [{_VARIABLE}]))))
(module (if_statement (_ (block (expression_statement [{_VARIABLE}])))))
(module (try_statement (block (expression_statement [{_VARIABLE}]))))
(module (try_statement (else_clause (block (expression_statement [{_VARIABLE}])))))
(module (with_statement (block (expression_statement [{_VARIABLE}]))))
(class_definition body: (block (expression_statement [{_FIELD}])))
(class_definition body: (block (if_statement (block (expression_statement [{_FIELD}])))))

(call function: (identifier) @name) @call
(call function: (attribute object: (_) @receiver attribute: (identifier) @name)) @call
(call function: [(list_splat (identifier) @name) (parenthesized_expression (identifier) @name)]) @call
(call function: (list_splat (attribute object: (_) @receiver attribute: (identifier) @name))) @call
(decorator (identifier) @name) @call
(decorator (attribute object: (_) @receiver attribute: (identifier) @name)) @call

(import_statement) @import
(import_from_statement) @import

((module (expression_statement (assignment left: (identifier) @_all
  right: [(list (string (string_content) @export)) (tuple (string (string_content) @export))])))
  (#eq? @_all "__all__"))
((module (expression_statement (augmented_assignment left: (identifier) @_all
  right: [(list (string (string_content) @export)) (tuple (string (string_content) @export))])))
  (#eq? @_all "__all__"))
"""
"""The grammar takes `x = *map(f, y), 1` for a call of `*map`. What is assigned in an `except` clause stands in for
a name that the `try` would have brought.
"""

ROOTS = ("", "src/", "lib/", "python/")
"""Folders within one of the importing file's own ones that often stand on `sys.path`."""


def read_imports(node: Node) -> Iterator[Import]:
    """Yield what one import statement binds."""
    line = node.start_point.row + 1
    if node.type == "import_statement":
        for part in node.children_by_field_name("name"):
            module, alias = _renamed(part)
            # `import a.b` binds `a`, and `a.b.c()` is then called through it
            yield Import(module, line, "", alias or module.partition(".")[0])
        return
    module = text_of(node.child_by_field_name("module_name"))
    names = node.children_by_field_name("name")
    for part in names:
        name, alias = _renamed(part)
        yield Import(module, line, name, alias or name)
    if not names:
        yield Import(module, line, "*")


def _renamed(part: Node) -> tuple[str, str]:
    if part.type != "aliased_import":
        return text_of(part), ""
    return text_of(part.child_by_field_name("name")), text_of(part.child_by_field_name("alias"))


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the module's file, and that of a submodule where the name taken from it is one."""
    folder = path.rpartition("/")[0]
    if found.module.startswith("."):
        dots = len(found.module) - len(found.module.lstrip("."))
        parts = folder.split("/") if folder else []
        if dots - 1 > len(parts):
            return ()
        base = "/".join(parts[: len(parts) - dots + 1])
        return _at(_join(base, found.module[dots:].replace(".", "/")), found.name, files)
    relative = found.module.replace(".", "/")
    standard = found.module.partition(".")[0] in sys.stdlib_module_names
    for base in _bases(folder, files):
        if at := _at(base + relative, found.name, files):
            return at
        if standard:  # only a script's own folder comes before the standard library
            break
    return ()


_PACKAGE = ("__init__.py", "__init__.pyi")


def _join(base: str, rest: str) -> str:
    return "/".join(part for part in (base, rest) if part)


def _bases(folder: str, files: Files) -> Iterator[str]:
    """Yield the folders from which an absolute import may count: the importing file's own, outwards.

    A package's folder is none of them: `import html` in `utils/text.py` is not `utils/html.py` since Python 3.
    """
    while True:
        if not any(files.has(_join(folder, name)) for name in _PACKAGE):
            yield from (_join(folder, root) if root else folder and f"{folder}/" for root in ROOTS)
        if not folder:
            return
        folder = folder.rpartition("/")[0]


def _at(base: str, name: str, files: Files) -> Sequence[str]:
    """Return the files of one dotted name; a name in it may be a submodule."""
    if name and name != "*":
        for file in _files(_join(base, name)):
            if files.has(file):
                return (file,)
    return next(((file,) for file in _files(base) if files.has(file)), ())


def _files(base: str) -> Iterator[str]:
    if base:
        yield f"{base}.py"
        yield f"{base}.pyi"
    yield from (_join(base, name) for name in _PACKAGE)


def keys(path: str) -> Iterable[str]:
    """Return the module's own last name; a package's is its folder, and a dot from within."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return (folder.rpartition("/")[2], ".") if stem == "__init__" else (stem,)


def bases(node: Node) -> tuple[str, ...]:
    """Return the classes that a class names as its bases, without type arguments."""
    listed = node.child_by_field_name("superclasses") if node.type == "class_definition" else None
    parts = listed.named_children if listed is not None else ()
    named = (part.child_by_field_name("value") if part.type == "subscript" else part for part in parts)
    return tuple(text_of(n) for n in named if n is not None and n.type in ("identifier", "attribute"))


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell constants by their spelling, functions without a `def`, and properties by their decorator."""
    if kind in ("variable", "field"):
        value = node.child_by_field_name("right")
        if value is not None and value.type == "lambda":
            return "function"
        name = text_of(node.child_by_field_name("left") or node)
        return "constant" if kind == "variable" and name.isupper() else kind
    parent = node.parent if kind == "function" else None
    if parent is not None and parent.type == "decorated_definition":
        decorators = {text_of(d).lstrip("@").strip() for d in parent.children if d.type == "decorator"}
        if decorators & {"property", "cached_property", "functools.cached_property"}:
            return "property"
    return kind


def signature(node: Node) -> str:
    """Return a definition up to its body, and the first line of an assignment."""
    if node.type in ("function_definition", "class_definition"):
        return plain_signature(node)
    at: Node | None = node
    while at is not None and at.type not in ("assignment", "type_alias_statement"):
        at = at.parent
    value = at.child_by_field_name("right") if at is not None else None
    if at is not None and value is not None and value.type == "lambda":
        return one_line(at, value.start_byte - at.start_byte + head_length(value))
    return first_line(at or node)


def receiver(node: Node) -> str:
    """Return what a method is called on; the grammar takes `[*a.b()]` for a call on `*a`."""
    return dotted(text_of(node).removeprefix("*"))


def exported(name: str, _node: Node) -> bool:
    """Tell whether a name has no underscore in front, or two on both sides."""
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


LANGUAGE = Language(
    name="python",
    suffixes=(".py", ".pyi"),
    grammar=tree_sitter_python.language,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    keys=keys,
    signature=signature,
    bases=bases,
    exported=exported,
    refine=refine,
    receiver=receiver,
)
