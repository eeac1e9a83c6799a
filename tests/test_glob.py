import re
from functools import lru_cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from herdr.errors import InvalidInput
from herdr.glob import AFTER_STAR_MAX, GLOB_LENGTH_MAX, WILDCARDS_MAX, check_glob, compile_glob, is_glob


def matches_segment(pattern: str, text: str) -> bool:
    """The definition, letter by letter; no cleverness."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches_segment(pattern[1:], text[skip:]) for skip in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and matches_segment(pattern[1:], text[1:])


def matches(pattern: str, text: str) -> bool:
    @lru_cache(None)
    def rest(parts: tuple[str, ...], texts: tuple[str, ...]) -> bool:
        if not parts:
            return not texts
        if parts[0] == "**":
            return any(rest(parts[1:], texts[skip:]) for skip in range(len(texts) + 1))
        return bool(texts) and matches_segment(parts[0], texts[0]) and rest(parts[1:], texts[1:])

    return rest(tuple(pattern.split("/")), tuple(text.split("/")))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("tool.*", ["tool.result", "tool.result.partial", "tool."], ["tool", "tools.x", "a/tool.x"]),
        ("*", ["", "a", "a.b"], ["a/b", "/"]),
        ("**", ["", "a", "a/b", "/"], []),
        ("src/*.py", ["src/a.py", "src/.py"], ["src/a/b.py", "src/a.pyc", "a/src/a.py"]),
        ("src/**", ["src", "src/", "src/a", "src/a/b"], ["srca", "a/src"]),
        ("**/a.py", ["a.py", "x/a.py", "x/y/a.py"], ["xa.py", "a.py/"]),
        ("src/**/a.py", ["src/a.py", "src/x/a.py", "src/x/y/a.py"], ["src/xa.py", "srca.py"]),
        ("**/x/**/y", ["x/y", "a/x/b/y", "x/x/y/y"], ["y/x", "xy"]),
        ("a?c", ["abc", "a.c", "aéc", "a\U0001f600c"], ["ac", "a/c", "abbc"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"], ["app/i/page.tsx"]),
        ("app/[id]/*", ["app/[id]/page.tsx"], ["app/i/page.tsx", "app/d/x"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("***", ["", "a"], ["a/b"]),
        (r"a\*", [r"a\b", "a\\"], ["a*", "ab"]),
        (r"a\?", [r"a\b"], ["a?", "a\\"]),
        ("a.b+(c)|^$*", ["a.b+(c)|^$", "a.b+(c)|^$x"], ["aXb+(c)|^$"]),
        ("A*", ["Ab"], ["ab"]),
        ("plain", ["plain"], ["plain\n", "plai", "plainx"]),
        ("p*n", ["plain"], ["plain\n"]),
        ("**/n", ["n", "a/n"], ["a/n\n"]),
        ("a*", ["a\nb", "a\u2028"], []),
    ],
)
def test_what_matches(pattern: str, yes: list[str], no: list[str]) -> None:
    match = compile_glob(pattern)
    assert [text for text in yes if not match(text)] == []
    assert [text for text in no if match(text)] == []
    assert all(matches(pattern, text) for text in yes)
    assert not any(matches(pattern, text) for text in no)


SEGMENT = st.text("ab*?", max_size=5)
PATTERN = st.lists(st.one_of(SEGMENT, st.just("**")), min_size=1, max_size=6).map("/".join).filter(bool)
TEXT = st.lists(st.text("ab", max_size=5), min_size=1, max_size=6).map("/".join)


@given(PATTERN, TEXT)
@example("*ab*ab", "abab")
@example("*a?*b*", "aab")
@example("**/a/**/a/b", "a/a/a/b")
@example("**/", "a/")
@example("/**", "")
def test_small_alphabet_against_the_definition(pattern: str, text: str) -> None:
    assert compile_glob(pattern)(text) is matches(pattern, text)


@given(st.data())
def test_a_text_matches_what_is_made_from_it(data: st.DataObject) -> None:
    """Random pairs seldom match; here the pattern is the text with pieces replaced by wildcards."""
    text = data.draw(TEXT)
    segments = []
    for segment in text.split("/"):
        wild = data.draw(st.sampled_from(["keep", "?", "*", "**"]))
        if wild == "?" and segment:
            at = data.draw(st.integers(0, len(segment) - 1))
            segment = segment[:at] + "?" + segment[at + 1 :]
        elif wild == "*":
            start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(segment))] * 2)))
            segment = segment[:start] + "*" + segment[end:]
        segments.append("**" if wild == "**" else segment)
    pattern = "/".join(segments) or "*"
    assert compile_glob(pattern)(text)
    assert matches(pattern, text)


@given(
    st.text(
        st.characters(exclude_characters="*?/", min_codepoint=32, exclude_categories=["Cc"]),
        min_size=1,
        max_size=100,
    )
)
def test_everything_else_is_literal(text: str) -> None:
    assert not is_glob(text)
    assert compile_glob(text)(text)
    for pattern in (text + "*", "*" + text, "**/" + text):
        assert is_glob(pattern)
        assert compile_glob(pattern)(text)
        assert not compile_glob(pattern)(text[:-1] + "/")


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "a\nb", "\x00", "a*\x7f", "\t", "\x1f", "a" * (GLOB_LENGTH_MAX + 1)),
        *("*a" * (WILDCARDS_MAX + 1), "?a" * (WILDCARDS_MAX + 1), "**/" * (WILDCARDS_MAX + 1)),
        *("*" + "a" * (AFTER_STAR_MAX + 1), "a/**" + "/b" * AFTER_STAR_MAX),
    ],
    ids=range(12),
)
def test_what_is_no_glob(pattern: str) -> None:
    for refuse in (check_glob, compile_glob):
        with pytest.raises(InvalidInput) as caught:
            refuse(pattern)
        assert caught.value.code == "bad_glob"
        assert re.search(r"[\x00-\x1f\x7f]", caught.value.detail) is None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a" * GLOB_LENGTH_MAX, "a" * GLOB_LENGTH_MAX),
        ("?" * GLOB_LENGTH_MAX, "a" * GLOB_LENGTH_MAX),
        ("*?" * (WILDCARDS_MAX // 2), "a" * WILDCARDS_MAX),
        ("b" * 500 + "*" + "a" * AFTER_STAR_MAX, "b" * 500 + "a" * AFTER_STAR_MAX),
    ],
)
def test_the_largest_globs_are_taken(pattern: str, text: str) -> None:
    assert compile_glob(pattern)(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*a" * 31 + "b", "a" * 4096),
        ("*" + "?" * (AFTER_STAR_MAX - 1) + "b", "a" * 4096),
        ("*" + "a" * (AFTER_STAR_MAX - 2) + "b*", "a" * 4096),
        ("**/*" + "a" * (AFTER_STAR_MAX - 4) + "b", "a" * 4096),
        ("**/" + "a/" * 94 + "b", "a/" * 2000),
        ("**/" + "*/" * 31 + "b", "a/" * 2000),
        ("**/a/" * 31 + "b", "a/" * 2000),
        ("**/*a*/" * 10 + "b", "aaa/" * 1000),
        ("**/*a*a*/" * 8 + "b", "aaaa/" * 800),
    ],
)
def test_a_hostile_glob_costs_little(pattern: str, text: str) -> None:
    """Backtracking would take longer than the universe has; a quadratic match stays in the time limit."""
    assert not compile_glob(pattern)(text)
