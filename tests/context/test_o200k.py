"""The real tokenizer o200k_base."""

from pathlib import Path

import pytest

from herdr.context import o200k as module
from herdr.context.o200k import _PIECE, O200k, o200k
from herdr.context.tokens import Fallback, estimate

bpe_openai = pytest.importorskip("bpe_openai", reason="not installed; scripts/test installs it and runs this")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def counter() -> O200k:
    found = o200k()
    assert isinstance(found, O200k)
    return found


async def test_known_counts(counter):
    """The words are tokens of their own in the published vocabulary; special ones are text like any other."""
    assert await counter.count(["", "hello", "hello world", "<|endoftext|>"]) == [0, 1, 2, 7]
    assert (await Fallback([counter]).count(["hello"])).tokenizer == "o200k_base"


async def test_any_string_can_be_counted(counter):
    assert await counter.count(["a\ud800b"]) == [3]
    assert (await counter.count(["a" * 1_500_000]))[0] > 100_000


async def test_long_texts_are_counted_in_pieces_and_to_the_token(counter):
    text = (ROOT / "herdr/storage/sqlite/log.py").read_text() * 30
    assert len(text) > 4 * _PIECE
    whole = len(bpe_openai.get_encoding("o200k_base").encode_ordinary(text))
    assert await counter.count([text]) == [whole]


@pytest.mark.parametrize("text", ["", "\n" * 200_000, "a" * 200_000, "\n" + "a" * 200_000, "line\n" * 50_000])
def test_pieces_are_the_text_and_no_longer_than_they_may_be(text):
    pieces = list(module._pieces(text))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= _PIECE for piece in pieces)


async def test_the_estimate_is_no_lower_on_our_own_texts(counter):
    texts = [path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))]
    texts += [path.read_text() for path in sorted((ROOT / "herdr").rglob("*.py"))[:80]]
    counts = await counter.count(texts)
    assert [text[:50] for text, count in zip(texts, counts, strict=True) if estimate(text) < count] == []


def test_without_the_package_there_is_no_counter(monkeypatch):
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    assert o200k() is None
