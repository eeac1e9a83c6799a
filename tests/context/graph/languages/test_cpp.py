"""What is particular to C++; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import cpp
from herdr.context.graph.outline import Outline, qualified_name
from herdr.context.graph.parse import Reader
from herdr.context.graph.resolve import Resolver, symbol_id


def outline(text: str) -> Outline:
    return Reader(cpp.LANGUAGE).read(text.encode())


def names(text: str) -> list[tuple[str, str]]:
    read = outline(text)
    return [(qualified_name(read, place), symbol.kind) for place, symbol in enumerate(read.symbols)]


def calls(text: str) -> list[tuple[str, str]]:
    return [(call.receiver, call.name) for call in outline(f"void f() {{ {text} }}").calls]


def resolved(files: dict[str, str], path: str, call: str) -> tuple[str, list[str]]:
    project = MemoryProject(files)
    read = project.outline(path)
    assert read is not None
    found = next(c for c in read.calls if f"{c.receiver}.{c.name}".strip(".") == call)
    resolution = Resolver(project).call(path, read, found)
    return resolution.kind, [symbol_id(project, place) for place in resolution.targets]


@pytest.mark.parametrize(
    ("definition", "name", "kind"),
    [
        ("int Cart::total() const { return 1; }", "Cart.total", "method"),
        ("int a::b::Cart::total() { return 1; }", "a.b.Cart.total", "method"),
        ("template <class T> T Box<T>::get() { return t_; }", "Box.get", "method"),
        ("template <> int Box<std::pair<int, int>>::get() { return 1; }", "Box.get", "method"),
        ("Cart::Cart(int n) : n_(n) {}", "Cart.Cart", "constructor"),
        ("Box<T>::Box() {}", "Box.Box", "constructor"),
        ("Cart::~Cart() {}", "Cart.~Cart", "method"),
        ("bool Cart::operator==(const Cart& o) const { return true; }", "Cart.operator==", "method"),
        ("T& Cart::operator [] (int n) { return n; }", "Cart.operator[]", "method"),
        ("Cart::operator bool() const { return true; }", "Cart.operator bool", "method"),
        ("void *operator new(size_t n) { return 0; }", "operator new", "function"),
        ("std::vector<int>& all(int a) { return v; }", "all", "function"),
        ("auto size() -> int { return 1; }", "size", "function"),
        ("auto twice = [](int n) { return n; };", "twice", "function"),
        ('extern "C" int f(void);', "f", "function"),
        ("template <class T> void f(T);", "f", "function"),
        ("template <class T> constexpr bool is_int = false;", "is_int", "constant"),
        ("using Price = long;", "Price", "type"),
        ("template <class T> concept Number = true;", "Number", "type"),
        ("enum class Kind : int { };", "Kind", "enum"),
        ("class API_EXPORT Cart final : Base { };", "Cart", "class"),
        ("TEST_F(CartTest, Price) { }", "TEST_F", "function"),
    ],
)
def test_names_and_kinds(definition: str, name: str, kind: str) -> None:
    assert (name, kind) in names(definition)


def test_what_stands_in_a_class() -> None:
    text = (
        "class A {\n public:\n  A();\n  explicit A(int);\n  ~A();\n  A& operator=(const A&) = delete;\n"
        "  static A make();\n  virtual int size() const = 0;\n  template <class T> void put(T);\n"
        "  int a = 0, *b;\n  int (*call)(int);\n  int guarded GUARDED_BY(mutex_);\n"
        "  void locked() EXCLUSIVE_LOCKS_REQUIRED(mutex_);\n  friend void swap(A&, A&);\n  class Later;\n};"
    )
    read = outline(text)
    assert [(s.name, s.kind, s.signature) for s in read.symbols] == [
        ("A", "class", "class A"),
        ("A", "constructor", "A()"),
        ("A", "constructor", "explicit A(int)"),
        ("~A", "method", "~A()"),
        ("operator=", "method", "A& operator=(const A&) = delete"),
        ("make", "method", "static A make()"),
        ("size", "method", "virtual int size() const = 0"),
        ("put", "method", "void put(T)"),
        ("a", "field", "int a = 0"),
        ("b", "field", "int *b"),
        ("call", "field", "int (*call)(int)"),
        ("guarded", "field", "int guarded"),
        ("locked", "method", "void locked()"),
    ]
    assert all(s.exported for s in read.symbols)


def test_nested_namespaces_are_those_of_their_names() -> None:
    assert names("namespace a::b::c { void f(); }") == [
        ("a", "namespace"),
        ("a.b", "namespace"),
        ("a.b.c", "namespace"),
        ("a.b.c.f", "function"),
    ]


def test_what_other_files_cannot_name() -> None:
    text = "namespace { int a(); class B { int c(); }; }\nstatic int d() { return 1; }\nint e() { auto g = [] {}; }"
    assert {s.name: s.exported for s in outline(text).symbols} == {
        **dict.fromkeys(("a", "B", "c", "d", "g"), False),
        "e": True,
    }


def test_bases() -> None:
    text = "struct A : B, private virtual c::D<int>, public E<F> { };\nclass G { };"
    assert [s.bases for s in outline(text).symbols] == [("B", "c.D", "E"), ()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b(); a->b(); a.b->c();", [("a", "b"), ("a.b", "c")]),
        ("N::f(); a::b::C<int>::g<T>(); ::h();", [("N", "f"), ("a.b.C", "g"), ("", "h")]),
        ("this->f(); (*this).g(); x[0].h();", [("this", "f"), ("this", "g"), ("?", "h")]),
        ("f<int>(); a.g<int>();", [("", "f"), ("a", "g")]),
        ("new A(); new n::B<int>(1);", [("", "A"), ("n", "B")]),
        ("A a(1); n::B b{2}; C<int> c(3); int d(4); D e;", [("", "A"), ("n", "B"), ("", "C")]),
        ("x = A{1}; y = A(2);", [("", "A")]),
        ("std::make_unique<n::A>(1);", [("std", "make_unique"), ("n", "A")]),
        ("static_cast<int>(x); sizeof(x); throw E(1);", [("", "E")]),
    ],
)
def test_calls(text: str, expected: list[tuple[str, str]]) -> None:
    assert calls(text) == expected


HEADER = "namespace n {\nclass Base { protected: void log(); };\nclass A : public Base { void f(); void g(); };\n}\n"


def test_a_plain_call_may_be_a_member_that_is_inherited() -> None:
    files = {"a.h": HEADER, "log.h": "void log();\n", "a.cc": '#include "a.h"\n#include "log.h"\n'}
    files["a.cc"] += "namespace n { void A::f() { log(); g(); this->log(); } }"
    assert resolved(files, "a.cc", "log") == ("exact", ["a.h::n.Base.log"])
    assert resolved(files, "a.cc", "g") == ("exact", ["a.h::n.A.g"])
    assert resolved(files, "a.cc", "this.log") == ("exact", ["a.h::n.Base.log"])


def test_a_member_of_a_base_that_is_not_known_may_hide_a_function() -> None:
    files = {"log.h": "void log();\n", "a.cc": '#include "log.h"\n#include <gtest.h>\n'}
    files["a.cc"] += "class T : public testing::Test { void f() { log(); } };\nvoid g() { log(); }"
    assert resolved(files, "a.cc", "log") == ("name", ["log.h::log"])
    files["a.cc"] = files["a.cc"].replace(" : public testing::Test", "")
    assert resolved(files, "a.cc", "log") == ("exact", ["log.h::log"])


def test_names_of_the_standard_library_are_outside() -> None:
    files = {"a.cc": "void move(int a);\nvoid f() { std::move(1); move(2); }"}
    assert resolved(files, "a.cc", "std.move") == ("external", [])
    assert resolved(files, "a.cc", "move") == ("exact", ["a.cc::move"])
