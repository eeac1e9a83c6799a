"""What is kept of answers: as much as fits, the newest used."""

from herdr_sdk.texts import BYTES_MAX, ENTRIES_MAX, Answers, Kept


def kept(size: int) -> Kept:
    return Kept('"e"', object(), size)


def test_what_was_not_used_for_the_longest_time_goes_first() -> None:
    answers = Answers()
    for n in range(ENTRIES_MAX):
        answers.put(n, kept(1))
    assert answers.get(0) is not None
    answers.put("new", kept(1))
    assert [answers.get(key) is not None for key in (0, 1, 2, "new")] == [True, False, True, True]


def test_bytes_are_bounded_too() -> None:
    answers = Answers()
    half = BYTES_MAX // 2
    for name in ("a", "b", "c"):
        answers.put(name, kept(half))
    assert [answers.get(name) is not None for name in ("a", "b", "c")] == [False, True, True]
    answers.put("b", kept(1))
    answers.put("d", kept(half - 1))
    assert [answers.get(name) is not None for name in ("b", "c", "d")] == [True, True, True]


def test_what_is_larger_than_everything_is_not_kept_and_replaces_what_was() -> None:
    answers = Answers()
    answers.put("a", kept(1))
    answers.put("b", kept(1))
    answers.put("a", kept(BYTES_MAX + 1))
    assert answers.get("a") is None
    assert answers.get("b") is not None
