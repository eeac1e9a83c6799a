import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.log import Batch
from herdr.bus.tail import Tail
from herdr.event import Event, Positions
from herdr.storage.memory import MemoryLog


def make_event(seq: int, lane: int = 1, body: bytes = b"{}") -> Event:
    return Event(lane, str(seq), "a", "ci", "default", "tool", body, seq=seq)


def seqs(events: list[Event]) -> list[int]:
    return [event.seq for event in events]


def test_a_new_tail_begins_after_the_logs_head() -> None:
    tail = Tail(7, 10)
    assert tail.head == 7
    assert tail.covers((7, 7, 7))
    assert not tail.covers((7, 6, 7))
    assert tail.read((7, 7, 7), 5, 100) == []
    tail.extend([])
    assert tail.head == 7


def test_the_oldest_gives_way_by_count() -> None:
    tail = Tail(0, 3)
    tail.extend([make_event(seq) for seq in range(1, 6)])
    assert tail.head == 5
    assert seqs(tail.read((2, 2, 2), 9, 100)) == [3, 4, 5]
    assert not tail.covers((1, 1, 1))
    assert tail.get(2) is None
    assert tail.get(5) is not None


def test_the_oldest_gives_way_by_size() -> None:
    tail = Tail(0, 100, bytes_max=10)
    tail.extend([make_event(1, body=b"x" * 6), make_event(2, body=b"x" * 4)])
    assert tail.covers((0, 0, 0))
    tail.extend([make_event(3, body=b"x")])
    assert seqs(tail.read((1, 1, 1), 9, 100)) == [2, 3]
    tail.extend([make_event(4, body=b"x" * 11)])
    assert tail.covers((4, 4, 4))
    assert not tail.covers((3, 3, 3))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=30),
    st.tuples(*[st.integers(0, 32)] * 3),
    st.integers(1, 8),
    st.integers(1, 40),
    st.integers(1, 30),
)
def test_where_it_covers_it_reads_as_the_log_does(
    rows: list[tuple[int, int]], after: Positions, limit: int, bytes_max: int, events_max: int
) -> None:
    events = [make_event(seq, lane, b"x" * size) for seq, (lane, size) in enumerate(rows, 1)]
    tail, log = Tail(0, events_max), MemoryLog("0123abcd")
    tail.extend(events)
    asyncio.run(log.append(Batch(events)))
    assert tail.covers(after) is (min(after) >= len(events) - min(events_max, len(events)))
    if tail.covers(after):
        assert tail.read(after, limit, bytes_max) == asyncio.run(log.read(after, limit, bytes_max))


@pytest.mark.parametrize("seq", [1, 2])
def test_a_redacted_event_takes_the_originals_place(seq: int) -> None:
    tail = Tail(0, 100, bytes_max=10)
    tail.extend([make_event(1, body=b"x" * 5), make_event(2, body=b"x" * 5)])
    tail.replace(make_event(seq, body=b"y"))
    tail.replace(make_event(99))
    found = tail.get(seq)
    assert found is not None
    assert found.body == b"y"
    tail.extend([make_event(3, body=b"x" * 4)])  # the freed bytes count
    assert tail.covers((0, 0, 0))
    tail.extend([make_event(4, body=b"x")])
    assert not tail.covers((0, 0, 0))
