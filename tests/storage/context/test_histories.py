"""What `herdr.context.histories.Histories` promises, on real files."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from herdr.context.blobs import ref_of
from herdr.context.histories import (
    INLINE_MAX,
    MESSAGE_OVERHEAD,
    SOURCES_MAX,
    STATE_MAX,
    Batch,
    Deletion,
    Message,
    Session,
)
from herdr.storage.sqlite.context.histories import Bounds, SqliteHistories

BODY = 744  # and 256 of overhead make 1,000
LONG = b"a long result, " * 1000


def message(seq: int, session: str = "s", body: bytes | None = None, **fields: Any) -> Message:
    fields = {"workspace": "default", "role": "user", "source": "editor", "tokens": 3} | fields
    text = b"body %d" % seq if body is None else body
    return Message(session=session, seq=seq, id=f"id-{seq}", time_us=seq * 1000, body=text, **fields)


async def append(
    histories: SqliteHistories, *entries: Message | Deletion, states: Mapping[str, bytes] | None = None
) -> Sequence[str]:
    return await histories.append(Batch(entries[-1].seq, entries, states or {}))


async def page(histories: SqliteHistories, session: str = "s", after: int = 0) -> list[int]:
    return [one.seq for one in await histories.page(session, after, 1000)]


@pytest.fixture
async def histories(store):
    await store.histories.adopt("epoch-1", 0)
    return store.histories


@pytest.fixture(autouse=True)
def books_balance(looking) -> Iterator[None]:
    """After each test: the counters are what counting says."""
    yield
    with looking() as db:
        (said,) = db.execute("SELECT value FROM meta WHERE name = 'message_bytes'").fetchone()
        assert said == db.execute("SELECT ifnull(sum(size), 0) FROM sessions").fetchone()[0]
        counted = db.execute(
            "SELECT session, messages, s.size, count(m.seq), sum(m.size) FROM sessions s JOIN messages m USING (sid)"
            " GROUP BY sid"
        ).fetchall()
        assert [row[1:3] for row in counted] == [row[3:] for row in counted]


async def test_a_session_and_its_messages_come_back(histories, store, open_store):
    first = message(3, workspace="web", role="assistant", about=b"extras", tokens=5)
    second = message(7, workspace="elsewhere", source="terminal", body=LONG, tokens=4000)
    assert await append(histories, first, second, states={"s": b"summary"}) == []
    await store.close()
    again = (await open_store()).histories
    assert (again.folded, again.offset) == (7, 0)
    assert await again.state("s") == Session(
        session="s", workspace="web", messages=2, full_tokens=4005, first_us=3000, updated_us=7000,
        size=2 * MESSAGE_OVERHEAD + len(first.body) + 6 + len(LONG), sources=["editor", "terminal"],
        state=b"summary",
    )  # fmt: skip
    assert list(await again.page("s", 0, 10)) == [first, replace(second, workspace="web", ref=ref_of(LONG))]


async def test_what_nobody_wrote_is_unknown(histories):
    assert await histories.state("s") is None
    assert await histories.page("s", 0, 10) == []
    assert await histories.newest("s", 10) == []
    assert await histories.sessions(None, 10) == ([], 0)
    assert not await histories.delete("s")


async def test_folding_again_changes_nothing(histories):
    entries = [message(n) for n in range(1, 6)]
    await append(histories, *entries[:3], states={"s": b"3"})
    await append(histories, *entries[:3], states={"s": b"other"})
    assert (await histories.state("s")).state == b"3"
    await append(histories, *entries, states={"s": b"5"})
    found = await histories.state("s")
    assert (found.messages, found.full_tokens, found.state) == (5, 15, b"5")
    assert await page(histories) == [1, 2, 3, 4, 5]


async def test_a_batch_that_comes_again_after_a_later_one_is_passed_over(histories):
    early, late = Batch(2, [message(1), message(2)]), Batch(3, [message(3)])
    await asyncio.gather(histories.append(early), histories.append(late), histories.append(early))
    assert histories.folded == 3
    assert await page(histories) == [1, 2, 3]


async def test_events_that_are_no_messages_only_move_the_mark(histories, store, open_store):
    await histories.append(Batch(40))
    assert histories.folded == 40
    await store.close()
    assert (await open_store()).histories.folded == 40


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        (Batch(5, [message(2), message(1)]), "rising"),
        (Batch(5, [message(2), message(2)]), "rising"),
        (Batch(5, [message(6)]), "beyond"),
        (Batch(5, [message(2)], {"s": bytes(STATE_MAX + 1)}), "larger than"),
    ],
)
async def test_batches_that_make_no_sense_are_refused(histories, batch, what):
    with pytest.raises(ValueError, match=what):
        await histories.append(batch)
    assert await histories.state("s") is None


async def test_pages_and_the_newest(histories):
    await append(histories, *[message(n, "st"[n % 2]) for n in range(1, 41)])
    assert await page(histories, "t") == list(range(1, 41, 2))
    assert await page(histories, "s", after=35) == [36, 38, 40]
    assert [one.seq for one in await histories.page("s", 3, 2)] == [4, 6]
    assert [one.seq for one in await histories.newest("s", 3)] == [36, 38, 40]
    assert [one.seq for one in await histories.newest("t", 99)] == list(range(1, 41, 2))


async def test_pages_end_before_they_grow_too_large_but_are_never_empty(histories):
    await append(histories, *[message(n, body=bytes(BODY if n % 2 else 9744)) for n in range(1, 9)])
    assert [one.seq for one in await histories.page("s", 0, 99, bytes_max=21_999)] == [1, 2, 3]
    assert [one.seq for one in await histories.page("s", 0, 99, bytes_max=22_000)] == [1, 2, 3, 4]
    assert [one.seq for one in await histories.page("s", 0, 99, bytes_max=1)] == [1]
    assert [one.seq for one in await histories.newest("s", 99, bytes_max=11_000)] == [7, 8]
    assert [one.seq for one in await histories.newest("s", 99, bytes_max=1)] == [8]


async def test_long_bodies_are_stored_once_and_go_with_their_last_message(histories, store):
    await append(histories, message(1, "s", LONG), message(2, "t", LONG), message(3, "t", bytes(INLINE_MAX)))
    ref = ref_of(LONG)
    assert (await store.blobs.get(ref)).content == LONG
    assert [one.ref for one in await histories.page("t", 0, 9)] == [ref, None]
    await histories.delete("s")
    await cleared(store)
    assert (await store.blobs.get(ref)).content == LONG
    await histories.delete("t")
    await cleared(store)
    assert await store.blobs.get(ref) is None


async def cleared(store) -> int:
    slices = 0
    while await store.tidy():
        slices += 1
    return slices


async def rows(store, table: str) -> int:
    return await store._database.read(lambda db: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def test_a_deleted_session_is_gone_at_once_and_its_messages_slice_by_slice(
    histories, store, open_store
):
    await append(histories, *[message(n) for n in range(1, 1301)])
    await append(histories, message(1301, "t"))
    assert await histories.delete("s")
    assert not await histories.delete("s")
    assert await histories.state("s") is None
    assert await page(histories) == []
    assert await rows(store, "messages") == 1301
    assert await store.tidy()
    assert await rows(store, "messages") == 1301 - 512
    await store.close()
    again = await open_store()
    assert await cleared(again) > 1
    assert (await rows(again, "messages"), await rows(again, "doomed")) == (1, 0)
    assert await page(again.histories, "t") == [1301]


async def test_a_session_that_begins_anew_has_none_of_the_old_messages(histories, store):
    await append(histories, message(1), message(2), Deletion("s", 3), message(4), states={"s": b"new"})
    assert await page(histories) == [4]
    found = await histories.state("s")
    assert (found.messages, found.full_tokens, found.state) == (1, 3, b"new")
    await append(histories, Deletion("s", 5), states={"s": b"ignored"})
    assert await histories.state("s") is None
    await append(histories, Deletion("nobody", 6), message(7))
    await cleared(store)
    assert await page(histories) == [7]


async def test_lists_of_sessions(histories):
    await append(
        histories,
        *[message(n, f"s{n}", workspace="vw"[n % 2]) for n in range(1, 6)],
        message(6, "s2"),
        states={"s5": b"x"},
    )
    everything = await histories.sessions(None, 3)
    assert ([one.session for one in everything.sessions], everything.more) == (["s2", "s5", "s4"], 2)
    assert everything.sessions[1].state == b""
    assert [one.session for one in (await histories.sessions("v", 9)).sessions] == ["s2", "s4"]
    assert await histories.sessions("nowhere", 9) == ([], 0)


async def test_the_names_of_sources_are_bounded(histories):
    await append(
        histories, *[message(n, source=f"tool-{n}") for n in range(1, 101)], message(101, source="tool-1")
    )
    assert (await histories.state("s")).sources == [f"tool-{n}" for n in range(1, SOURCES_MAX + 1)]


async def bounded(store, **bounds: int) -> SqliteHistories:
    """Other bounds on the same file."""
    store.histories = histories = SqliteHistories(store._database, Bounds(**bounds))
    await histories.adopt("epoch-1", 0)
    return histories


async def names(histories) -> list[str]:
    return sorted(one.session for one in (await histories.sessions(None, 99)).sessions)


async def test_over_the_number_those_updated_longest_ago_go(store):
    histories = await bounded(store, sessions=3)
    assert await append(histories, *[message(n, f"s{n}") for n in (1, 2, 3)]) == []
    await append(histories, message(4, "s1"))
    assert await append(histories, message(5, "s5"), message(6, "s6")) == ["s2", "s3"]
    assert await names(histories) == ["s1", "s5", "s6"]


async def test_over_the_size_those_updated_longest_ago_go_whole(store):
    histories = await bounded(store, bytes=5000)
    await append(histories, *[message(n, f"s{(n + 1) // 2}", bytes(BODY)) for n in (1, 2, 3, 4, 5)])
    assert await append(histories, message(6, "s3", bytes(BODY))) == ["s1"]
    assert await append(histories, message(7, "s4", bytes(BODY))) == []
    assert await names(histories) == ["s2", "s3", "s4"]
    await cleared(store)
    assert await rows(store, "messages") == 5


async def test_the_last_session_loses_its_oldest_messages(store):
    histories = await bounded(store, bytes=5000)
    await append(histories, message(1, "other", bytes(BODY)))
    went = await append(
        histories, *[message(n, "s", bytes(BODY)) for n in range(2, 12)], states={"s": b"kept"}
    )
    assert went == ["other"]
    assert await page(histories) == [7, 8, 9, 10, 11]
    found = await histories.state("s")
    assert (found.messages, found.size, found.full_tokens, found.state) == (5, 5000, 30, b"kept")
    await append(histories, message(12, "s", bytes(90_000)))
    assert await page(histories) == [12], "the newest stays, however large"
    await append(histories, message(13, "t", b""))
    assert await names(histories) == ["t"]


async def test_many_empty_messages_are_shortened_too(store):
    histories = await bounded(store, bytes=100 * MESSAGE_OVERHEAD)
    await append(histories, *[message(n, "s", b"") for n in range(1, 1201)])
    assert await page(histories) == list(range(1101, 1201))


async def test_a_log_restored_from_a_backup_goes_on_behind_what_is_here(histories, store, open_store):
    await append(histories, *[message(n) for n in range(1, 11)])
    await store.close()
    again = (await open_store()).histories
    await again.adopt("epoch-2", 6)
    assert (again.folded, again.offset) == (6, 4)
    await append(again, message(6), message(7), message(8))
    assert await page(again) == [*range(1, 11), 11, 12]
    await again.adopt("epoch-2", 8)
    assert (again.folded, again.offset) == (8, 4)
    await again.adopt("epoch-3", 0)
    assert (again.folded, again.offset) == (0, 12)
    await append(again, message(1))
    assert await page(again) == [*range(1, 14)]


async def test_a_log_that_goes_further_than_what_was_folded_is_folded_on(histories):
    await append(histories, message(3))
    await histories.adopt("epoch-2", 900)
    assert (histories.folded, histories.offset) == (3, 0)


async def test_a_new_file_folds_the_log_from_its_start(store):
    await store.histories.adopt("epoch-9", 900)
    assert (store.histories.folded, store.histories.offset) == (0, 0)


async def test_an_imported_session_is_put_behind_and_the_log_goes_on(histories, store, open_store):
    await append(histories, message(1), message(2))
    foreign = Session(
        session="x", workspace="web", messages=99, full_tokens=77, size=1, first_us=5, updated_us=9,
        sources=["a"], state=b"state",
    )  # fmt: skip
    messages = [message(500, "x", LONG), message(100, "x", b"second")]
    assert await histories.restore(foreign, messages)
    assert not await histories.restore(foreign, messages)
    found = await histories.state("x")
    assert (found.messages, found.full_tokens, found.state, found.workspace) == (2, 77, b"state", "web")
    assert [(one.seq, one.body) for one in await histories.page("x", 0, 9)] == [(3, LONG), (4, b"second")]
    await append(histories, message(3), message(4, "x"))
    assert (await page(histories), await page(histories, "x")) == ([1, 2, 5], [3, 4, 6])
    await store.close()
    store = await open_store()
    histories = store.histories
    assert (histories.folded, histories.offset) == (4, 2)
    await append(histories, message(5))
    assert await page(histories) == [1, 2, 5, 7]
    await histories.delete("x")
    await cleared(store)
    assert await store.blobs.get(ref_of(LONG)) is None


async def test_a_damaged_body_is_marked_and_the_rest_is_served(histories, looking):
    await append(histories, message(1), message(2, body=LONG), message(3))
    with looking() as db:
        db.execute("UPDATE blobs SET body = x'00'")
    found = await histories.page("s", 0, 9)
    assert [(one.seq, one.damaged, one.body) for one in found] == [
        (1, False, b"body 1"),
        (2, True, b""),
        (3, False, b"body 3"),
    ]
    with looking() as db:
        db.execute("DELETE FROM blobs")
    assert [one.damaged for one in await histories.newest("s", 9)] == [False, True, False]


async def test_an_append_costs_the_same_after_a_hundred_thousand_messages(histories, store):
    """Counted in SQLite's own steps, not in time."""

    async def steps_of_one_more(seq: int) -> int:
        batch = Batch(seq, [message(seq)], {"s": b"state"})
        return await store._database.write(
            0, lambda db: _steps(db, lambda: _append(store.histories, db, batch))
        )

    await append(histories, *[message(n) for n in range(1, 1001)])
    before = await steps_of_one_more(1001)
    for start in range(1002, 100_002, 9_900):
        await append(histories, *[message(n) for n in range(start, start + 9_900)])
    assert (await histories.state("s")).messages == 100_001
    after = await steps_of_one_more(100_002)
    assert after <= before + 50
    assert [one.seq for one in await histories.newest("s", 2)] == [100_001, 100_002]


def _append(histories, db, batch) -> None:
    histories._on_thread_append(db, batch, {})


def _steps(db, work) -> int:
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    db.set_progress_handler(step, 1)
    try:
        work()
    finally:
        db.set_progress_handler(None, 1)
    return steps
