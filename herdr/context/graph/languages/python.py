"""Python."""

from collections.abc import Iterable, Iterator, Sequence

import tree_sitter_python
from tree_sitter import Node

from herdr.context.graph.language import Files, Language, text_of
from herdr.context.graph.outline import Import, Kind

QUERY = """
(class_definition name: (identifier) @name) @definition.class
(function_definition name: (identifier) @name) @definition.function
(module (expression_statement (assignment left: (identifier) @name) @definition.variable))
(class_definition body: (block (expression_statement
  (assignment left: (identifier) @name) @definition.field)))
(call function: (identifier) @name) @call
(call function: (attribute object: (_) @receiver attribute: (identifier) @name)) @call
(import_statement) @import
(import_from_statement) @import
"""

ROOTS = ("src/", "lib/", "python/")
"""Folders that often stand on `sys.path` beside the importing file's own ones."""


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
    for base in _bases(folder):
        if at := _at(base + relative, found.name, files):
            return at
    return ()


def _join(base: str, rest: str) -> str:
    return "/".join(part for part in (base, rest) if part)


def _bases(folder: str) -> Iterator[str]:
    """Yield the folders from which an absolute import may count: the importing file's own, outwards."""
    while folder:
        yield f"{folder}/"
        folder = folder.rpartition("/")[0]
    yield ""
    yield from ROOTS


def _at(base: str, name: str, files: Files) -> Sequence[str]:
    """Return the files of one dotted name; a name in it may be a submodule."""
    if name and name != "*":
        for file in _files(_join(base, name)):
            if files.has(file):
                return (file,)
    return next(((file,) for file in _files(base) if files.has(file)), ())


def _files(base: str) -> Iterator[str]:
    yield f"{base}.py"
    yield f"{base}.pyi"
    yield _join(base, "__init__.py")


def keys(path: str) -> Iterable[str]:
    """Return the module's own last name; a package's is its folder."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return (folder.rpartition("/")[2],) if stem == "__init__" else (stem,)


def bases(node: Node) -> tuple[str, ...]:
    """Return the classes that a class names as its bases."""
    listed = node.child_by_field_name("superclasses")
    if listed is None:
        return ()
    return tuple(text_of(n) for n in listed.named_children if n.type in ("identifier", "attribute"))


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell constants by their spelling, and properties by their decorator."""
    if kind == "variable" and text_of(node.child_by_field_name("left")).isupper():
        return "constant"
    parent = node.parent
    if kind == "function" and parent is not None and parent.type == "decorated_definition":
        decorators = {text_of(d).lstrip("@").strip() for d in parent.children if d.type == "decorator"}
        if decorators & {"property", "cached_property", "functools.cached_property"}:
            return "property"
    return kind


LANGUAGE = Language(
    name="python",
    suffixes=(".py", ".pyi"),
    grammar=tree_sitter_python.language,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    keys=keys,
    bases=bases,
    exported=lambda name, _node: not name.startswith("_"),
    refine=refine,
)
