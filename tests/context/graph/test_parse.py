"""One file's bytes into its outline: what is the same for every language."""

import pytest

from herdr.context.graph.languages.registry import by_name
from herdr.context.graph.outline import LINES_MAX, SIGNATURE_MAX, Outline, qualified_name
from herdr.context.graph.parse import DEPTH_MAX, NOISE_MAX, RECEIVER_BYTES_MAX, Reader


def read(source: str, language: str = "python") -> Outline:
    return Reader(by_name(language)).read(source.encode())


def names(outline: Outline) -> list[str]:
    return [qualified_name(outline, place) for place in range(len(outline.symbols))]


def signatures(source: str, language: str = "python") -> list[str]:
    return [symbol.signature for symbol in read(source, language).symbols]


def test_each_call_belongs_to_the_innermost_function() -> None:
    outline = read("a()\ndef f():\n  b()\n  def g():\n    c()\n  d()\nclass K:\n  e()\nh()\n")
    callers = {call.name: names(outline)[call.caller] if call.caller >= 0 else "" for call in outline.calls}
    assert callers == {"a": "", "b": "f", "c": "f.g", "d": "f", "e": "K", "h": ""}


def test_calls_of_one_name_are_one_call() -> None:
    outline = read("def f(x):\n  x.a(); x.a()\n  x.a()\n  a()\n  y.a()\n")
    assert [(call.receiver, call.lines) for call in outline.calls] == [("x", (2, 3)), ("", (4,)), ("y", (5,))]


def test_not_every_line_of_a_call_is_kept() -> None:
    lines = read("a()\n" * (LINES_MAX + 5)).calls[0].lines
    assert lines == tuple(range(1, LINES_MAX + 1))


def test_receivers_are_dotted_names_or_nothing() -> None:
    source = "a.b.c.f()\n(a . b)\\\n .f()\nf()\nx[0].f()\n'x'.f()\ng().f()\nsuper().f()\nself.x.f()\n"
    assert [c.receiver for c in read(source).calls if c.name == "f"] == ["a.b.c", "?", "", "super", "self.x"]


def test_what_is_assigned_again_is_no_second_definition() -> None:
    outline = read("x = 1\nx = 2\nX = 1\nclass K:\n  x = 1\n  x: int = 2\nif x:\n  X = 3\ndef f(): x = 3\n")
    assert names(outline) == ["x", "X", "K", "K.x", "f"]
    assert names(read("def f(): pass\ndef f(): pass\n")) == ["f", "f"]


def test_local_functions_are_not_seen_from_outside() -> None:
    outline = read("def f():\n  def g(): pass\n  class K:\n    def h(self): pass\ndef _p(): pass\n")
    assert {s.name: s.exported for s in outline.symbols} == {
        "f": True,
        "g": False,
        "K": False,
        "h": True,
        "_p": False,
    }


def test_a_list_of_exports_adds_to_them() -> None:
    outline = read("__all__ = ['_a']\n__all__ += ('_b',)\ndef _a(): pass\n_b = 1\n_c = 2\nd = 3\n")
    assert [s.name for s in outline.symbols if s.exported] == ["__all__", "_a", "_b", "d"]


def test_signatures_fit_on_one_line() -> None:
    source = 'def f(\n    a: int,  # "and" (so\n    # nothing\n    b="#",\n) -> (\n    int\n):  # why\n  pass'
    assert signatures(source) == ['def f(a: int, b="#") -> (int)']
    (long,) = signatures(f"def f({', '.join(f'argument{n}' for n in range(100))}): pass\n")
    assert (len(long), long[-1]) == (SIGNATURE_MAX, "…")


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("javascript", "function f(a /* b) */, // c\n  d) { // e\n}", "function f(a, d)"),
        ("go", "package p\nfunc f(\n\ta int, // b\n) error {\n}", "func f(a int) error"),
        ("rust", "fn f(\n    a: u8, // b\n    /* c */ d: u8,\n) -> u8 {\n}", "fn f(a: u8, d: u8) -> u8"),
        ("java", "class A {\n  int f(int a, // b\n    int c) {}\n}", "int f(int a, int c)"),
        ("php", "<?php\nfunction f($a, # b\n  $c) {}", "function f($a, $c)"),
    ],
)
def test_signatures_have_no_comments(language: str, source: str, expected: str) -> None:
    assert signatures(source, language)[-1].replace(" ,", ",") == expected


def test_lines_are_those_of_an_editor() -> None:
    for source, lines in [("", 0), ("x", 1), ("x\n", 1), ("x\n\n", 2), ("\r\nx", 2)]:
        assert read(source).lines == lines
    outline = read("\r\n# ü\r\ndef f():\r\n    pass\r\n\r\n\r\nx = 1")
    assert [(s.line, s.end_line) for s in outline.symbols] == [(3, 4), (7, 7)]


def test_a_definition_ends_in_its_last_line() -> None:
    outline = read("#define A 1\n#define B \\\n  2\n\n", "c")  # the grammar counts the line break as theirs
    assert [(s.line, s.end_line) for s in outline.symbols] == [(1, 1), (2, 3)]


def test_a_broken_file_shows_what_can_be_read() -> None:
    outline = read("def f(): pass\n)))\nclass K:\n    def g(self): return h(\n")
    assert outline.broken and {"f", "K"} <= set(names(outline))
    assert not read("def f(): pass\n").broken


def test_what_is_nested_too_deep_is_left_out() -> None:
    outline = read("".join(f"f{n}(" for n in range(DEPTH_MAX)) + ")" * DEPTH_MAX + "\ndef g(): pass\n")
    assert names(outline) == ["g"]
    called = [call.name for call in outline.calls]
    assert called == [f"f{n}" for n in range(len(called))]
    assert DEPTH_MAX / 3 < len(called) < DEPTH_MAX
    chain = read("a" + ".b()" * 300)
    assert {call.receiver for call in chain.calls} == {"a", "?"}
    assert read(f"{'a' * RECEIVER_BYTES_MAX}.f()").calls[0].receiver == "a" * RECEIVER_BYTES_MAX
    assert read(f"{'a' * (RECEIVER_BYTES_MAX + 1)}.f()").calls[0].receiver == "?"


def test_noise_is_no_program() -> None:
    outline = read("(" * (NOISE_MAX + 1) + "\ndef g(): pass\n")
    assert (outline.broken, outline.symbols, outline.calls) == (True, (), ())
    assert read("(" * 1000 + "\n").broken


def test_headings_reach_to_the_next_of_their_level() -> None:
    outline = read("# A\n### B\n## C\nx\n# D\ny\n", "markdown")
    assert names(outline) == ["A", "A.B", "A.C", "D"]
    assert [(s.line, s.end_line) for s in outline.symbols] == [(1, 4), (2, 2), (3, 4), (5, 6)]
