"""Which file a JavaScript or TypeScript import means, and the manifests of npm packages.

https://nodejs.org/api/esm.html#resolution-algorithm-specification and
https://www.typescriptlang.org/docs/handbook/modules/reference.html, save for what a `tsconfig.json` may say
(`paths`, `baseUrl`), `#internal` names, and what stands in `node_modules`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

import tree_sitter_javascript

from herdr.context.graph.language import Files, Language
from herdr.context.graph.languages.paths import nearest, normal
from herdr.context.graph.outline import Import, Outline

MANIFEST = "package.json"
ENTRIES_MAX = 500  # files that one manifest gives names; the most in use have some hundred icons

_TYPESCRIPT = (".ts", ".tsx", ".d.ts", ".mts", ".cts")
_JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs")
_WRITTEN_FOR = {".js": (".ts", ".tsx", ".d.ts"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""An import in TypeScript names the file that its compiler will write."""

_BUILT = ("dist", "lib", "build", "out", "esm", "cjs")
"""Folders of what is made from `src` and seldom stands in the repository."""


def find_module(found: Import, path: str, files: Files) -> Sequence[str]:
    """Return the file that an import brings in; empty for a package from outside."""
    if not found.module:
        return (path,)
    folder = path.rpartition("/")[0]
    if found.module.split("/")[0] in (".", ".."):
        base = normal(f"{folder}/{found.module}")
        return () if base is None else _at(base, path, files)
    return () if found.module[0] in "/#" else _packaged(found.module, path, files)


def _at(base: str, path: str, files: Files) -> Sequence[str]:
    return next(((file,) for file in _candidates(base, path) if files.has(file)), ())


def _candidates(base: str, path: str) -> Iterator[str]:
    typed = path.endswith(_TYPESCRIPT)
    endings = (*_TYPESCRIPT, *_JAVASCRIPT) if typed else (*_JAVASCRIPT, *_TYPESCRIPT)
    stem, dot, ending = base.rpartition(".")
    written = [f"{stem}{each}" for each in _WRITTEN_FOR.get(f".{ending}", ()) if stem and dot]
    if base:
        yield from (*written, base) if typed else (base, *written)
        yield from (f"{base}{each}" for each in (*endings, ".json"))
    index = f"{base}/index" if base else "index"
    yield from (f"{index}{each}" for each in endings)


def _packaged(module: str, path: str, files: Files) -> Sequence[str]:
    """Return a file of a package of the workspace, by what its manifest gives out or where files usually are."""
    parts = module.split("/")
    size = 2 if module.startswith("@") else 1
    name, rest = "/".join(parts[:size]), "/".join(parts[size:])
    manifests = [file for file in files.packaged(name) if file.rpartition("/")[2] == MANIFEST]
    for manifest in nearest(manifests, path.rpartition("/")[0]):
        folder = manifest.rpartition("/")[0]
        for entry in (*_given_out(manifest, rest, files), rest, f"src/{rest}"):
            base = normal(f"{folder}/{entry}")
            if base is not None and (at := _at(base, path, files)):
                return at
    return ()


def _given_out(manifest: str, rest: str, files: Files) -> Iterator[str]:
    outline = files.outline(manifest)
    wanted = f"./{rest}" if rest else "."
    for entry in outline.imports if outline is not None else ():
        if entry.alias == wanted:
            yield entry.module
            first, _, inside = entry.module.removeprefix("./").partition("/")
            if first in _BUILT and inside:
                yield f"src/{inside}"


def keys(path: str) -> Iterable[str]:
    """Return the parts of a file's name, its folder's for an index, and `.` for what is imported as `..`."""
    folder, _, name = path.rpartition("/")
    stem = name.split(".")[:-1] or [name]
    return (*stem, folder.rpartition("/")[2] or ".", ".") if stem[0] == "index" else stem


def known_keys(path: str, files: Files) -> Sequence[str]:
    """Return the last part of the name of the package that a file is in."""
    folder = path.rpartition("/")[0]
    while True:
        manifest = f"{folder}/{MANIFEST}" if folder else MANIFEST
        if files.has(manifest):
            outline = files.outline(manifest)
            return (outline.package.rpartition("/")[2],) if outline is not None and outline.package else ()
        if not folder:
            return ()
        folder = folder.rpartition("/")[0]


def read_manifest(source: bytes) -> Outline:
    """Return a package's name, and as imports the files that it gives out, with the names for them as aliases.

    https://nodejs.org/api/packages.html#package-entry-points
    """
    lines = source.count(b"\n") + (not source.endswith(b"\n") and bool(source))
    try:
        content = json.loads(source)
    except (ValueError, RecursionError):
        return Outline(MANIFEST, lines, broken=True)
    if not isinstance(content, dict):
        return Outline(MANIFEST, lines, broken=True)
    name = content.get("name")
    entries = [Import(target, 1, "", alias) for alias, target in _entries(content)]
    return Outline(
        MANIFEST, lines, imports=tuple(entries[:ENTRIES_MAX]), package=name if isinstance(name, str) else ""
    )


def _entries(content: dict[str, object]) -> Iterator[tuple[str, str]]:
    exports = content.get("exports")
    by_name = isinstance(exports, dict) and all(key.startswith(".") for key in exports)
    for alias, target in exports.items() if isinstance(exports, dict) and by_name else ((".", exports),):
        yield from ((alias, leaf) for leaf in _leaves(target))
    for field in ("source", "types", "typings", "module", "main"):
        yield from ((".", leaf) for leaf in _leaves(content.get(field)))


def _leaves(value: object) -> Iterator[str]:
    """Yield the files behind conditions such as `import` and `require`."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and "*" not in value:
            yield value if value.startswith(".") else f"./{value}"
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))


PACKAGE = Language(
    name=MANIFEST,
    suffixes=(),
    grammar=tree_sitter_javascript.language,
    query="",
    find_module=find_module,
    read_imports=lambda _node: (),
    filenames=(MANIFEST,),
    keys=lambda _path: (),
    read=read_manifest,
)
