"""What is remembered of conversations, and what gives way."""

import pytest

from herdr.pool.inset import Block
from herdr.pool.inset_memory import BLOCK_BYTES, PLAIN_MAX, Memory


def blocks(size: int = 0, count: int = 1) -> dict[bytes, Block]:
    return {str(n).encode(): Block("x" * size, size) for n in range(count)}


def known(memory: Memory, *names: str) -> list[str]:
    return [name for name in names if memory._known.get(name) is not None]


def test_what_is_kept_is_found_until_it_is_forgotten() -> None:
    memory = Memory()
    assert memory.find("a") is None
    memory.keep("a", blocks(5))
    assert memory.find("a") == blocks(5)
    memory.keep("a", blocks(7))
    assert memory.find("a") == blocks(7)
    memory.forget("a")
    memory.forget("a")
    assert memory.find("a") is None and memory._bytes == 0


def test_the_conversation_that_was_continued_longest_ago_gives_way() -> None:
    memory = Memory(conversations_max=2)
    for name in ("a", "b"):
        memory.keep(name, blocks())
    memory.find("a")
    memory.keep("c", blocks())
    assert known(memory, "a", "b", "c") == ["a", "c"]


@pytest.mark.parametrize("count", [1, 3])
def test_all_texts_together_are_bounded(count: int) -> None:
    each = count * (BLOCK_BYTES + 100)
    memory = Memory(bytes_max=2 * each)
    for name in ("a", "b", "c"):
        memory.keep(name, blocks(100, count))
    assert known(memory, "a", "b", "c") == ["b", "c"] and memory._bytes == 2 * each
    memory.keep("b", blocks(101, count))
    assert known(memory, "b", "c") == ["b"]
    memory.keep("large", blocks(3 * each))
    assert known(memory, "a", "b", "c", "large") == [] and memory._bytes == 0


def test_beginnings_without_blocks_are_bounded_too() -> None:
    memory = Memory()
    for n in range(PLAIN_MAX):
        memory.note_plain(str(n).encode())
    memory.note_plain(b"0")
    memory.note_plain(b"new")
    assert memory.was_plain(b"0") and memory.was_plain(b"new") and not memory.was_plain(b"1")
    assert len(memory._plain) == PLAIN_MAX
