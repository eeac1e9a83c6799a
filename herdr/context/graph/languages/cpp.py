"""C++, and headers that are."""

import re

import tree_sitter_cpp
from tree_sitter import Node

from herdr.context.graph.language import Language, dotted, one_line, text_of
from herdr.context.graph.languages import c_family, c_macros
from herdr.context.graph.outline import Kind

QUERY = f"""
{c_family.COMMON_QUERY}
(declaration declarator: (init_declarator
  declarator: (identifier) @name value: (lambda_expression)) @definition.function)
(field_declaration_list (declaration declarator: (_) @name @definition.function))
(field_declaration_list (template_declaration (declaration declarator: (_) @name @definition.function)))
(template_declaration (declaration declarator: (_) @name @definition.variable))
(class_specifier name: (_) @name body: (_)) @definition.class
(namespace_definition name: (namespace_identifier) @name) @definition.namespace
(namespace_definition name: (nested_namespace_specifier
  (namespace_identifier) @name)) @definition.namespace
(namespace_definition name: (nested_namespace_specifier (nested_namespace_specifier
  (namespace_identifier) @name))) @definition.namespace
(namespace_definition name: (nested_namespace_specifier (nested_namespace_specifier (nested_namespace_specifier
  (namespace_identifier) @name)))) @definition.namespace
(alias_declaration name: (_) @name) @definition.type
(concept_definition name: (_) @name) @definition.type
(call_expression function: (qualified_identifier) @name @receiver) @call
(call_expression function: (template_function) @name) @call
(call_expression function: (field_expression
  argument: (_) @receiver field: (template_method) @name)) @call
(new_expression type: (type_identifier) @name) @call
(new_expression type: (template_type) @name) @call
(new_expression type: (qualified_identifier) @name @receiver) @call
(compound_literal_expression type: (type_identifier) @name) @call
(compound_literal_expression type: (template_type) @name) @call
(compound_literal_expression type: (qualified_identifier) @name @receiver) @call
(declaration type: [(type_identifier) (template_type)] @name
  declarator: (init_declarator value: [(argument_list) (initializer_list)])) @call
(declaration type: (qualified_identifier) @name @receiver
  declarator: (init_declarator value: [(argument_list) (initializer_list)])) @call
(call_expression function: (template_function name: (identifier) @made
    arguments: (template_argument_list . (type_descriptor type: (_) @name @receiver)))
  (#any-of? @made "make_unique" "make_shared")) @call
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @made
    arguments: (template_argument_list . (type_descriptor type: (_) @name @receiver))))
  (#any-of? @made "make_unique" "make_shared")) @call
"""

_SPACE = re.compile(r"\s+")
_PLAIN = frozenset({"identifier", "field_identifier", "type_identifier", "namespace_identifier"})
_TEMPLATES = frozenset({"template_function", "template_type", "template_method"})
_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})
_BASES = frozenset({"type_identifier", "qualified_identifier", "template_type"})
_TRANSPARENT = frozenset({"template_declaration", "declaration", "field_declaration"})


def spelling(node: Node) -> str:
    """Return the last name in a declarator, a qualified name or a template's name."""
    if node.type in _PLAIN:
        name = text_of(node)
        return "" if name in c_family.NOT_NAMES else name
    return _spelled(_split(c_family.declared(node).name)[1])


def _split(node: Node) -> tuple[str, Node]:
    """Return the scopes before the last `::` with dots between them, and what stands behind it."""
    scopes = []
    while node.type == "qualified_identifier" or node.type in _TEMPLATES:
        scope, inner = node.child_by_field_name("scope"), node.child_by_field_name("name")
        if inner is None:
            break
        if scope is not None:
            scopes.append(text_of(_split(scope)[1]))
        node = inner
    return ".".join(scopes), node


def _spelled(node: Node) -> str:
    if node.type == "operator_cast":
        return f"operator {text_of(node.child_by_field_name('type'))}"
    name = _SPACE.sub(" ", text_of(node))
    if node.type == "destructor_name":
        return name.replace(" ", "")
    if node.type == "operator_name":
        word = name.removeprefix("operator").strip()
        return f"operator {word}" if word[:1].isalpha() else f"operator{word.replace(' ', '')}"
    return "" if name in c_family.NOT_NAMES else name


def receiver(node: Node) -> str:
    """Return what a method is called on, or the scopes of a name that is called by its whole path."""
    above = node.parent
    if above is not None and above.type != "field_expression":
        return _split(node)[0]
    text = text_of(node)
    return "this" if text == "(*this)" else dotted(text)


def owner(node: Node) -> str:
    """Return the scopes in the name of a function that is defined outside of its class."""
    declarator = node.child_by_field_name("declarator") if node.type == "function_definition" else None
    return _split(c_family.declared(declarator).name)[0] if declarator else ""


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell constructors by their class's name, and lambdas that have a name from variables."""
    value = node.child_by_field_name("value") if node.type == "init_declarator" else None
    if value is not None and value.type == "lambda_expression":
        return "function"
    found = c_family.refine(kind, node)
    if found != "function":
        return found
    declaration = node if node.type == "function_definition" else node.parent
    name, is_function = c_family.declared(node)
    scopes, last = _split(name)
    if declaration is None or not (is_function or last.type == "operator_cast"):
        return None
    if declaration.child_by_field_name("type") is None and last.type in ("identifier", "field_identifier"):
        around = scopes.rpartition(".")[2] or _class_around(declaration)
        if text_of(last) == around:
            return "constructor"
    return "method" if scopes else "function"


def _class_around(member: Node) -> str:
    above = member.parent
    if above is not None and above.type == "template_declaration":
        above = above.parent
    if above is None or above.type != "field_declaration_list" or above.parent is None:
        return ""
    name = above.parent.child_by_field_name("name")
    return text_of(_split(name)[1]) if name else ""


def exported(_name: str, node: Node) -> bool:
    """Tell that neither `static` nor a namespace without a name hides a definition from other files."""
    above = node.parent
    while above is not None and above.type in _TRANSPARENT:
        above = above.parent
    if above is not None and above.type == "compound_statement":
        return False
    if (above is None or above.type != "field_declaration_list") and c_family.is_internal(node):
        return False
    while above is not None and above.type in _NESTING:
        if above.type == "namespace_definition" and above.child_by_field_name("name") is None:
            return False
        above = above.parent
    return True


_NESTING = _CLASSES | _TRANSPARENT | {"declaration_list", "field_declaration_list", "namespace_definition"}


def bases(node: Node) -> tuple[str, ...]:
    """Return the classes that a class names as its bases."""
    if node.type not in _CLASSES:
        return ()
    clause = next((n for n in node.children if n.type == "base_class_clause"), None)
    return tuple(_name(n) for n in (clause.named_children if clause else ()) if n.type in _BASES)


def _name(node: Node) -> str:
    scopes, last = _split(node)
    return ".".join(part for part in (scopes, text_of(last)) if part)


def signature(node: Node) -> str:
    """Return a definition with its template's parameters, without its body and the fields that it sets."""
    body = node.child_by_field_name("body")
    above = node.parent
    if body is None or node.type not in _WITH_BODY:
        return c_family.signature(node)
    before = body.prev_sibling
    end = before if before is not None and before.type == "field_initializer_list" else body
    whole = above if above is not None and above.type == "template_declaration" else node
    return one_line(whole, end.start_byte - whole.start_byte)


_WITH_BODY = _CLASSES | {"function_definition"}

LANGUAGE = Language(
    name="cpp",
    suffixes=(".cc", ".cpp", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".ipp", ".inl", ".tpp"),
    grammar=tree_sitter_cpp.language,
    query=QUERY,
    find_module=c_family.find_module,
    read_imports=c_family.read_imports,
    keys=c_family.keys,
    counterparts=c_family.counterparts,
    signature=signature,
    bases=bases,
    exported=exported,
    owner=owner,
    refine=refine,
    prepare=c_macros.without_macros,
    spelling=spelling,
    receiver=receiver,
    self_names=frozenset({"this"}),
)
