"""No bytes bring a reader down, and none hold it up for long."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdr.context.graph.languages.registry import LANGUAGES, language_of
from herdr.context.graph.outline import Outline
from herdr.context.graph.parse import Reader

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = [language.name for language in LANGUAGES]
READERS = {language.name: Reader(language) for language in LANGUAGES}
SOURCES = [p for p in sorted(FIXTURES.rglob("*")) if p.is_file() and language_of(p.name) is not None]

PIECES = st.sampled_from(
    b"( ) [ ] { } < > ; : , . = => -> :: @ # $ * & \" ' ` \\ / // /* */ \n \n\n \t \r \x00 \xff \xc3\xa9 "
    b"0 x y Cart def class struct enum interface trait impl fn func function new import from export default "
    b"require( package namespace use module type const let var static public private async await return if else "
    b"for case match macro_rules! #define #include <?php ?> end do begin self this super extends implements "
    b"operator template typename get set <a> </a> ``` --- === ~~~ > - 1.".split(b" ")
)
SOUP = st.lists(PIECES, max_size=40).map(b" ".join) | st.lists(PIECES, max_size=40).map(b"".join)


def check(outline: Outline) -> None:
    """What everybody who reads an outline relies on."""
    for place, symbol in enumerate(outline.symbols):
        assert -1 <= symbol.parent < place
        assert 1 <= symbol.line <= symbol.end_line <= outline.lines
        assert symbol.name and "\n" not in symbol.signature
    for call in outline.calls:
        assert call.name and -1 <= call.caller < len(outline.symbols)
        assert list(call.lines) == sorted(set(call.lines)) and call.lines


@pytest.mark.parametrize("name", NAMES)
@given(st.binary(max_size=200) | SOUP)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_have_an_outline(name: str, source: bytes) -> None:
    check(READERS[name].read(source))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_half_a_file_has_an_outline(path: Path) -> None:
    source, language = path.read_bytes(), language_of(path.name)
    assert language is not None
    reader = READERS[language.name]
    check(reader.read(source))
    for end in range(0, len(source), max(1, len(source) // 25)):
        check(reader.read(source[:end]))
        check(reader.read(source[:end] + source[end + 7 :]))
