import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.pool.protocols.backend.stops import StopMatcher


def run(stops: tuple[str, ...], pieces: list[str]) -> tuple[str, str | None]:
    matcher = StopMatcher(stops)
    text = "".join([matcher.feed(piece) for piece in pieces]) + matcher.flush()
    return text, matcher.matched


@pytest.mark.parametrize(
    ("stops", "text", "expected"),
    [
        (("END",), "one END two", ("one ", "END")),
        (("END",), "one EN", ("one EN", None)),
        (("b", "abc"), "xabc", ("x", "abc")),
        (("abcd", "bc"), "abcx", ("a", "bc")),
        (("abcd", "bc"), "abc", ("a", "bc")),
        (("ab", "abc"), "abc", ("", "ab")),
        (("aab",), "aaab", ("a", "aab")),
        (("渐",), "x渐y", ("x", "渐")),
        (("", "x"), "ax", ("a", "x")),
        ((), "all of it", ("all of it", None)),
    ],
)
def test_the_first_match_wins_and_ends_the_text(
    stops: tuple[str, ...], text: str, expected: tuple[str, str | None]
) -> None:
    assert run(stops, [text]) == expected
    assert run(stops, list(text)) == expected


@given(
    st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
    st.lists(st.text("abc", max_size=4), max_size=8),
)
def test_pieces_make_no_difference(stops: list[str], pieces: list[str]) -> None:
    assert run(tuple(stops), pieces) == run(tuple(stops), ["".join(pieces)])


def test_only_what_may_become_a_stop_sequence_is_held_back() -> None:
    matcher = StopMatcher(("</s>",))
    assert matcher.feed("a < b </") == "a < b "
    assert matcher.feed("p>") == "</p>"
    assert matcher.feed("</s> more") == ""
    assert (matcher.matched, matcher.rest) == ("</s>", " more")
