"""What is particular to JavaScript and TypeScript; the fixtures show the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import javascript, npm, typescript
from herdr.context.graph.lookups import dependents
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader


def outline(text: str) -> Outline:
    return Reader(javascript.LANGUAGE).read(text.encode())


def typed(text: str) -> Outline:
    return Reader(typescript.LANGUAGE).read(text.encode())


def symbols(found: Outline) -> list[tuple[str, str]]:
    return [(symbol.kind, qualified_name(found, place)) for place, symbol in enumerate(found.symbols)]


def imports(text: str) -> list[tuple[str, str, str]]:
    return [(i.module, i.name, i.alias) for i in outline(text).imports]


def exported(text: str) -> list[str]:
    return [symbol.name for symbol in outline(text).symbols if symbol.exported]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import 'a'", [("a", "", "")]),
        ("import a from 'b'", [("b", "default", "a")]),
        ("import a, {b, c as d} from 'f'", [("f", "default", "a"), ("f", "b", "b"), ("f", "c", "d")]),
        ("import {default as a} from 'b'", [("b", "default", "a")]),
        ("import {'a-b' as c} from 'd'", [("d", "a-b", "c")]),
        ("import * as a from 'b'", [("b", "", "a")]),
        ("export * from 'a'", [("a", "*", "")]),
        ("export * as a from 'b'", [("b", "", "a")]),
        ("export {a, b as c} from 'd'", [("d", "a", "a"), ("d", "b", "c")]),
        ("export {a, b as c}", [("", "b", "c")]),
        ("export default a", [("", "a", "default")]),
        ("export default class A {}", [("", "A", "default")]),
        ("export default function* a() {}", [("", "a", "default")]),
        ("export default () => 1", []),
        ("const a = require('b')", [("b", "", "a")]),
        ("const {a, b: c, d = 1, ...e} = require('f')", [("f", "a", "a"), ("f", "b", "c")]),
        ("const a = require('b').c", [("b", "c", "a")]),
        ("require('a'); require('b')(1); x = require('c')", [("a", "", ""), ("b", "", ""), ("c", "", "")]),
        ("require(a); require(`b`); x.require('c')", []),
        ("const a = await import('b')", [("b", "", "a")]),
        ("const {a} = await import('b')", [("b", "a", "a")]),
        ("import('a').then(f); import(b); const c = import('d')", [("a", "", ""), ("d", "", "")]),
        ("module.exports = require('a')", [("a", "*", "")]),
        ("module.exports = {a, b: c, d: 1}", [("", "c", "b")]),
        ("exports.a = b; module.exports.c = d; exports.e = e", [("", "b", "a"), ("", "d", "c")]),
        ("module.exports = class A {}", [("", "A", "default")]),
    ],
)
def test_imports(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert imports(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export function a() {} function b() {}", ["a"]),
        ("export const a = 1, b = () => 1; const c = 1", ["a", "b"]),
        ("function a() {} function b() {} export { a }", ["a"]),
        ("export default class {}", ["default"]),
        ("exports.a = function () {}; function b() {}", ["a"]),
        ("function a() {} function b() {} module.exports = { a }", ["a"]),
        ("module.exports = function () {}", ["default"]),
        ("function a() { function b() {} }", ["a"]),  # a script: others see its names
        ("import 'x'; function a() {}", []),  # a module that gives nothing out
        ("export class A { b() {} #c() {} #d }", ["A", "b"]),
    ],
)
def test_exports(text: str, expected: list[str]) -> None:
    assert exported(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("var a = 1; let b; const c = 2", [("variable", "a"), ("variable", "b"), ("constant", "c")]),
        ("const {a, b: c, d = 1} = e", [("constant", "a"), ("constant", "c"), ("constant", "d")]),
        ("const a = async () => { const b = function* () {} }", [("function", "a"), ("function", "a.b")]),
        ("if (a) { const b = 1; var c = () => 1 }", [("function", "c")]),
        ("const a = { b() {}, c: 1 }", [("namespace", "a"), ("function", "a.b")]),
        ("const a = { c: 1 }", [("constant", "a")]),
        ("const A = class extends b.C {}", [("class", "A")]),
        ("A.b = () => 1; A.prototype.c = function () {}", [("method", "A.b"), ("method", "A.c")]),
        ("a.b = () => 1", [("function", "a.b")]),
        ("a.b.c = () => 1; a[0].d = () => 1; f().e = () => 1", [("function", "a.b.c")]),
        ("class A { get a() {} set a(b) {} }", [("class", "A"), ("property", "A.a"), ("property", "A.a")]),
        ("class A { static async *c() {} }", [("class", "A"), ("method", "A.c")]),
        ("class A { 'd e'() {} [f]() {} }", [("class", "A"), ("method", "A.d e"), ("method", "A.[f]")]),
        ("class A { b = () => 1; c = 1 }", [("class", "A"), ("method", "A.b"), ("field", "A.c")]),
        (
            "class A { constructor() { this.b = () => 1; } }",
            [("class", "A"), ("constructor", "A.constructor"), ("method", "A.b")],
        ),
        ("const a = memo(function () {}), b = wrap(() => 1)", [("function", "a"), ("constant", "b")]),
        ("export default function () {}", [("function", "default")]),
        ("module.exports = function a() {}", [("function", "a")]),
        ("module.exports = { a() {}, b: () => 1 }", [("function", "a"), ("function", "b")]),
    ],
)
def test_symbols(text: str, expected: list[tuple[str, str]]) -> None:
    assert symbols(outline(text)) == expected


def test_bases() -> None:
    found = typed("class A extends B<C>.D implements E, f.G<H> {}\ninterface I extends J<K>, l.M {}")
    assert [symbol.bases for symbol in found.symbols][1:] == [("J", "l.M")]
    assert typed("class A extends b.C<D> implements E, f.G<H> {}").symbols[0].bases == ("b.C", "E", "f.G")
    assert outline("const A = class extends b.C {}").symbols[0].bases == ("b.C",)


def test_members_that_are_private() -> None:
    found = typed(
        "export class A { private a; protected b; public c; d; #e; constructor(private f, readonly g) {} }"
    )
    assert [s.name for s in found.symbols if s.exported] == ["A", "b", "c", "d", "constructor", "g"]


def test_types_make_no_difference_to_calls() -> None:
    found = typed("a!.b!(); await c<D>(1); await e.f<G>(1); new H<I>(); j?.k?.<L>(); (m as any).n(); o`p`")
    called = {(call.receiver, call.name) for call in found.calls}
    assert called == {("a", "b"), ("", "c"), ("e", "f"), ("", "H"), ("j", "k"), ("?", "n"), ("", "o")}


CORE = b"""{
  "name": "@shop/core",
  "main": "dist/start.js",
  "exports": {"./x": {"import": ["./src/y.mjs"]}}
}"""
FILES = {
    "package.json": b'{"name": "root"}',
    "core/package.json": CORE,
    "plain/package.json": b'{"name": "plain"}',
    "broken/package.json": b"{",
    "list/package.json": b"[]",
    **dict.fromkeys(["a.js", "a.ts", "b/index.ts", "c.d.ts", "d.json", "e.tsx", "f.mts", "g.cart.js"], b""),
    **dict.fromkeys(["core/src/start.ts", "core/src/y.mjs", "core/util.js", "plain/src/index.js"], b""),
    **dict.fromkeys(["plain/src/deep/z.ts", "web/main.js", "index.js"], b""),
}


@pytest.mark.parametrize(
    ("module", "path", "expected"),
    [
        ("./a", "main.js", "a.js"),
        ("./a", "main.ts", "a.ts"),
        ("./a.js", "main.js", "a.js"),
        ("./a.js", "main.ts", "a.ts"),
        ("./e.js", "main.ts", "e.tsx"),
        ("./f.mjs", "main.ts", "f.mts"),
        ("./b", "main.js", "b/index.ts"),
        ("./b/", "main.js", "b/index.ts"),
        ("./c", "main.ts", "c.d.ts"),
        ("./d", "main.js", "d.json"),
        ("./g.cart", "main.js", "g.cart.js"),
        ("../a", "web/main.js", "a.js"),
        ("..", "web/main.js", "index.js"),
        (".", "b/other.ts", "b/index.ts"),
        ("../../a", "web/main.js", ""),
        ("./none", "main.js", ""),
        ("react", "main.js", ""),
        ("a", "main.js", ""),
        ("/a.js", "main.js", ""),
        ("#a", "main.js", ""),
        ("@shop/core", "web/main.js", "core/src/start.ts"),
        ("@shop/core/x", "web/main.js", "core/src/y.mjs"),
        ("@shop/core/util", "web/main.js", "core/util.js"),
        ("@shop/core/none", "web/main.js", ""),
        ("plain", "web/main.js", "plain/src/index.js"),
        ("plain/deep/z", "web/main.js", "plain/src/deep/z.ts"),
        ("", "web/main.js", "web/main.js"),
    ],
)
def test_modules(module: str, path: str, expected: str) -> None:
    project = MemoryProject({path: b"", **FILES})
    assert list(npm.find_module(Import(module, 1), path, project)) == [expected] * bool(expected)


def test_two_packages_of_one_name() -> None:
    files = {f"{side}/p/package.json": b'{"name": "p"}' for side in ("a", "b")}
    project = MemoryProject({**files, "a/p/index.js": b"", "b/p/index.js": b"", "a/x.js": b"", "x.js": b""})
    assert list(npm.find_module(Import("p", 1), "a/x.js", project)) == ["a/p/index.js"]
    assert list(npm.find_module(Import("p", 1), "x.js", project)) == []


def test_keys() -> None:
    project = MemoryProject(FILES)
    assert list(npm.keys("web/cart.service.ts")) == ["cart", "service"]
    assert list(npm.keys("web/cart/index.ts")) == ["index", "cart", "."]
    assert list(npm.known_keys("core/src/deep/y.mjs", project)) == ["core"]
    assert list(npm.known_keys("web/main.js", project)) == ["root"]
    assert list(npm.known_keys("broken/main.js", project)) == []


def test_who_imports_an_index_or_a_package() -> None:
    project = MemoryProject({
        "web/index.js": "export const a = 1",
        "web/b.js": "import {a} from '.'",
        "web/c/d.js": "import {a} from '..'; import '@shop/core'",
        "e.js": "import './web'",
        "packages/core/package.json": '{"name": "@shop/core", "main": "lib/start.js"}',
        "packages/core/lib/start.js": "",
    })  # fmt: skip
    found = [dependents(project, path) for path in ("web/index.js", "packages/core/lib/start.js")]
    assert [[each.path for each in one.dependents] for one in found if one] == [
        ["e.js", "web/b.js", "web/c/d.js"],
        ["packages/core/package.json", "web/c/d.js"],
    ]


@pytest.mark.parametrize(
    "source", [b"", b"{", b"[]", b"1", b'{"name": 1, "exports": [null, {"a": 1}]}', b"[" * 100_000, b"\xff"]
)
def test_odd_manifests(source: bytes) -> None:
    found = npm.read_manifest(source)
    assert (found.package, found.imports) == ("", ())


def test_what_a_manifest_gives_out() -> None:
    found = npm.read_manifest(
        b'{"name": "a", "main": "b", "types": "./c.d.ts", "exports": {"import": "./d", "x": "./e/*"}}'
    )
    assert found.package == "a"
    assert [(i.alias, i.module) for i in found.imports] == [(".", "./d"), (".", "./c.d.ts"), (".", "./b")]
