import asyncio
import contextlib
import gc
import weakref

import pytest
from virtual_time import VirtualClock, run

from herdr.pool import generation
from herdr.pool.chunk import Chunk, Progress, TextDelta, Usage, Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.generation import Generation, Place, Reader

A, B, C = TextDelta("a"), TextDelta("b"), TextDelta("c")


def making(prompt_estimate: int = 7) -> Generation:
    return Generation("01J", prompt_estimate)


async def all_of(reader: Reader) -> list[Chunk]:
    chunks: list[Chunk] = []
    while not reader.finished:
        chunks += reader.take()
        if not reader.finished:
            await reader.moved()
    return chunks


def test_a_reader_gets_what_is_new_since_it_looked_last() -> None:
    it = making()
    reader = it.read()
    assert list(reader.take()) == []
    it.append([A, B], 1.0)
    assert list(reader.take()) == [A, B]
    it.append([C], 2.0)
    assert list(reader.take()) == [C]
    assert list(reader.take()) == []


def test_who_joins_late_gets_everything_from_the_first_chunk() -> None:
    it = making()
    it.append([A, B], 1.0)
    late = it.read()
    assert list(late.take()) == [A, B]
    it.append([C], 2.0)
    it.end()
    after = it.read()
    assert list(after.take()) == [A, B, C] and after.finished


def test_a_reader_is_finished_only_when_it_has_read_the_last_chunk() -> None:
    it = making()
    reader = it.read()
    it.append([A], 1.0)
    it.end()
    assert not reader.finished
    reader.take()
    assert reader.finished


def test_a_failure_comes_after_what_was_said() -> None:
    it = making()
    reader = it.read()
    it.append([A], 1.0)
    it.fail(ModelError("backend_failed", "gone"))
    assert not reader.finished, "there is a chunk to be read"
    reader.take()
    with pytest.raises(ModelError, match="gone"):
        _ = reader.finished


def test_after_its_end_nothing_fails() -> None:
    it = making()
    it.end()
    it.fail(ModelError("backend_failed", "too late"))
    assert it.failure is None and it.read().finished


def test_a_failure_drags_no_frames_along() -> None:
    it = making()
    try:
        raise ModelError("rate_limited", "no", 3.0)
    except ModelError as error:
        it.fail(error)
        assert it.failure is not None and it.failure is not error
    assert it.failure.__traceback__ is None
    assert (it.failure.code, it.failure.detail, it.failure.wait_s) == ("rate_limited", "no", 3.0)


@pytest.mark.parametrize("what", ["begin", "append", "end", "fail", "poke"])
def test_whoever_waits_is_woken(what: str) -> None:
    async def main() -> None:
        it = making()
        readers = [it.read(), it.read()]
        waiting = [asyncio.create_task(reader.moved()) for reader in readers]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        match what:
            case "begin":
                it.begin(Place(0, 1))
            case "append":
                it.append([A], 1.0)
            case "end":
                it.end()
            case "fail":
                it.fail(ModelError("stopping", "x"))
            case _:
                for reader in readers:
                    reader.poke()
        await asyncio.gather(*waiting)

    run(main(), VirtualClock())  # which tells a wait for ever


def test_readers_are_counted() -> None:
    it = making()
    one, two = it.read(), it.read()
    assert it.readers == 2
    assert it.leave(one) == 1
    assert it.leave(one) == 1, "leaving twice counts once"
    assert it.leave(two) == 0


def test_the_prompt_is_estimated_until_the_backend_says() -> None:
    it = making(prompt_estimate=7)
    assert it.usage == Usage(prompt=7)
    it.append([Progress(120, 100, 110)], 1.0)
    assert it.usage == Usage(prompt=120, cached=100)


@pytest.mark.parametrize(
    ("first", "at"), [(Progress(1, 0, 1), 2.0), (Verbatim("message_start", b"{}"), 2.0), (A, 1.0)]
)
def test_the_first_token_is_neither_progress_nor_a_bare_event(first: Chunk, at: float) -> None:
    it = making()
    it.append([first], 1.0)
    it.append([B], 2.0)
    it.append([C], 3.0)
    assert it.first_token_at == at


def test_a_place_can_be_lost_again() -> None:
    it = making()
    it.begin(Place(3, 20))
    assert it.place == Place(3, 20)
    it.withdraw()
    assert it.place is None


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "CHUNKS_MAX", 3)
    it = making()
    it.append([A, B, C], 1.0)
    with pytest.raises(ModelError, match="more than 3 pieces"):
        it.append([A], 1.0)


def test_a_slow_reader_holds_up_nobody() -> None:
    async def main() -> None:
        it = making()
        slow, quick = it.read(), it.read()
        reading = asyncio.create_task(all_of(quick))
        for n in range(100):
            it.append([TextDelta(str(n))], float(n))
            await asyncio.sleep(0)
        it.end()
        whole = await reading
        assert len(whole) == 100
        assert await all_of(slow) == whole

    run(main(), VirtualClock())


def test_a_failure_that_was_read_keeps_nothing_alive() -> None:
    def read() -> "weakref.ref[Generation]":
        it = making()
        it.fail(ModelError("backend_failed", "gone"))
        reader = it.read()
        with contextlib.suppress(ModelError):
            _ = reader.finished
        it.leave(reader)
        return weakref.ref(it)

    gc.collect()
    gc.disable()
    try:
        assert read()() is None
    finally:
        gc.enable()
