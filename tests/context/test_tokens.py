"""Counting tokens: the estimate, the cache, and which counter said it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.context.tokens import Cached, Counted, CountFailed, Estimate, Fallback, estimate


class Letters:
    """Counts letters, writes down what it was asked, and fails when told to."""

    def __init__(self, name: str = "letters", broken: bool = False, answers: int | None = None) -> None:
        self.name = name
        self.broken = broken
        self.answers = answers
        self.asked: list[list[str]] = []

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        self.asked.append(list(texts))
        if self.broken:
            raise CountFailed("the backend is away")
        return [len(text) for text in texts][: self.answers]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("ab", 1),
        ("abc", 2),
        ("a" * 27, 10),
        ("a" * 28, 11),
        ("语", 2),
        ("\ud800", 2),
        ("🎉" * 27, 40),
    ],
)
def test_the_estimate_is_bytes_over_two_point_seven_rounded_up(text, tokens):
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_parts_are_never_estimated_below_their_whole(one, other):
    assert estimate(one) + estimate(other) >= estimate(one + other)


async def test_the_first_that_can_counts_and_is_named():
    broken, good, never = Letters("backend:a", broken=True), Letters("o200k_base"), Letters("never")
    tokens = Fallback([broken, good, never])
    assert await tokens.count(["abc", ""]) == Counted("o200k_base", [3, 0])
    assert (tokens.name, never.asked) == ("backend:a", [])
    broken.broken = False
    assert (await tokens.count(["abc"])).tokenizer == "backend:a"


@pytest.mark.parametrize("bad", [Letters(broken=True), Letters(answers=1)])
async def test_a_counter_that_fails_or_answers_too_little_gives_way_to_the_estimate(bad):
    for tokens in (Fallback([bad]), Fallback([Cached(bad)])):
        counted = await tokens.count(["abc", "abcdef"])
        assert counted == Counted("bytes/2.7", [2, 3])
        assert counted.total == 5


async def test_without_any_counter_there_is_the_estimate():
    assert Fallback([]).name == Estimate.name == "bytes/2.7"
    assert (await Fallback([]).count([])).tokens == []


async def test_each_text_is_asked_for_once():
    letters = Letters()
    cached = Cached(letters)
    assert cached.name == "letters"
    assert await cached.count(["a", "bb", "a", "\ud800"]) == [1, 2, 1, 1]
    assert await cached.count(["bb", "ccc"]) == [2, 3]
    assert await cached.count([]) == []
    assert letters.asked == [["a", "bb", "\ud800"], ["ccc"]]


async def test_the_cache_is_bounded_and_forgets_what_was_used_least_recently():
    letters = Letters()
    cached = Cached(letters, entries_max=3)
    await cached.count(["1", "2", "3"])
    await cached.count(["1"])
    await cached.count(["4"])
    letters.asked.clear()
    await cached.count(["1", "3", "4"])
    assert letters.asked == []
    await cached.count(["2"])
    assert letters.asked == [["2"]]
    assert await cached.count([str(n) for n in range(50)]) == [1] * 10 + [2] * 40


async def test_a_failure_is_not_remembered():
    letters = Letters(broken=True)
    cached = Cached(letters)
    with pytest.raises(CountFailed):
        await cached.count(["a"])
    letters.broken, letters.answers = False, 0
    with pytest.raises(CountFailed, match="counted 0 of 1 texts"):
        await cached.count(["a"])
    letters.answers = None
    assert await cached.count(["a"]) == [1]
