"""What the graph says of small projects in each language, against what a reader says of them."""

import pytest
from context.graph.scores import Score, fixtures, scores

from herdr.context.graph.languages.registry import LANGUAGES

NO_SYMBOLS_OF_THEIR_OWN = {"go.mod", "cargo", "package.json", "tsx"}
"""Manifests stand in their languages' fixtures, and so does TSX."""

EXACT_RECALL = {
    "cpp": 0.66,
    "csharp": 0.70,
    "go": 0.78,
    "java": 0.81,
    "javascript": 0.81,
    "php": 0.74,
    "python": 0.78,
    "ruby": 0.74,
    "rust": 0.88,
    "typescript": 0.70,
}
"""Of the calls that a reader can tell, the share that the graph can, too; the rest needs the types of variables."""


def test_every_language_has_a_fixture() -> None:
    assert {language.name for language in LANGUAGES} - NO_SYMBOLS_OF_THEIR_OWN == set(fixtures())


@pytest.mark.parametrize("language", fixtures())
def test_accuracy(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = scores(language)
    with capsys.disabled():
        print(f"\n{language}: precision/recall of symbols {found.symbols}, imports {found.imports},", end=" ")
        print(f"calls {found.calls}, exact calls {found.exact}", end="")
    wrong = [*found.symbols.differences, *found.imports.differences, *found.calls.differences]
    assert not wrong, "\n".join(wrong)
    assert found.exact.precision == 1.0, "what is said to be exact must be"
    assert found.exact.recall >= EXACT_RECALL.get(language, 1.0), "\n".join(found.exact.differences)


def test_a_score_counts_each_thing_once() -> None:
    assert (Score(4, 5, 3).precision, Score(4, 5, 3).recall) == (0.6, 0.75)
    assert (Score(0, 0, 0).precision, Score(0, 0, 0).recall) == (1.0, 1.0)
