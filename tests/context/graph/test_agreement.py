"""Agreement with independent readers of the same sources: Python's own parser, and universal-ctags."""

import ast
import json
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdr.context.graph.languages.registry import by_name, language_of
from herdr.context.graph.outline import LINES_MAX, Outline, qualified_name
from herdr.context.graph.parse import Reader
from herdr.context.graph.reading import Skip, source_text

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
FILES_MAX = 200  # some seconds
FIXTURES = Path(__file__).parent / "fixtures"
Found = set[tuple[str, str, int]]


def standard_library() -> list[Path]:
    """Return modules and packages of all of it, tests left out: some of them are broken on purpose."""
    tree = (
        p
        for p in sorted(STANDARD_LIBRARY.rglob("*.py"))
        if not {"test", "tests", "site-packages"} & {*p.parts}
    )
    return [p for p in tree if "dist-packages" not in p.parts and "lib2to3" not in p.parts][:FILES_MAX]


def test_python_agrees_with_its_own_parser() -> None:
    reader = Reader(by_name("python"))
    symbols = calls = imports = 0
    paths = standard_library()
    assert len(paths) == FILES_MAX, f"no standard library in {STANDARD_LIBRARY}"
    for path in paths:
        source = source_text(path.name, path.read_bytes())
        if isinstance(source, Skip):
            continue
        tree, outline = ast.parse(source), reader.read(source)
        assert not outline.broken, path
        assert _defined_by(outline) == set(_definitions(tree, ())), path
        theirs = set(_calls(tree))
        assert _called_by(outline) - theirs == set(), path
        assert {name for name, line in theirs - _called_by(outline)} <= _called_often(outline), path
        assert _imported_by(outline) == set(_imports(tree)), path
        symbols += len(outline.symbols)
        calls += len(outline.calls)
        imports += len(outline.imports)
    assert (symbols > 5_000, calls > 10_000, imports > 500) == (True, True, True), (
        symbols,
        calls,
        imports,
    )


def _defined_by(outline: Outline) -> Found:
    return {
        ("class" if symbol.kind == "class" else "function", qualified_name(outline, place), symbol.line)
        for place, symbol in enumerate(outline.symbols)
        if symbol.signature.startswith(("class ", "def ", "async def "))
    }


def _definitions(node: ast.AST, around: tuple[str, ...]) -> Iterator[tuple[str, str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "class" if isinstance(child, ast.ClassDef) else "function"
            yield kind, ".".join((*around, child.name)), child.lineno
            yield from _definitions(child, (*around, child.name))
        else:
            yield from _definitions(child, around)


def _called_by(outline: Outline) -> set[tuple[str, int]]:
    return {(call.name, line) for call in outline.calls for line in call.lines}


def _called_often(outline: Outline) -> set[str]:
    """Return what one function calls so often that not all lines are kept."""
    return {call.name for call in outline.calls if len(call.lines) == LINES_MAX}


def _calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        called = [node.func] if isinstance(node, ast.Call) else getattr(node, "decorator_list", [])
        for function in called:
            if isinstance(function, ast.Name):
                yield function.id, function.lineno
            elif isinstance(function, ast.Attribute):
                assert function.end_lineno is not None
                yield function.attr, function.end_lineno


def _imported_by(outline: Outline) -> set[tuple[str, str, str, int]]:
    return {(i.module, i.name, i.alias, i.line) for i in outline.imports}


def _imports(tree: ast.AST) -> Iterator[tuple[str, str, str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, "", name.asname or name.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            module = "." * node.level + (node.module or "")
            for name in node.names:
                if name.name == "*":
                    yield module, "*", "", node.lineno
                else:
                    yield module, name.name, name.asname or name.name, node.lineno


CTAGS = shutil.which("ctags")
NEEDS_CTAGS = "universal-ctags is not installed; .ci/run installs it (as root, with apt-get) and runs this"
DEFINING = {"class", "function", "method", "member", "interface", "struct", "union", "enum", "trait", "func"}

APART = {
    ("c", "TEST_CASE", "function"): "a macro is called; its first argument is what it defines",
    ("c", "money_t", "function"): "a function's type, above its name",
    ("c", "round_up", "function"): "stands in the line below its type",
    ("cpp", "operator <<", "function"): "spelled with a space",
    ("cpp", "operator ==", "function"): "spelled with a space",
    ("csharp", "~Program", "method"): "called by its class's name here",
    ("javascript", "Cart", "class"): "`Cart.prototype` once more",
    ("javascript", "hidden", "method"): "`#hidden` is its name",
    ("javascript", "parseText", "function"): "only known within itself; outside it is `parse`",
    ("php", "visit", "function"): "a function in a local variable",
    ("python", "EXACT", "variable"): "its second value",
}
"""What universal-ctags calls a definition and this does not, and why that is right."""


def _tags(*arguments: str) -> Iterator[dict[str, str]]:
    """Yield the definitions that have a name of their own."""
    command = [CTAGS or "", "--output-format=json", "--fields=+nK", "-f", "-", *arguments]
    for line in subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.splitlines():
        tag = json.loads(line)
        if tag["kind"] in DEFINING and not tag["name"].startswith(("__anon", "Anonymous")):
            yield tag


def _has_json() -> bool:
    features = subprocess.run([CTAGS or "", "--list-features"], capture_output=True, check=False, timeout=60)
    return b"json" in features.stdout


@pytest.mark.skipif(CTAGS is None, reason=NEEDS_CTAGS)
@pytest.mark.parametrize("language", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_ctags_finds_no_more_than_we_do(language: str) -> None:
    if not _has_json():
        pytest.skip(NEEDS_CTAGS)
    missing, seen = set(), 0
    outlines: dict[str, Found] = {}
    for tag in _tags("-R", str(FIXTURES / language)):
        path = tag["path"]
        spoken = language_of(path)
        if spoken is None or spoken.read is not None:
            continue
        if path not in outlines:
            symbols = Reader(spoken).read(Path(path).read_bytes()).symbols
            outlines[path] = {("", symbol.name, symbol.line) for symbol in symbols}
        seen += 1
        if ("", tag["name"], int(tag["line"])) not in outlines[path]:
            missing.add((language, tag["name"], tag["kind"]))
    assert missing <= APART.keys(), missing - APART.keys()
    assert seen > 5 or language == "markdown"


MADE = re.compile(rb"^[ \t]*(\w+)[^=\n]*= *(?:lambda\b|\w*namedtuple\()", re.MULTILINE)
"""What looks like a variable until one sees what it is given."""


@pytest.mark.skipif(CTAGS is None, reason=NEEDS_CTAGS)
def test_ctags_agrees_on_python(tmp_path: Path) -> None:
    if not _has_json():
        pytest.skip(NEEDS_CTAGS)
    reader = Reader(by_name("python"))
    paths = [
        path for path in standard_library() if not isinstance(source_text(path.name, path.read_bytes()), Skip)
    ]
    listed = tmp_path / "files"
    listed.write_text("\n".join(map(str, paths)))
    theirs: dict[str, set[tuple[str, int]]] = {str(path): set() for path in paths}
    for tag in _tags("--languages=Python", "--python-kinds=cfm", "-L", str(listed)):
        theirs[tag["path"]].add((tag["name"], int(tag["line"])))
    for path in paths:
        source = path.read_bytes()
        ours = {(name.rpartition(".")[2], line) for _kind, name, line in _defined_by(reader.read(source))}
        assert ours <= theirs[str(path)], path
        made = {
            (match[1].decode(), source.count(b"\n", 0, match.start(1)) + 1) for match in MADE.finditer(source)
        }
        assert theirs[str(path)] - ours <= made, path
