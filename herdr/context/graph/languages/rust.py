"""Rust."""

import re
from collections.abc import Iterable, Iterator, Sequence

import tree_sitter_rust
from tree_sitter import Node

from herdr.context.graph.language import (
    Files,
    Language,
    dotted,
    first_line,
    first_named,
    one_line,
    plain_signature,
    text_of,
)
from herdr.context.graph.outline import Import, Kind

_CALLED = """
(call_expression function: {0}) @call
(call_expression function: (generic_function function: {0})) @call
"""

QUERY = (
    """
(use_declaration) @import
(extern_crate_declaration) @import
(mod_item !body) @import
(mod_item name: (identifier) @name body: (_)) @definition.module
(function_item name: (_) @name) @definition.function
(function_signature_item name: (_) @name) @definition.function
(struct_item name: (_) @name) @definition.struct
(union_item name: (_) @name) @definition.union
(enum_item name: (_) @name) @definition.enum
(enum_variant name: (_) @name) @definition.constant
(trait_item name: (_) @name) @definition.trait
(impl_item type: (_) @name) @definition.impl
(struct_item body: (field_declaration_list (field_declaration name: (_) @name) @definition.field))
(union_item body: (field_declaration_list (field_declaration name: (_) @name) @definition.field))
(enum_variant body: (field_declaration_list (field_declaration name: (_) @name) @definition.field))
(macro_definition name: (_) @name) @definition.macro
(associated_type name: (_) @name) @definition.type
(source_file [
  (const_item name: (_) @name) @definition.constant
  (static_item name: (_) @name) @definition.variable
  (type_item name: (_) @name) @definition.type])
(declaration_list [
  (const_item name: (_) @name) @definition.constant
  (static_item name: (_) @name) @definition.variable
  (type_item name: (_) @name) @definition.type])
(macro_invocation macro: (identifier) @name) @call
(macro_invocation macro: (scoped_identifier path: (_) @receiver name: (_) @name)) @call
(struct_expression name: (type_identifier) @name) @call
(struct_expression name: (scoped_type_identifier path: (_) @receiver name: (_) @name)) @call
(struct_expression name: (generic_type_with_turbofish type: (type_identifier) @name)) @call
"""
    + _CALLED.format("(identifier) @name")
    + _CALLED.format("(scoped_identifier name: (_) @name)")
    + _CALLED.format("(scoped_identifier path: (_) @receiver name: (_) @name)")
    + _CALLED.format("(field_expression value: (_) @receiver field: (field_identifier) @name)")
    + """
((token_tree (identifier) @name . (token_tree "(")) @call (#not-match? @name "^(any|all|not)$"))
(token_tree "." @receiver . (identifier) @name . (token_tree "(")) @call
(token_tree "::" @receiver . (identifier) @name . (token_tree "(")) @call
(token_tree [(self) (identifier)] @receiver . "::" . (identifier) @name . (token_tree "(")) @call
(token_tree (self) @receiver . "." . (identifier) @name . (token_tree "(")) @call
(token_tree "::" @receiver . (identifier) . "::" . (identifier) @name . (token_tree "(")) @call
"""
)
"""A struct expression counts as a call of its type: it is how a value of it is made.

What a macro is given has no structure yet, so calls in it are told by a name before a parenthesis; a path of more
than two parts is then a receiver that is not known, and the three words are what attributes are made of.
"""

_ROOTS = ("lib.rs", "main.rs")
_TARGETS = frozenset({"bin", "tests", "examples", "benches"})
"""Folders whose files are crates of their own. https://doc.rust-lang.org/cargo/guide/project-layout.html"""

PARTS_MAX = 64  # of one path in a tree of `use`; nobody writes more, and each level copies what is before it
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

_PLAIN = frozenset({"identifier", "type_identifier", "field_identifier", "primitive_type"})
_WRAPPED = {"generic_type": "type", "reference_type": "type", "scoped_type_identifier": "name"}


def read_imports(node: Node) -> Iterator[Import]:
    """Yield what a `use`, `extern crate` or `mod x;` brings in."""
    line = node.start_point.row + 1
    if node.type == "use_declaration":
        depth = _inline_depth(node)
        for parts, alias in _leaves(node.child_by_field_name("argument")):
            yield _use(_from_file(parts, depth), alias, line)
        return
    name = text_of(node.child_by_field_name("name"))
    yield Import(name, line, "", text_of(node.child_by_field_name("alias")) or name)


def _leaves(argument: Node | None) -> Iterator[tuple[list[str], str]]:
    """Yield the full path and the new name of each end of a tree of `use`."""
    waiting: list[tuple[Node | None, list[str]]] = [(argument, [])]
    while waiting:
        node, before = waiting.pop()
        if node is None or len(before) > PARTS_MAX:
            continue
        if node.type in ("use_list", "scoped_use_list"):
            path = before + _parts(node.child_by_field_name("path"))
            inside = node if node.type == "use_list" else node.child_by_field_name("list")
            children = inside.named_children if inside is not None else []
            waiting.extend((child, path) for child in reversed(children))
        elif node.type == "use_as_clause":
            path = before + _parts(node.child_by_field_name("path"))
            yield path, text_of(node.child_by_field_name("alias"))
        elif node.type == "use_wildcard":
            yield [*before, *_parts(first_named(node)), "*"], ""
        elif not node.is_extra:
            yield before + _parts(node), ""


def _parts(node: Node | None) -> list[str]:
    text = _COMMENT.sub("", text_of(node))
    return [part for part in "".join(text.split()).split("::") if part]


def _inline_depth(node: Node) -> int:
    """Return how many `mod x { … }` of this file are around a node."""
    depth, around = 0, node.parent
    while around is not None:
        depth += around.type == "mod_item"
        around = around.parent
    return depth


def _from_file(parts: list[str], depth: int) -> list[str]:
    """Return a path as it reads at the top of the file: `super` in an inline module is the file itself."""
    ups = next((place for place, part in enumerate(parts) if part != "super"), len(parts))
    left = max(0, ups - depth)
    return parts if not depth or not ups else [*(["super"] * left or ["self"]), *parts[ups:]]


def _use(parts: list[str], alias: str, line: int) -> Import:
    if len(parts) > 1 and parts[-1] == "self":
        parts = parts[:-1]
    *module, name = parts or [""]
    alias = "" if alias == "_" or name == "*" else alias or name
    return Import("::".join(module), line, name, alias) if module else Import(name, line, "", alias)


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the file of the innermost module that a path names; what follows is in it."""
    first, *rest = [*found.module.split("::"), *([found.name] if found.name not in ("", "*") else [])]
    start: str | None = path
    if first == "crate":
        start = _crate(path, files)
    elif first == "super":
        start = _parent(path, files)
        while start is not None and rest[:1] == ["super"]:
            start = _parent(start, files)
            rest.pop(0)
    elif first != "self":
        start = _child(path, first, files) or next(iter(_libraries(first, path, files)), None)
    while start is not None and rest and (inner := _child(start, rest[0], files)):
        start = inner
        rest.pop(0)
    return () if start is None else (start,)


def _child(path: str, name: str, files: Files) -> str | None:
    """Return the file of a module that the file at this path declares."""
    folder = _inside(path)
    candidates = (f"{folder}{name}.rs", f"{folder}{name}/mod.rs")
    return next((file for file in candidates if file != path and files.has(file)), None)


def _inside(path: str) -> str:
    """Return the folder of a module's own modules, with a slash behind it."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}" if name == "mod.rs" or _is_root(path) else f"{path.removesuffix('.rs')}/"


def _is_root(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name in (*_ROOTS, "build.rs") or folder.rpartition("/")[2] in _TARGETS


def _parent(path: str, files: Files) -> str | None:
    """Return the file of the module around the one in this file."""
    folder, _, name = path.rpartition("/")
    if name == "mod.rs":
        folder = folder.rpartition("/")[0]
    return None if _is_root(path) and name != "mod.rs" else _owner(folder, files)


def _owner(folder: str, files: Files) -> str | None:
    """Return the file whose modules stand in this folder."""
    slash = f"{folder}/" if folder else ""
    names = [f"{slash}{name}" for name in ("mod.rs", *_ROOTS)] + [f"{folder}.rs"]
    return next((file for file in names if files.has(file)), None)


def _crate(path: str, files: Files) -> str | None:
    """Return the root of the crate that a file belongs to: the nearest one outwards."""
    if _is_root(path):
        return path
    folder = path.rpartition("/")[0]
    while True:
        slash = f"{folder}/" if folder else ""
        for name in _ROOTS:
            if files.has(slash + name):
                return slash + name
        if not folder:
            return None
        folder = folder.rpartition("/")[0]


def _libraries(name: str, path: str, files: Files) -> list[str]:
    """Return the roots of the workspace's crate of this name: by its manifest, or without one by its folder."""
    found = [
        f"{file.removesuffix('Cargo.toml')}src/lib.rs"
        for file in files.packaged(name)
        if file.rpartition("/")[2] == "Cargo.toml"
    ]
    found += [
        file
        for file in files.named("lib.rs")
        if _folder_name(file) == name and not files.has(f"{file.removesuffix('src/lib.rs')}Cargo.toml")
    ]
    roots = [file for file in found if files.has(file)]
    return sorted(roots, key=lambda file: not path.startswith(file.removesuffix("src/lib.rs")))


def _folder_name(path: str) -> str:
    """Return the crate's name that its folder tells: `my_shop` for `crates/my-shop/src/lib.rs`."""
    parts = path.split("/")
    return parts[-3].replace("-", "_") if len(parts) > 2 and parts[-2] == "src" else ""


def keys(path: str) -> Iterable[str]:
    """Return what paths call the module: its name, and what it is to its own modules."""
    folder, _, name = path.rpartition("/")
    if name in _ROOTS:
        return tuple(filter(None, ("crate", "super", _folder_name(path))))
    return (folder.rpartition("/")[2] if name == "mod.rs" else name.removesuffix(".rs"), "super")


def known_keys(path: str, files: Files) -> Sequence[str]:
    """Return the crate's name in its manifest."""
    root = path.removesuffix("src/lib.rs")
    manifest = files.outline(f"{root}Cargo.toml") if root != path else None
    return (manifest.package,) if manifest is not None and manifest.package else ()


def spelling(node: Node) -> str:
    """Return a name without `r#`, and for what an `impl` is about the type's own name."""
    while (field := _WRAPPED.get(node.type)) and (inner := node.child_by_field_name(field)):
        node = inner
    name = text_of(node)
    return name.removeprefix("r#") if node.type in _PLAIN else one_line(node, len(name))


def receiver(node: Node) -> str:
    """Return a path without its type arguments: `Vec` for `Vec::<u8>`."""
    inner = node.child_by_field_name("type") if node.type == "generic_type" else None
    return dotted(text_of(inner or node))


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell variants that hold something: they are made like structs."""
    held = node.type == "enum_variant" and node.child_by_field_name("body") is not None
    return "struct" if held else kind


def bases(node: Node) -> tuple[str, ...]:
    """Return the traits above a trait, or the one that an `impl` is of."""
    if node.type == "impl_item":
        found = [node.child_by_field_name("trait")]
    else:
        bounds = node.child_by_field_name("bounds") if node.type == "trait_item" else None
        found = list(bounds.named_children) if bounds is not None else []
    names = (receiver(part) for part in found if part is not None and part.type != "lifetime")
    return tuple(name for name in names if name != "?")


def exported(_name: str, node: Node) -> bool:
    """Tell what is `pub` in any way, or is as public as the trait or enum around it."""
    if node.type in ("impl_item", "enum_variant", "macro_definition", "associated_type"):
        return True
    if any(child.type == "visibility_modifier" for child in node.children[:2]):
        return True
    around = node.parent.parent if node.parent is not None else None
    if around is None or around.type not in ("impl_item", "trait_item", "enum_variant"):
        return False
    return around.type != "impl_item" or around.child_by_field_name("trait") is not None


def signature(node: Node) -> str:
    """Return a definition up to its body; the first line of a constant or macro; all of a field."""
    if node.type in ("const_item", "static_item", "macro_definition"):
        return first_line(node)
    body = node.child_by_field_name("body")
    if node.type == "enum_variant" or (body is not None and body.type == "ordered_field_declaration_list"):
        return one_line(node, node.end_byte - node.start_byte)
    return plain_signature(node)


LANGUAGE = Language(
    name="rust",
    suffixes=(".rs",),
    grammar=tree_sitter_rust.language,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    keys=keys,
    known_keys=known_keys,
    signature=signature,
    bases=bases,
    exported=exported,
    spelling=spelling,
    receiver=receiver,
    refine=refine,
    self_names=frozenset({"self", "Self"}),
)
