"""TypeScript, and its dialect with JSX, which has a grammar of its own."""

from collections.abc import Iterator

import tree_sitter_typescript
from tree_sitter import Node

from herdr.context.graph.language import text_of
from herdr.context.graph.languages import javascript
from herdr.context.graph.languages.javascript import JSX
from herdr.context.graph.outline import Kind

QUERY = (
    javascript.QUERY
    + """
(abstract_class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(type_alias_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name) @definition.enum
(enum_body name: (property_identifier) @name @definition.constant)
(enum_body (enum_assignment name: (property_identifier) @name) @definition.constant)
(internal_module name: (identifier) @name) @definition.namespace
(internal_module name: (nested_identifier object: (identifier) @name)) @definition.namespace
(internal_module name: (nested_identifier property: (property_identifier) @name)) @definition.namespace
(module name: (string (string_fragment) @name)) @definition.module
(module name: (identifier) @name) @definition.module

(function_signature name: (identifier) @name) @definition.function
(class_body (method_signature
  name: [(property_identifier) (private_property_identifier)] @name) @definition.method)
(class_body (abstract_method_signature name: (property_identifier) @name) @definition.method)
(interface_body (method_signature name: (property_identifier) @name) @definition.method)
(interface_body (property_signature name: (property_identifier) @name) @definition.field)
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name) @definition.field
(required_parameter (accessibility_modifier) pattern: (identifier) @name) @definition.field
(required_parameter "readonly" pattern: (identifier) @name) @definition.field
(optional_parameter (accessibility_modifier) pattern: (identifier) @name) @definition.field
(ambient_declaration (_ (variable_declarator name: (identifier) @name) @definition.variable))

(internal_module (statement_block
  (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable)))
(module (statement_block (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable)))

(call_expression function: [(await_expression (identifier) @name) (non_null_expression (identifier) @name)]) @call
(call_expression function: [(await_expression (member_expression
    object: (_) @receiver property: [(property_identifier) (private_property_identifier)] @name))
  (non_null_expression (member_expression
    object: (_) @receiver property: [(property_identifier) (private_property_identifier)] @name))]) @call
(program (_ (variable_declarator value: (_ (object
  (method_definition name: (property_identifier) @name) @definition.function)))))
(program (_ (variable_declarator value: (_ (object
  (pair key: (property_identifier) @name value: (arrow_function)) @definition.function)))))
(export_statement (_ (variable_declarator value: (_ (object
  (method_definition name: (property_identifier) @name) @definition.function)))))
(export_statement (_ (variable_declarator value: (_ (object
  (pair key: (property_identifier) @name value: (arrow_function)) @definition.function)))))
"""
)
"""The grammar takes `await load<Cart>(id)` for a call of `await load`."""

_TYPES = ("type_identifier", "identifier", "nested_type_identifier", "member_expression", "generic_type")


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell getters, and members that only interfaces have."""
    if node.type in ("method_signature", "abstract_method_signature"):
        accessor = any(child.type in ("get", "set") for child in node.children[:5])
        return "property" if accessor else "method"
    return kind if kind in ("field", "constant") and not _is_given(node) else javascript.refine(kind, node)


def _is_given(node: Node) -> bool:
    return node.child_by_field_name("value") is not None and node.type == "public_field_definition"


def bases(node: Node) -> tuple[str, ...]:
    """Return what a class extends and implements, and what an interface extends, without type arguments."""
    if node.type in ("variable_declarator", "assignment_expression"):
        node = node.child_by_field_name("value") or node.child_by_field_name("right") or node
    return tuple(text_of(part) for part in _named(node))


def _named(node: Node) -> Iterator[Node]:
    for clause in node.named_children:
        if clause.type == "class_heritage":
            yield from _named(clause)
        elif clause.type in ("extends_clause", "implements_clause", "extends_type_clause"):
            for part in clause.named_children:
                if part.type in _TYPES:
                    yield (part.child_by_field_name("name") or part) if part.type == "generic_type" else part


def exported(name: str, node: Node) -> bool:
    """Tell whether a definition stands in an export, or is a member that is not private."""
    if node.type in ("required_parameter", "optional_parameter"):
        return not _is_private(node)
    ambient = node.parent
    if ambient is not None and ambient.type == "ambient_declaration":
        ambient = ambient.parent
        return ambient is None or ambient.type in ("program", "export_statement")
    return not _is_private(node) and javascript.exported(name, node)


def _is_private(node: Node) -> bool:
    modifier = next((c for c in node.children[:5] if c.type == "accessibility_modifier"), None)
    return text_of(modifier) == "private"


LANGUAGE = javascript.LANGUAGE._replace(
    name="typescript",
    suffixes=(".ts", ".mts", ".cts"),
    grammar=tree_sitter_typescript.language_typescript,
    query=QUERY,
    refine=refine,
    bases=bases,
    exported=exported,
)

TSX = LANGUAGE._replace(
    name="tsx",
    suffixes=(".tsx",),
    grammar=tree_sitter_typescript.language_tsx,
    query=QUERY + JSX,
)
