"""What JavaScript's imports and exports bind: those of the language, and CommonJS' `require`."""

from collections.abc import Iterator

from tree_sitter import Node

from herdr.context.graph.language import first_named, text_of
from herdr.context.graph.outline import Import

DEFAULT = "default"
"""The name of what a module gives whoever names nothing, also for what is assigned to `module.exports`."""


def read_imports(node: Node) -> Iterator[Import]:
    """Yield what one import or export binds.

    An import without a module says that the file itself gives one of its names out under another one.
    """
    line = node.start_point.row + 1
    if node.type == "import_statement":
        yield from _imported(node, line)
    elif node.type == "export_statement":
        yield from _exported(node, line)
    elif node.type == "assignment_expression":
        yield from _assigned(node, line)
    else:
        yield from _loaded(node, line)


def _imported(node: Node, line: int) -> Iterator[Import]:
    source = node.child_by_field_name("source")
    clause = next(
        (c for c in node.named_children if c.type in ("import_clause", "import_require_clause")), None
    )
    if clause is not None and clause.type == "import_require_clause":
        module = _literal(clause.child_by_field_name("source"))
        yield Import(module, line, "", text_of(first_named(clause)))
        return
    module = _literal(source)
    if clause is None:
        yield Import(module, line)
    for part in clause.named_children if clause is not None else ():
        if part.type == "identifier":
            yield Import(module, line, DEFAULT, text_of(part))
        elif part.type == "namespace_import":
            yield Import(module, line, "", text_of(first_named(part)))
        elif part.type == "named_imports":
            yield from _named(part, "import_specifier", module)


def _exported(node: Node, line: int) -> Iterator[Import]:
    source = node.child_by_field_name("source")
    module = _literal(source)
    for part in node.named_children:
        if part.type == "export_clause":
            yield from (i for i in _named(part, "export_specifier", module) if module or i.name != i.alias)
            return
        if part.type == "namespace_export":
            yield Import(module, line, "", text_of(first_named(part)))
            return
    if source is not None:
        yield Import(module, line, "*")
    elif any(child.type in ("default", "=") for child in node.children):
        given = node.child_by_field_name("value") or node.child_by_field_name("declaration")
        given = given or (first_named(node) if node.named_child_count == 1 else None)
        if name := _name_of(given):
            yield Import("", line, name, DEFAULT)


def _named(clause: Node, type_name: str, module: str) -> Iterator[Import]:
    for part in clause.named_children:
        if part.type == type_name:
            name = _literal(part.child_by_field_name("name"))
            alias = _literal(part.child_by_field_name("alias"))
            yield Import(module, part.start_point.row + 1, name, alias or name)


def _name_of(node: Node | None) -> str:
    """Return the name of an identifier or of a function or class that has one."""
    if node is None or node.type == "identifier":
        return text_of(node)
    return (
        text_of(node.child_by_field_name("name")) if "function" in node.type or "class" in node.type else ""
    )


def is_exports(left: str) -> bool:
    """Tell whether this is what a CommonJS module gives out, or a member of it."""
    left = left.removeprefix("module.")
    return left == "exports" or (left.startswith("exports.") and left.count(".") == 1)


def _assigned(node: Node, line: int) -> Iterator[Import]:
    left, right = text_of(node.child_by_field_name("left")), node.child_by_field_name("right")
    if not is_exports(left) or right is None:
        return
    if right.type == "object":
        for pair in right.named_children if left == "module.exports" else ():
            value, key = pair.child_by_field_name("value"), text_of(pair.child_by_field_name("key"))
            if (
                pair.type == "pair"
                and value is not None
                and value.type == "identifier"
                and text_of(value) != key
            ):
                yield Import("", pair.start_point.row + 1, text_of(value), key)
        return
    key = DEFAULT if left == "module.exports" else left.rpartition(".")[2]
    name = _name_of(right)
    if name and name != key and (key == DEFAULT or right.type == "identifier"):
        yield Import("", line, name, key)


def loaded_module(declarator: Node | None) -> bool:
    """Tell whether a variable is given what `require` or `import()` brings in, or a member of that."""
    value = declarator.child_by_field_name("value") if declarator is not None else None
    while value is not None and value.type in ("await_expression", "member_expression"):
        value = value.child_by_field_name("object") or first_named(value)
    return value is not None and value.type == "call_expression" and _is_load(value)


def _is_load(call: Node) -> bool:
    first = first_named(call.child_by_field_name("arguments"))
    is_load = text_of(call.child_by_field_name("function")) in ("require", "import")
    return is_load and first is not None and first.type == "string"


def _loaded(call: Node, line: int) -> Iterator[Import]:
    """Yield what `require("./cart")` or `import("./cart")` is bound to."""
    module = _literal(first_named(call.child_by_field_name("arguments")))
    value, taken, at = call, "", call.parent
    is_there = text_of(call.child_by_field_name("function")) == "require"
    while at is not None and at.type in ("await_expression", "parenthesized_expression"):
        is_there = is_there or at.type == "await_expression"
        value, at = at, at.parent
    if not is_there:  # a promise of it
        yield Import(module, line)
        return
    if at is not None and at.type == "member_expression" and at.child_by_field_name("object") == value:
        taken, value, at = text_of(at.child_by_field_name("property")), at, at.parent
    if at is not None and at.type == "variable_declarator" and at.child_by_field_name("value") == value:
        yield from _bound(at.child_by_field_name("name"), module, taken, line)
    elif at is not None and at.type == "assignment_expression":
        left = text_of(at.child_by_field_name("left"))
        if left == "module.exports":
            yield Import(module, line, taken or "*", DEFAULT if taken else "")
        else:
            yield Import(module, line, taken, left.rpartition(".")[2] if is_exports(left) else "")
    else:
        yield Import(module, line, taken)


def _bound(pattern: Node | None, module: str, taken: str, line: int) -> Iterator[Import]:
    if pattern is not None and pattern.type == "identifier":
        yield Import(module, line, taken, text_of(pattern))
    elif pattern is not None and pattern.type == "object_pattern" and not taken:
        for part in pattern.named_children:
            key, value = part.child_by_field_name("key"), part.child_by_field_name("value")
            name = text_of(key if key is not None else part)
            plain = value is not None and value.type == "identifier"
            if part.type == "shorthand_property_identifier_pattern" or plain:
                yield Import(module, part.start_point.row + 1, name, text_of(value) if plain else name)
    else:
        yield Import(module, line, taken)


def _literal(node: Node | None) -> str:
    """Return a string without its quotes, or a plain name."""
    text = text_of(node)
    return text[1:-1] if node is not None and node.type == "string" else text
