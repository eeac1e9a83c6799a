"""Whatever a file holds, reading it ends in an outline whose places fit together."""

import random
from pathlib import Path

import pytest

from herdr.context.graph.language import Language
from herdr.context.graph.languages.registry import LANGUAGES, language_of
from herdr.context.graph.outline import Outline, qualified_name
from herdr.context.graph.parse import Reader

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = [path for path in sorted(FIXTURES.rglob("*")) if path.is_file() and language_of(path.name)]
NAMES = [path.relative_to(FIXTURES).as_posix() for path in FILES]


def check(outline: Outline, source: bytes) -> None:
    ends = source.count(b"\n") + 1
    for place, symbol in enumerate(outline.symbols):
        assert symbol.parent < place
        assert 1 <= symbol.line <= symbol.end_line <= ends
        assert symbol.name
        assert qualified_name(outline, place)
    for call in outline.calls:
        assert -1 <= call.caller < len(outline.symbols)
        assert call.name
        assert list(call.lines) == sorted(set(call.lines))


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_file_that_was_cut_or_damaged(path: Path) -> None:
    language = language_of(path.name)
    assert language is not None
    reader, source, chance = Reader(language), path.read_bytes(), random.Random(path.name)
    for _ in range(12):
        cut = source[: chance.randrange(len(source) + 1)]
        check(reader.read(cut), cut)
        damaged = bytearray(source)
        for _ in range(chance.randrange(1, 20)):
            damaged[chance.randrange(len(damaged))] = chance.choice(b"{}()[]<>;:,.\"'\n\0\xff#=")
        check(reader.read(bytes(damaged)), bytes(damaged))


@pytest.mark.parametrize("language", LANGUAGES, ids=[language.name for language in LANGUAGES])
def test_bytes_of_any_kind(language: Language) -> None:
    reader, chance = Reader(language), random.Random(language.name)
    for size in (0, 1, 7, 300, 4000):
        source = chance.randbytes(size)
        check(reader.read(source), source)
    for source in (b"\xef\xbb\xbf", b"\r\n" * 50, b"(" * 3000, b"{" * 3000, b"a." * 3000, b"x" * 100_000):
        check(reader.read(source), source)
