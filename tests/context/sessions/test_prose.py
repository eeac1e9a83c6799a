# ruff: noqa: RUF001 - the marks of Chinese
import pytest

from herdr.context.sessions.prose import PROSE_MAX, SENTENCE_MAX, SENTENCES_MAX, plain, sentences, words


@pytest.mark.parametrize(
    "text, said",
    [
        ("One. Two! Three? four", ["One.", "Two!", "Three?", "four"]),
        ("Use 2.4.0, e.g. from the mirror. Then go.", ["Use 2.4.0, e.g. from the mirror.", "Then go."]),
        ("用 A。不要改 B！为什么？因为", ["用 A。", "不要改 B！", "为什么？", "因为"]),
        ("1. bug, fix it. 2. good.", ["bug, fix it.", "good."]),
        ("before\n```py\nx = must_not()\n```\nafter", ["before", "after"]),
        ("before\n```\nnever closed", ["before"]),
        ("<system-reminder>always do x</system-reminder>hi", ["hi"]),
        ("resume <session-uri> must work", ["resume <session-uri> must work"]),
        ("a <x-y>1</x-y><x-z> b <x-y>2</x-y> c", ["a", "<x-z> b", "c"]),
        ("> quoted must\n# heading\n| a | table |\nsaid", ["said"]),
        ("**Bold** and *thin* `code`", ["Bold and thin `code`"]),
        ("PriceService.__init__() is *not* it", ["PriceService.__init__() is not it"]),
    ],
)
def test_sentences(text: str, said: list[str]) -> None:
    assert sentences(text) == said


@pytest.mark.parametrize(
    "line",
    [
        *("+ added = 1", "@@ -1,2 +3,4 @@", "$ make must", "x := never()", '"always": true,', "def only(x):"),
        *(
            "2026-01-02 10:00 never",
            "\tmodified:   main.go",
            "\tnever mind this column",
            "\U0001f440 Watching only",
        ),
    ],
)
def test_pasted_lines_are_no_prose(line: str) -> None:
    assert sentences(line) == []


@pytest.mark.parametrize(
    "line", ["--json must be one line", "return 400, not 500", "./src/a.py should go", "@a.py keep it"]
)
def test_lines_that_only_look_pasted(line: str) -> None:
    assert sentences(line) == [line]


def test_items_and_questions() -> None:
    first, second, third = sentences("Do:\n- keep it. And why?\n")
    assert (first.listed, second.listed, third.listed) == (False, True, False)
    assert (second.asks, third.asks) == (False, True)


def test_words_are_what_a_text_is_about() -> None:
    assert words("The retries are retried in the Queue") == {"retry", "retri", "queue"}
    assert words("缓存 用 SQLite 6 吧") == {"缓存", "sqlite", "6"}
    assert words("yes, do it then") == set()


def test_it_is_bounded() -> None:
    assert len(sentences("a b. " * 100_000)) == SENTENCES_MAX
    assert len(sentences("a" * 100_000)[0]) == SENTENCE_MAX
    said = sentences("first words\n" + "x " * PROSE_MAX + "\nlast words")
    assert (said[0], said[-1]) == ("first words", "last words")
    assert plain(" a\n  b ") == "a b"
