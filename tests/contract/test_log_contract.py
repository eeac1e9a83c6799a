"""What `herdr.bus.log.Log` promises, asked of every implementation."""

from collections.abc import Sequence
from itertools import product

import pytest
from storage.samples import NOW_US, FakeClock, make_event, text

from herdr.bus.log import Batch, Log, Put, RememberedId
from herdr.event import Event, Positions
from herdr.storage.retention import Retention

MANY = 1 << 30


async def fill(log: Log, lanes: Sequence[int], accepted_us: int = NOW_US) -> list[Event]:
    """Append one event for each lane named, in batches of three."""
    events = [make_event(log.head + 1 + n, lane, accepted_us=accepted_us) for n, lane in enumerate(lanes)]
    for start in range(0, len(events), 3):
        await log.append(Batch(events[start : start + 3]))
    return events


async def tidy_until_done(log: Log, clock: FakeClock) -> None:
    """Let the log do all of its upkeep; a pause of its own may stand between the slices."""
    for _ in range(50):
        while await log.tidy(calm=True):
            pass
        clock.advance(2)


async def test_a_new_log_is_empty(open_log):
    log = await open_log()
    assert (log.first, log.head, log.epoch) == (1, 0, "0a0b0c0d")
    assert await log.read((0, 0, 0), 10, MANY) == []
    assert await log.get(0) is None
    assert await log.get(1) is None
    assert await log.seq_at(0) == 1


async def test_events_come_back_whole(open_log):
    log = await open_log()
    events = [
        make_event(1, 0),
        make_event(2, 1, targets=("claude", "ci")),
        make_event(3, 2, data=text(100_000)),
    ]
    await log.append(Batch(events))
    assert (log.first, log.head) == (1, 3)
    assert await log.read((0, 0, 0), 10, MANY) == events
    assert [await log.get(seq) for seq in (1, 2, 3, 4)] == [*events, None]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 255, 256, 257, 300, 1000])
async def test_batches_of_any_size(open_log, count):
    log = await open_log()
    events = [make_event(n + 1, n % 3) for n in range(count)]
    await log.append(Batch(events))
    assert await log.read((0, 0, 0), count + 1, MANY) == events


async def test_a_batch_without_events_moves_nothing(open_log):
    log = await open_log()
    await log.append(Batch())
    await log.append(Batch(puts=[Put("route", "r", b"1")]))
    assert (log.first, log.head) == (1, 0)
    assert await log.load("route") == {"r": b"1"}


@pytest.mark.parametrize("seqs", [[2], [1, 3], [1, 1], [0, 1], [3, 2]])
async def test_a_batch_with_a_gap_stores_nothing(open_log, seqs):
    log = await open_log()
    await log.append(Batch([make_event(1)]))
    batch = Batch([make_event(seq + 1) for seq in seqs], [Put("route", "r", b"1")], [RememberedId(1, 1, 1)])
    with pytest.raises(ValueError, match="seq 2"):
        await log.append(batch)
    assert log.head == 1
    assert await log.load("route") == {}
    assert await log.find_ids([1]) == {}
    await log.append(Batch([make_event(2)]))
    assert log.head == 2


def expected_page(events: Sequence[Event], after: Positions, limit: int, bytes_max: int) -> list[Event]:
    page: list[Event] = []
    for event in events:
        if event.seq > after[event.lane]:
            if len(page) == limit or (page and sum(len(e.body) for e in [*page, event]) > bytes_max):
                break
            page.append(event)
    return page


async def test_every_triple_of_positions(open_log):
    log = await open_log()
    events = await fill(log, (0, 1, 2, 2, 0, 1, 1, 0, 2))
    places = (0, 1, 3, 5, 6, 9, 12)
    for after in product(places, repeat=3):
        assert await log.read(after, 100, MANY) == expected_page(events, after, 100, MANY), after


async def test_limits_and_bytes_for_positions_that_differ(open_log):
    log = await open_log()
    lanes = (0, 2, 1, 0, 2, 1, 0, 0)
    events = [make_event(n + 1, lane, data=text(n * 37 % 101)) for n, lane in enumerate(lanes)]
    await log.append(Batch(events))
    for after in product((0, 3, 5, 8), repeat=3):
        for limit, bytes_max in product((1, 2, 5), (1, 200, 400, 700)):
            expected = expected_page(events, after, limit, bytes_max)
            assert await log.read(after, limit, bytes_max) == expected, (after, limit, bytes_max)


async def test_a_page_is_filled_to_the_last_byte(open_log):
    log = await open_log()
    events = [make_event(seq, data=text(100)) for seq in (1, 2, 3)]
    await log.append(Batch(events))
    two = len(events[0].body) + len(events[1].body)
    assert await log.read((0, 0, 0), 10, two) == events[:2]
    assert await log.read((0, 0, 0), 10, two - 1) == events[:1]


async def test_an_event_larger_than_the_page_comes_alone(open_log):
    log = await open_log()
    events = [make_event(1, data=text(5000)), make_event(2), make_event(3, data=text(5000))]
    await log.append(Batch(events))
    assert await log.read((0, 0, 0), 10, 1000) == events[:1]
    assert await log.read((1, 1, 1), 10, 1000) == events[1:2]
    assert await log.read((2, 2, 2), 10, 1000) == events[2:]


async def test_p0_far_behind_the_others(open_log):
    log = await open_log()
    lanes = [0 if n % 500 == 7 else 1 + n % 2 for n in range(3000)]
    events = [make_event(n + 1, lane) for n, lane in enumerate(lanes)]
    await log.append(Batch(events))
    waiting = [event for event in events if event.lane == 0]
    assert await log.read((0, 3000, 3000), 100, MANY) == waiting
    assert await log.read((0, 2990, 2995), 100, MANY) == expected_page(events, (0, 2990, 2995), 100, MANY)
    assert await log.read((0, 3000, 3000), 2, MANY) == waiting[:2]


async def test_named_values_are_put_replaced_and_removed(open_log):
    log = await open_log()
    await log.append(Batch(puts=[Put("a", "x", b"1"), Put("a", "y", b"2"), Put("b", "x", b"3")]))
    assert await log.load("a") == {"x": b"1", "y": b"2"}
    await log.append(Batch(puts=[Put("a", "x", None), Put("a", "y", b""), Put("a", "gone", None)]))
    assert await log.load("a") == {"y": b""}
    assert await log.load("b") == {"x": b"3"}
    assert await log.load("c") == {}


async def test_the_last_put_of_a_key_in_a_batch_wins(open_log):
    log = await open_log()
    await log.append(Batch(puts=[Put("a", "x", b"1"), Put("a", "x", b"2"), Put("a", "x", None)]))
    assert await log.load("a") == {}
    await log.append(Batch(puts=[Put("a", "x", None), Put("a", "x", b"1"), Put("a", "x", b"2")]))
    assert await log.load("a") == {"x": b"2"}


async def test_ids_are_found_by_hash(open_log):
    log = await open_log()
    low, high = -(2**63), 2**63 - 1
    await log.append(Batch(ids=[RememberedId(low, 3, 1), RememberedId(high, 4, 1), RememberedId(5, 1, 1)]))
    await log.append(Batch(ids=[RememberedId(5, 9, 2)]))
    assert await log.find_ids([low, high, 5, 6]) == {low: 3, high: 4, 5: 9}
    assert await log.find_ids([]) == {}
    found = [known async for part in log.id_hashes() for known in part]
    assert sorted(found) == [low, 5, high]


async def test_every_hash_is_listed_once(open_log):
    log = await open_log()
    hashes = [n * 7919 * (-1) ** n for n in range(25_000)]
    await log.append(Batch(ids=[RememberedId(known, n, 1) for n, known in enumerate(hashes)]))
    found = [known async for part in log.id_hashes() for known in part]
    assert sorted(found) == sorted(hashes)
    assert await log.find_ids(hashes) == {known: n for n, known in enumerate(hashes)}


async def test_no_ids_are_listed_when_there_are_none(open_log):
    log = await open_log()
    assert [part async for part in log.id_hashes()] == []


async def test_seq_at_finds_the_first_event_at_or_after_a_time(open_log, clock):
    log = await open_log()
    start = clock.wall_us()
    for step in (0, 0, 5, 5, 5, 9):
        await log.append(Batch([make_event(log.head + 1, accepted_us=start + step)]))
    answers = [await log.seq_at(start + step) for step in range(-1, 11)]
    assert answers == [1, 1, 3, 3, 3, 3, 3, 6, 6, 6, 6, 7]


async def test_redact_replaces_the_body_only(open_log):
    log = await open_log()
    events = [make_event(1), make_event(2, 0, targets=("ci",)), make_event(3)]
    await log.append(Batch(events))
    replacement = make_event(2, 0, data=text(3)).body
    assert await log.redact(2, replacement)
    assert not await log.redact(4, replacement)
    events[1].body = replacement
    assert await log.read((0, 0, 0), 10, MANY) == events
    assert await log.get(2) == events[1]


async def test_retention_by_count(open_log, clock):
    log = await open_log(Retention(max_events=700))
    events = await fill(log, [n % 3 for n in range(2000)])
    await tidy_until_done(log, clock)
    assert (log.first, log.head) == (1301, 2000)
    assert await log.read((0, 0, 0), 2000, MANY) == events[1300:]
    assert await log.get(1300) is None
    assert await log.seq_at(0) == 1301
    assert not await log.redact(1300, events[0].body)


async def test_retention_by_age(open_log, clock):
    log = await open_log(Retention(max_age_s=3600, max_events=100_000))
    await fill(log, [1] * 1000)
    clock.advance(3000)
    kept = await fill(log, [1] * 10, clock.wall_us())
    await tidy_until_done(log, clock)
    assert log.first == 1
    clock.advance(700)
    await tidy_until_done(log, clock)
    assert (log.first, log.head) == (1001, 1010)
    assert await log.read((0, 0, 0), 2000, MANY) == kept


async def test_a_log_may_lose_all_events_and_still_counts_on(open_log, clock):
    log = await open_log(Retention(max_age_s=3600, max_events=100_000))
    await fill(log, [1] * 600)
    clock.advance(4000)
    await tidy_until_done(log, clock)
    assert (log.first, log.head) == (601, 600)
    assert await log.read((0, 0, 0), 10, MANY) == []
    assert await log.seq_at(0) == 601
    await log.append(Batch([make_event(601, accepted_us=clock.wall_us())]))
    assert (log.first, log.head) == (601, 601)


async def test_ids_outlive_their_event_by_a_day(open_log, clock):
    log = await open_log(Retention(max_events=10))
    await log.append(Batch([make_event(1)], ids=[RememberedId(11, 1, clock.wall_us())]))
    await fill(log, [1] * 20)
    await log.append(Batch(ids=[RememberedId(12, 20, clock.wall_us())]))
    clock.advance(23 * 3600)
    await tidy_until_done(log, clock)
    assert await log.find_ids([11, 12]) == {11: 1, 12: 20}
    clock.advance(2 * 3600)
    await tidy_until_done(log, clock)
    assert await log.find_ids([11, 12]) == {12: 20}, "an id stays as long as its event"


async def test_close_is_safe_twice(open_log):
    log = await open_log()
    await log.close()
    await log.close()
