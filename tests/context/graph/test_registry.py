"""Which language a file is in."""

import pytest

from herdr.context.graph.languages.registry import LANGUAGES, by_name, language_of
from herdr.context.graph.parse import Reader


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("shop/cart.py", "python"),
        ("stubs/cart.pyi", "python"),
        ("SHOP/CART.PY", "python"),
        ("web/app.mjs", "javascript"),
        ("web/app.jsx", "javascript"),
        ("web/types.d.ts", "typescript"),
        ("web/cart.tsx", "tsx"),
        ("main.go", "go"),
        ("go.mod", "go.mod"),
        ("core/Cargo.toml", "cargo"),
        ("package.json", "package.json"),
        ("lib.rs", "rust"),
        ("Cart.java", "java"),
        ("Cart.cs", "csharp"),
        ("cart.c", "c"),
        ("cart.h", "c"),
        ("cart.cpp", "cpp"),
        ("tools/Rakefile", "ruby"),
        ("cart.php", "php"),
        ("README.md", "markdown"),
        ("docs/page.mdx", "markdown"),
    ],
)
def test_language_by_name(path: str, name: str) -> None:
    language = language_of(path)
    assert language is not None and language.name == name


@pytest.mark.parametrize(
    "path", ["README", ".py", "a/.md", "cart.json", "py", "cart.py.bak", "", "a.py/", "md"]
)
def test_other_files_have_none(path: str) -> None:
    assert language_of(path) is None


def test_no_two_languages_claim_a_file() -> None:
    for claims in ("suffixes", "filenames"):
        all_of_them = [each for language in LANGUAGES for each in getattr(language, claims)]
        assert len(all_of_them) == len(set(all_of_them))
    assert all(end == end.lower() and end[0] == "." for each in LANGUAGES for end in each.suffixes)


def test_by_name() -> None:
    assert [by_name(language.name) for language in LANGUAGES] == list(LANGUAGES)
    with pytest.raises(KeyError):
        by_name("cobol")


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES])
def test_an_outline_says_its_language(name: str) -> None:
    outline = Reader(by_name(name)).read(b"")
    assert (outline.language, outline.lines, outline.symbols, outline.calls) == (name, 0, (), ())
