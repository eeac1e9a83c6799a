"""What is particular to Ruby; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import ruby
from herdr.context.graph.languages.registry import language_of
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader
from herdr.context.graph.resolve import Resolver, symbol_id


def outline(text: str) -> Outline:
    return Reader(ruby.LANGUAGE).read(text.encode())


def names(text: str) -> list[tuple[str, str]]:
    read = outline(text)
    return [(qualified_name(read, place), symbol.kind) for place, symbol in enumerate(read.symbols)]


def calls(text: str) -> list[tuple[str, str]]:
    return [(call.receiver, call.name) for call in outline(text).calls]


def found(files: list[str], path: str, module: str) -> list[str]:
    return list(ruby.find_module(Import(module, 1, "*"), path, MemoryProject(dict.fromkeys(files, ""))))


@pytest.mark.parametrize(
    ("inside", "name", "kind"),
    [
        ("def a; end", "A.a", "method"),
        ("def a = 1", "A.a", "method"),
        ("def self.a; end", "A.a", "method"),
        ("class << self\n def a; end\nend", "A.a", "method"),
        ("private def a; end", "A.a", "method"),
        ("def a=(v); end", "A.a=", "method"),
        ("def <=>(o); end", "A.<=>", "method"),
        ("def initialize; end", "A.initialize", "constructor"),
        ("attr_accessor :b, :a", "A.a", "property"),
        ("private attr_reader :a", "A.a", "property"),
        ("alias a b", "A.a", "method"),
        ("alias_method :a, :b", "A.a", "method"),
        ("define_method(:a) { }", "A.a", "method"),
        ("define_method 'a' do end", "A.a", "method"),
        ("B = 1", "A.B", "constant"),
        ("B = Struct.new(:x)", "A.B", "class"),
        ("B = Class.new(C) do\n def a; end\nend", "A.B.a", "method"),
        ("module B; end", "A.B", "module"),
        ("class B::C; end", "A.B.C", "class"),
    ],
)
def test_names_and_kinds(inside: str, name: str, kind: str) -> None:
    assert (name, kind) in names(f"class A\n{inside}\nend")


def test_names_that_are_made_at_run_time_are_no_symbols() -> None:
    assert names('class A\n define_method("#{b}_c") { }\n attr_reader *NAMES\nend') == [("A", "class")]


def test_functions_are_those_outside_of_every_class() -> None:
    assert names("def a; end\nif x\n  def b; end\nend") == [("a", "function"), ("b", "function")]
    assert names("module M\n def c; end\nend") == [("M", "module"), ("M.c", "method")]


def test_a_path_in_a_class_name_opens_what_is_in_front() -> None:
    assert names("class A::B::C\n def d; end\nend\nmodule E::F; end") == [
        ("A", "namespace"),
        ("A.B", "namespace"),
        ("A.B.C", "class"),
        ("A.B.C.d", "method"),
        ("E", "namespace"),
        ("E.F", "module"),
    ]


def test_bases_are_in_the_order_of_look_ups() -> None:
    text = (
        "class A < B::C\n include D\n include E, ::F\n prepend G\nend\nH = Class.new(I)\nJ = Struct.new(:k)"
    )
    bases = {s.name: s.bases for s in outline(text).symbols}
    assert bases == {"A": ("G", "F", "E", "D", "B.C"), "H": ("I",), "J": ("Struct",)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b; a&.b; a::b; A::B.c; ::A.b", [("a", "b"), ("A.B", "c"), ("A", "b")]),
        ("a 1; b(); c { }; d!; e? 1", [("", "a"), ("", "b"), ("", "c"), ("", "d!"), ("", "e?")]),
        ("@a.b; $a.b; @@a.b", [("@a", "b"), ("$a", "b"), ("@@a", "b")]),
        ("self.a; self.class.a", [("self", "a"), ("self", "class")]),
        ("[1].a; a(1).b; a[0].c", [("?", "a"), ("", "a"), ("?", "b"), ("?", "c")]),
        ("def m\n a\n b = a\n c\nend", [("", "a")]),
        ("def m\n if x\n  a\n  b = 1\n end\nend", [("", "a")]),
        ("def m; super; end\ndef n; super(1); end", [("", "super"), ("", "super")]),
        ("class A\n private\n include B\n attr_reader :c\n d :e\nend", [("", "d")]),
        ("x = a\ny = a + b", []),
    ],
)
def test_calls(text: str, expected: list[tuple[str, str]]) -> None:
    assert calls(text) == expected


def test_what_is_required() -> None:
    text = 'require "a/b"\nrequire_relative "c"\nrequire_relative "../d"\nload "e.rb"\n'
    text += 'autoload :F, "f"\nrequire x\nrequire "g#{h}"'
    assert [(i.module, i.name, i.alias) for i in outline(text).imports] == [
        ("a/b", "*", ""),
        ("./c", "*", ""),
        ("../d", "*", ""),
        ("e.rb", "*", ""),
        ("f", "F", "F"),
    ]


def test_where_a_file_is_looked_for() -> None:
    files = ["lib/a/b.rb", "a/lib/c.rb", "b/lib/c.rb", "app/models/d.rb", "tasks/e.rake", "test/helper.rb"]
    assert found(files, "x.rb", "a/b") == ["lib/a/b.rb"]
    assert found(files, "x.rb", "b") == [], "no folder of its path is on the load path"
    assert found(files, "lib/a/x.rb", "./b") == ["lib/a/b.rb"]
    assert found(files, "lib/x.rb", "./b") == []
    assert found(files, "x.rb", "c") == [], "two files are equally far"
    assert found(files, "a/test/x.rb", "c") == ["a/lib/c.rb"]
    assert found(files, "x.rb", "d") == []
    assert found(files, "test/x.rb", "helper") == ["test/helper.rb"]
    assert found(files, "Rakefile", "tasks/e.rake") == ["tasks/e.rake"]
    assert found(files, "lib/x.rb", "../../y") == []


def test_a_constant_that_only_an_autoloader_finds_is_known_by_name() -> None:
    project = MemoryProject({"app/order.rb": "class Order; end", "app/x.rb": "Order.new\nUnknown.new"})
    read = project.outline("app/x.rb")
    assert read is not None
    resolutions = [Resolver(project).call("app/x.rb", read, call) for call in read.calls]
    assert [(r.kind, [symbol_id(project, p) for p in r.targets]) for r in resolutions] == [
        ("name", ["app/order.rb::Order"]),
        ("external", []),
    ]


@pytest.mark.parametrize("path", ["a.rb", "b/Rakefile", "Gemfile", "c.rake", "d.gemspec", "config.ru"])
def test_which_files_are_ruby(path: str) -> None:
    assert language_of(path) is ruby.LANGUAGE
