"""Ruby.

A name alone may be a local variable, so it counts as a call only with arguments, parentheses or a receiver, or as
a statement that others follow, where a variable would do nothing. Constants that an autoloader finds by their
spelling are not followed: only `require`, `require_relative`, `load` and `autoload` with a path are.
"""

from collections.abc import Iterable, Iterator, Sequence

import tree_sitter_ruby
from tree_sitter import Node

from herdr.context.graph.language import Files, Language, dotted, first_line, plain_signature, text_of
from herdr.context.graph.languages.paths import ending, nearest, normal
from herdr.context.graph.outline import Import, Kind

_STATEMENTS = """[(call) (identifier) (assignment) (operator_assignment) (if) (unless) (if_modifier)
  (unless_modifier) (return) (while) (until) (case) (begin) (yield) (for) (binary) (super) (self)
  (instance_variable) (constant) (string) (array) (hash) (true) (false) (nil) (integer) (element_reference)]"""

_NOT_CALLS = (
    "^(require|require_relative|autoload|load|include|extend|prepend|attr_(accessor|reader|writer)|private|public"
    "|protected|module_function|private_constant|private_class_method|define_method|alias_method|lambda|proc)$"
)
"""What says something about the file or the class; `#not-any-of?` would be plainer, but lets everything through."""


def _opened(kind: str) -> str:
    """Return patterns for the names in front of a class's own: `A` and `B` of `class A::B::C`."""
    name = "[(constant) @name (scope_resolution name: (constant) @name)]"
    patterns = []
    for _ in range(3):
        name = f"(scope_resolution scope: {name})"
        patterns.append(f"({kind} name: {name}) @definition.namespace")
    return "\n".join(reversed(patterns))


QUERY = f"""
{_opened("class")}
{_opened("module")}
(class name: (_) @name) @definition.class
(module name: (_) @name) @definition.module
(method name: (_) @name) @definition.function
(singleton_method name: (_) @name) @definition.method
(alias name: (_) @name) @definition.method
(assignment left: (constant) @name) @definition.constant
((call !receiver method: (identifier) @_attr arguments: (argument_list (simple_symbol) @name @definition.property))
  (#any-of? @_attr "attr_accessor" "attr_reader" "attr_writer" "cattr_accessor" "mattr_accessor" "class_attribute"))
((call !receiver method: (identifier) @_defined arguments: (argument_list . [(simple_symbol) (string)] @name))
  @definition.method (#any-of? @_defined "define_method" "alias_method" "define_singleton_method"))
((call !receiver method: (identifier) @_require) @import
  (#any-of? @_require "require" "require_relative" "load" "autoload"))
((call method: [(identifier) (constant)] @name !receiver) @call
  (#not-match? @name "{_NOT_CALLS}"))
(call receiver: (_) @receiver method: [(identifier) (constant)] @name) @call
(super) @name @call
((body_statement (identifier) @name @call . {_STATEMENTS})
  (#not-match? @name "{_NOT_CALLS}"))
((then (identifier) @name @call . {_STATEMENTS}))
"""

ROOTS = frozenset({"", "lib", "test", "spec", "app", "ext"})
"""Folders that are on `$LOAD_PATH` while a gem or its tests run."""

_MIXED_IN = frozenset({"include", "prepend", "extend"})
_MAKERS = frozenset({"Struct.new", "Class.new", "Data.define", "Module.new"})
_ENDINGS = ("", ".rb")
_SUFFIXES = (".rb", ".rake", ".gemspec", ".ru")


def spelling(node: Node) -> str:
    """Return a name without its scopes, a symbol without its colon, a setter with its `=`."""
    if node.type == "scope_resolution":
        return text_of(node.child_by_field_name("name"))
    text = text_of(node)
    if node.type in ("simple_symbol", "string"):
        return "" if "#{" in text else text.strip(":\"'")
    return text


def receiver(node: Node) -> str:
    """Return what a method is called on; `self.class` has the methods of the same class."""
    text = dotted(text_of(node).removeprefix("::").replace("&.", "."))
    return "self" if text == "self.class" else text


def refine(kind: Kind, node: Node) -> Kind | None:
    """Tell methods from functions, and classes that a call makes from constants."""
    if kind == "function":
        name = text_of(node.child_by_field_name("name"))
        return ("constructor" if name == "initialize" else "method") if _is_inside(node) else "function"
    if kind == "constant" and _made(node) in _MAKERS:
        return "module" if _made(node) == "Module.new" else "class"
    return kind


def _is_inside(node: Node) -> bool:
    above = node.parent
    while above is not None and above.type not in ("class", "module", "singleton_class"):
        above = above.parent
    return above is not None


def _made(node: Node) -> str:
    value = node.child_by_field_name("right") if node.type == "assignment" else None
    if value is None or value.type != "call":
        return ""
    made = value.child_by_field_name("receiver"), value.child_by_field_name("method")
    return ".".join(map(text_of, made))


def signature(node: Node) -> str:
    """Return a definition up to its body; an attribute with the word that makes it."""
    if node.type == "simple_symbol":
        call = node.parent.parent if node.parent else None
        return f"{text_of(call.child_by_field_name('method') if call else None)} {text_of(node)}"
    if node.type == "class":
        base = text_of(node.child_by_field_name("superclass"))
        return " ".join(part for part in ("class", text_of(node.child_by_field_name("name")), base) if part)
    if node.type == "module":
        return f"module {text_of(node.child_by_field_name('name'))}"
    if node.type in ("method", "singleton_method") and node.child_by_field_name("body") is not None:
        return plain_signature(node)
    return first_line(node).removesuffix("end").rstrip("; ")


def bases(node: Node) -> tuple[str, ...]:
    """Return what a class gets methods from, in the order in which Ruby looks: modules, the last one first."""
    if node.type == "assignment":
        return _made_from(node)
    if node.type not in ("class", "module"):
        return ()
    body = node.child_by_field_name("body")
    mixed = [name for part in (body.named_children if body else ()) for name in _mixed_in(part)]
    superclass = node.child_by_field_name("superclass")
    above = [_constant(part) for part in (superclass.named_children if superclass else ())]
    return tuple(name for name in (*reversed(mixed), *above) if name)


def _mixed_in(part: Node) -> Iterator[str]:
    if part.type == "call" and text_of(part.child_by_field_name("method")) in _MIXED_IN:
        arguments = part.child_by_field_name("arguments")
        yield from map(_constant, arguments.named_children if arguments else ())


def _made_from(node: Node) -> tuple[str, ...]:
    made, _, word = _made(node).partition(".")
    if (made, word) != ("Class", "new"):
        return (made,) if made in ("Struct", "Data") else ()
    value = node.child_by_field_name("right")
    arguments = value.child_by_field_name("arguments") if value else None
    return tuple(filter(None, map(_constant, arguments.named_children[:1] if arguments else ())))


def _constant(node: Node) -> str:
    known = node.type in ("constant", "scope_resolution")
    return dotted(text_of(node).removeprefix("::")).replace("?", "") if known else ""


def exported(_name: str, node: Node) -> bool:
    """Tell that a method is not made private where it is defined; `private` lines are not followed."""
    above = node.parent
    call = above.parent if above is not None and above.type == "argument_list" else None
    return call is None or text_of(call.child_by_field_name("method")) not in (
        "private",
        "private_class_method",
    )


def read_imports(node: Node) -> Iterator[Import]:
    """Yield the file of one `require`; a relative one begins with a dot."""
    arguments = node.child_by_field_name("arguments")
    given = arguments.named_children if arguments else ()
    if not given or given[-1].type != "string" or any(n.type == "interpolation" for n in given[-1].children):
        return
    word, line = text_of(node.child_by_field_name("method")), node.start_point.row + 1
    module = spelling(given[-1])
    if word == "autoload":
        name = spelling(given[0])
        yield Import(module, line, name, name)
    elif module:
        relative = word == "require_relative" and not module.startswith((".", "/"))
        yield Import(f"./{module}" if relative else module, line, "*")


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the file that is required: beside this one, or under a folder that is on the load path."""
    folder = path.rpartition("/")[0]
    for end in _ENDINGS:
        if found.module.startswith("."):
            file = normal(f"{folder}/{found.module}{end}")
            if file is not None and files.has(file):
                return (file,)
        else:
            file = f"{found.module}{end}"
            at = [p for p in ending(file, files) if p.endswith(_SUFFIXES) and _root(p, file) in ROOTS]
            if at:
                return nearest(at, folder)
    return ()


def _root(path: str, tail: str) -> str:
    return path[: -len(tail)].rstrip("/").rpartition("/")[2]


def keys(path: str) -> Iterable[str]:
    """Return the file's own name; with two dots, what imports end in stands between them."""
    parts = path.rpartition("/")[2].split(".")
    return {parts[0], parts[-2] if len(parts) > 1 else parts[0]}


LANGUAGE = Language(
    name="ruby",
    suffixes=_SUFFIXES,
    filenames=("Gemfile", "Rakefile", "Guardfile", "Capfile", "Vagrantfile"),
    grammar=tree_sitter_ruby.language,
    query=QUERY,
    find_module=find_module,
    read_imports=read_imports,
    keys=keys,
    signature=signature,
    bases=bases,
    exported=exported,
    refine=refine,
    spelling=spelling,
    receiver=receiver,
    self_names=frozenset({"self"}),
)
