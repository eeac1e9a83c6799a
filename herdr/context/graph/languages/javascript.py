"""JavaScript, with JSX. TypeScript builds on it."""

from collections.abc import Sequence

import tree_sitter_javascript
from tree_sitter import Node

from herdr.context.graph.language import (
    Language,
    dotted,
    first_line,
    first_named,
    head_length,
    one_line,
    text_of,
)
from herdr.context.graph.languages.javascript_imports import DEFAULT, is_exports, loaded_module, read_imports
from herdr.context.graph.languages.npm import find_module, keys, known_keys
from herdr.context.graph.outline import Kind

FUNCTIONS = ("arrow_function", "function_expression", "generator_function")
_NO_OWNERS = ("this", "exports", "module")
_VALUES = ("variable_declarator", "field_definition", "public_field_definition", "enum_assignment")
_WRAPPERS = frozenset({"memo", "forwardRef", "lazy"})
"""Of React: what they return is called like what they are given."""

_FUNCTION = "[(arrow_function) (function_expression) (generator_function)]"

QUERY = f"""
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(class_declaration name: (_) @name) @definition.class
(class_body (method_definition
  name: [(property_identifier) (private_property_identifier) (computed_property_name)] @name) @definition.method)
(class_body (method_definition name: (string (string_fragment) @name)) @definition.method)

(variable_declarator name: (identifier) @name value: {_FUNCTION}) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(program (_ (variable_declarator name: (identifier) @name) @definition.variable))
(export_statement (_ (variable_declarator name: (identifier) @name) @definition.variable))
(program (_ (variable_declarator name: (object_pattern
  (shorthand_property_identifier_pattern) @name @definition.variable))))
(program (_ (variable_declarator name: (object_pattern (object_assignment_pattern
  left: (shorthand_property_identifier_pattern) @name @definition.variable)))))
(program (_ (variable_declarator name: (object_pattern
  (pair_pattern value: (identifier) @name @definition.variable)))))
(program (_ (variable_declarator name: (array_pattern (identifier) @name @definition.variable))))
(export_statement (_ (variable_declarator name: (object_pattern
  (shorthand_property_identifier_pattern) @name @definition.variable))))

(program (_ (variable_declarator value: (object
  (method_definition name: (property_identifier) @name) @definition.function))))
(program (_ (variable_declarator value: (object
  (pair key: (property_identifier) @name value: {_FUNCTION}) @definition.function))))
(export_statement (_ (variable_declarator value: (object
  (method_definition name: (property_identifier) @name) @definition.function))))
(export_statement (_ (variable_declarator value: (object
  (pair key: (property_identifier) @name value: {_FUNCTION}) @definition.function))))
(export_statement value: (object
  (method_definition name: (property_identifier) @name) @definition.function))

(export_statement "default" @name value: {_FUNCTION} @definition.function)
(export_statement "default" @name value: (class) @definition.class)

(program (expression_statement (assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: {_FUNCTION}) @definition.function))
(program (expression_statement (assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: (class)) @definition.class))
(program (expression_statement (assignment_expression left: (member_expression)
  right: (object (method_definition name: (property_identifier) @name) @definition.function))))
(program (expression_statement (assignment_expression left: (member_expression)
  right: (object (pair key: (property_identifier) @name value: {_FUNCTION}) @definition.function))))
(assignment_expression left: (member_expression object: (this) property: (_) @name)
  right: {_FUNCTION}) @definition.method

(call_expression function: (identifier) @name) @call
(call_expression function: (super) @name) @call
(call_expression function: (member_expression
  object: (_) @receiver property: [(property_identifier) (private_property_identifier)] @name)) @call
(new_expression constructor: [(identifier) (this)] @name) @call
(new_expression constructor: (member_expression object: (_) @receiver property: (property_identifier) @name)) @call
(decorator (identifier) @name) @call
(decorator (member_expression object: (_) @receiver property: (property_identifier) @name)) @call

(import_statement) @import
(export_statement) @import
(call_expression function: (import) arguments: (arguments . (string))) @import
((call_expression function: (identifier) @_function arguments: (arguments . (string))) @import
  (#eq? @_function "require"))
(program (expression_statement (assignment_expression left: (member_expression)
  right: [(identifier) (object) (function_expression) (class)]) @import))

(export_specifier name: (identifier) @export)
(export_statement "export" @export)
(assignment_expression left: (member_expression object: (identifier) @_object property: (_) @export)
  (#any-of? @_object "exports" "module"))
(program (expression_statement (assignment_expression
  left: (member_expression object: (identifier) @_object property: (_) @_property)
  right: (object (shorthand_property_identifier) @export)))
  (#eq? @_object "module") (#eq? @_property "exports"))
"""
"""An export also counts by the word itself, so that a file with one is no script."""

JSX = """
((jsx_opening_element name: (identifier) @name) @call (#match? @name "^[^a-z]"))
((jsx_self_closing_element name: (identifier) @name) @call (#match? @name "^[^a-z]"))
(jsx_opening_element name: (member_expression object: (_) @receiver property: (_) @name)) @call
(jsx_self_closing_element name: (member_expression object: (_) @receiver property: (_) @name)) @call
"""
"""A name that begins with a small letter is an element of HTML."""

FIELDS = """
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @definition.field
"""


def spelling(node: Node) -> str:
    """Return a name; `require` is an import, and what `module.exports` is given has a name of its own."""
    name = text_of(node)
    if name == "require":
        return ""
    parent = node.parent if name == "exports" else None  # looking for it is slow
    return _own_name(parent.parent) or DEFAULT if text_of(parent) == "module.exports" and parent else name


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell what a variable holds, and what kind of member a method is."""
    if node.type == "variable_declarator":
        return _held(kind, node)
    if kind == "method":
        return _member(node)
    if kind == "field":
        value = node.child_by_field_name("value")
        return "method" if value is not None and value.type in FUNCTIONS else kind
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        whole = text_of(left)
        if kind == "function" and _owner(whole)[:1].isupper():
            return "method"
        return kind if is_exports(whole) or _owner(whole) else None
    if node.type in ("shorthand_property_identifier_pattern", "identifier"):
        return None if loaded_module(_around(node, "variable_declarator")) else _word(node)
    return kind


def _held(kind: Kind, node: Node) -> Kind | None:
    value = plain(node.child_by_field_name("value"))
    if kind != "variable":
        return kind
    if value is None:
        return _word(node)
    if value.type in FUNCTIONS or value.type == "class" or loaded_module(node):
        return None
    if value.type == "object" and any(_is_function(part) for part in value.named_children):
        return "namespace"
    if value.type == "call_expression" and _wraps_function(value):
        return "function"
    return _word(node)


def plain(value: Node | None) -> Node | None:
    """Return an expression without the type that TypeScript is told it has."""
    while value is not None and value.type in ("as_expression", "satisfies_expression"):
        value = first_named(value)
    return value


def _word(node: Node) -> Kind:
    """Tell a constant by the word that declares it."""
    declaration = _around(node, "lexical_declaration")
    is_constant = declaration is not None and text_of(declaration.child(0)) == "const"
    return "constant" if is_constant else "variable"


def _is_function(part: Node) -> bool:
    value = part.child_by_field_name("value") if part.type == "pair" else part
    return value is not None and value.type in (*FUNCTIONS, "method_definition")


def _wraps_function(call: Node) -> bool:
    """Tell whether a call is one of React's that make a component of a function."""
    name = text_of(call.child_by_field_name("function")).rpartition(".")[2].partition("<")[0]
    first = first_named(call.child_by_field_name("arguments"))
    return name in _WRAPPERS and first is not None and first.type in FUNCTIONS


def _member(node: Node) -> Kind:
    if text_of(node.child_by_field_name("name")) == "constructor":
        return "constructor"
    accessor = any(child.type in ("get", "set") for child in node.children[:4])
    return "property" if accessor else "method"


def _around(node: Node, type_name: str) -> Node | None:
    """Return the node of this type a few steps above."""
    at: Node | None = node
    for _ in range(6):
        if at is None or at.type == type_name:
            return at
        at = at.parent
    return None


def _own_name(node: Node | None) -> str:
    """Return the name of the function or class that is assigned, its own one."""
    right = node.child_by_field_name("right") if node is not None else None
    return text_of(right.child_by_field_name("name")) if right is not None else ""


def _owner(left: str) -> str:
    """Return what a function is put on from outside: `Cart` of `Cart.prototype.total`."""
    owner = left.rpartition(".")[0].removesuffix(".prototype")
    parts = owner.split(".")
    return owner if all(map(str.isidentifier, parts)) and parts[0] not in _NO_OWNERS else ""


def owner(node: Node) -> str:
    """Return the type or object that a function is assigned to a member of."""
    return _owner(text_of(node.child_by_field_name("left"))) if node.type == "assignment_expression" else ""


def signature(node: Node) -> str:
    """Return a definition up to its body, without decorators."""
    if node.type in ("shorthand_property_identifier_pattern", "identifier"):
        return one_line(node, node.end_byte - node.start_byte)
    first = next((child.start_byte for child in node.children if child.type != "decorator"), node.start_byte)
    start, head = first - node.start_byte, _head(node)
    return _declared(node) + (first_line(node, start) if head is None else one_line(node, head, start))


def _declared(node: Node) -> str:
    parent = node.parent
    if node.type != "variable_declarator" or parent is None:
        return ""
    return f"{text_of(parent.child(0))} "


def _head(node: Node) -> int | None:
    """Return how many bytes stand before the body of a definition or of what it is given; None without one."""
    for field in ("value", "right"):
        value = plain(node.child_by_field_name(field))
        if value is None:
            continue
        if value.type == "call_expression" and _wraps_function(value):
            value = first_named(value.child_by_field_name("arguments"))
        if value is None:
            continue
        if value.type in (*FUNCTIONS, "class"):
            return value.start_byte - node.start_byte + head_length(value)
        if value.type == "object":
            return value.start_byte - node.start_byte
    return None if node.type in _VALUES else head_length(node)


def bases(node: Node) -> Sequence[str]:
    """Return what a class extends, as far as it has a name."""
    if node.type in ("variable_declarator", "assignment_expression"):
        node = node.child_by_field_name("value") or node.child_by_field_name("right") or node
    heritage = next((child for child in node.children if child.type == "class_heritage"), None)
    parts = heritage.named_children if heritage is not None else ()
    return tuple(text_of(part) for part in parts if part.type in ("identifier", "member_expression"))


def exported(name: str, node: Node) -> bool:
    """Tell whether a definition stands in an export, or is a member that is not private."""
    if node.type == "assignment_expression":
        return is_exports(text_of(node.child_by_field_name("left"))) or bool(owner(node))
    at: Node | None = node.parent
    for _ in range(4):
        if at is None or at.type in ("program", "statement_block"):
            return False
        if at.type in ("class_body", "interface_body", "enum_body", "object"):
            return not name.startswith("#")
        if at.type == "export_statement":
            return True
        at = at.parent
    return False


def receiver(node: Node) -> str:
    """Return what a method is called on, also where TypeScript is told that it is there (`cart!.add()`)."""
    return dotted(text_of(node).rstrip("!"))


LANGUAGE = Language(
    name="javascript",
    suffixes=(".js", ".mjs", ".cjs", ".jsx"),
    grammar=tree_sitter_javascript.language,
    query=QUERY + JSX + FIELDS,
    find_module=find_module,
    read_imports=read_imports,
    keys=keys,
    known_keys=known_keys,
    signature=signature,
    bases=lambda node: tuple(bases(node)),
    exported=exported,
    owner=owner,
    refine=refine,
    spelling=spelling,
    receiver=receiver,
    annotated=True,
    scripts=True,
    self_names=frozenset({"this"}),
    callable_kinds=frozenset({"function", "method", "constructor", "class", "property"}),
)
