"""What is nested 100,000 deep ends neither a process nor an afternoon. Each is read in a process of its own."""

import subprocess
import sys

import pytest

from herdr.context.graph.languages.registry import LANGUAGES

DEPTH = 100_000
READ = """
import sys
from herdr.context.graph.languages.registry import by_name
from herdr.context.graph.parse import Reader
outline = Reader(by_name(sys.argv[1])).read(sys.stdin.buffer.read())
print(len(outline.symbols), len(outline.calls), outline.broken)
"""
BRACKETS = [("(", ")"), ("[", "]"), ("{", "}")]
OF_THE_LANGUAGE = {
    "python": [("f(", ")"), ("a" + ".b()" * DEPTH, ""), ("lambda: ", ""), ("not ", ""), ("if x:", "")],
    "javascript": [
        ("function a(){", "}"),
        ("class A{m(){", "}}"),
        ("x=>", ""),
        ("<a>", "</a>"),
        ("`${", "}`"),
    ],
    "typescript": [("namespace a{", "}"), ("A<", ">"), ("x?y:", "")],
    "tsx": [("<A b={", "}/>"), ("function a(){", "}")],
    "go": [("func a(){", "}"), ("struct{a ", "}"), ("*", "")],
    "rust": [("mod a{", "}"), ("fn a(){", "}"), ("Box<", ">"), ("&", ""), ("/*", "*/")],
    "java": [("class A{", "}"), ("a(", ")"), ("A<", ">")],
    "csharp": [("namespace a{", "}"), ("class A{", "}"), ("a(", ")"), ("A<", ">")],
    "c": [("int a(){", "}"), ("struct a{", "};"), ("#if 1\n", "#endif\n"), ("*", "")],
    "cpp": [("namespace a{", "}"), ("class A{", "};"), ("a<", ">"), ("[]{", "}")],
    "ruby": [("class A;", "end;"), ("def a;", "end;"), ("a do ", "end "), ('"#{', '}"')],
    "php": [("<?php function a(){", "}"), ("<?php class A{", "}"), ("<?php a(", ")")],
    "markdown": [("> ", ""), ("- ", ""), ("# a\n", ""), ("<a>\n", "")],
}


SLOW = {("java", "A<"): 10_000, ("csharp", "A<"): 10_000}
"""Two grammars take time by the square of type arguments that nobody closes: 100,000 take a minute in the parser,
which nothing but the end of its process ends. The workers' deadline is for that."""


def read(language: str, source: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", READ, language], input=source.encode(), capture_output=True, timeout=60
    )
    assert run.returncode == 0, (run.returncode, run.stderr[-2000:])
    return run.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("language", [language.name for language in LANGUAGES])
def test_deep_nesting(language: str) -> None:
    for first, last in BRACKETS + OF_THE_LANGUAGE.get(language, []):
        depth = 1 if len(first) > 1000 else SLOW.get((language, first), DEPTH)
        for source in (first * depth + last * depth, first * depth):
            assert read(language, source)
