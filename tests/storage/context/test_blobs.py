"""What `herdr.context.blobs.Blobs` promises, on real files."""

import os

import pytest
import zstandard
from storage.context.artifact_parts import draft

from herdr.context.blobs import CACHED_BLOB_MAX, Blob, BlobDamaged, BlobTooLarge, ref_of
from herdr.storage.sqlite.context import touches
from herdr.storage.sqlite.context.blobs import SqliteBlobs
from herdr.storage.sqlite.context.packing import RAW, ZSTD, Packed, pack, unpack
from herdr.storage.sqlite.context.touches import FLUSH_AFTER_S, Touches

EVERYTHING = bytes(range(256))


@pytest.mark.parametrize("content", [b"", b"a", EVERYTHING, b"line\n" * 50_000, os.urandom(200_000)])
async def test_what_is_put_is_got(store, open_store, content):
    ref = await store.blobs.put(content, "text/x-mine")
    assert ref == ref_of(content)
    assert await store.blobs.get(ref) == Blob(ref, content, "text/x-mine")
    await store.close()
    again = await open_store()
    assert await again.blobs.get(ref) == Blob(ref, content, "text/x-mine")


@pytest.mark.parametrize(
    "ref", ["", "a" * 63, "A" * 64, "g" * 64, "0" * 64, "0" * 65, "é" * 64, "../etc/passwd"]
)
async def test_unknown_and_impossible_names_are_unknown(store, ref):
    assert await store.blobs.get(ref) is None


async def test_the_same_content_is_stored_once(store, looking):
    refs = {await store.blobs.put(b"x" * 5000, f"text/{n}") for n in range(5)}
    assert len(refs) == 1
    assert (await store.blobs.get(refs.pop())).content_type == "text/0"
    with looking() as db:
        assert db.execute("SELECT count(*), sum(size) FROM blobs").fetchone() == (1, 5000)
        assert db.execute("SELECT value FROM meta WHERE name = 'cached_bytes'").fetchone() == (5000,)


def test_what_does_not_shrink_stays_as_it_is():
    dense = os.urandom(10_000)
    assert pack(dense) == Packed(bytes.fromhex(ref_of(dense)), 10_000, RAW, dense)
    assert pack(b"short").encoding == RAW
    assert (pack(b"x" * 10_000).encoding, len(pack(b"x" * 10_000).body) < 100) == (ZSTD, True)


async def test_content_larger_than_an_answer_is_refused(store):
    await store.blobs.put(bytes(CACHED_BLOB_MAX), "a/b")
    with pytest.raises(BlobTooLarge, match=f"the most is {CACHED_BLOB_MAX}") as caught:
        await store.blobs.put(bytes(CACHED_BLOB_MAX + 1), "a/b")
    assert caught.value.code == "blob_too_large"


@pytest.fixture
def tight(store, clock):
    """Room for a hundred bytes."""
    return SqliteBlobs(store._database, clock, bytes_max=100)


async def put_four(blobs, clock) -> list[str]:
    refs = []
    for letter in b"abcd":
        clock.advance(1)
        refs.append(await blobs.put(bytes([letter]) * 30, "a/b"))
    return refs


async def held(blobs, refs) -> str:
    return "".join(["abcd"[n] for n, ref in enumerate(refs) if await blobs.get(ref) is not None])


async def test_what_was_used_least_recently_goes(tight, clock):
    assert await held(tight, await put_four(tight, clock)) == "bcd"


async def test_what_just_fits_stays(store, clock):
    exact = SqliteBlobs(store._database, clock, bytes_max=120)
    assert await held(exact, await put_four(exact, clock)) == "abcd"


async def test_what_something_owns_is_not_part_of_the_cache(store, tight, clock):
    artifact = (await store.artifacts.put(draft("a"), bytes(500))).artifact
    refs = await put_four(tight, clock)
    assert await held(tight, refs) == "bcd"
    assert (await tight.get(artifact.ref)).content == bytes(500)


@pytest.mark.parametrize("use", ["get", "put"])
async def test_reading_and_putting_again_count_as_use(tight, clock, use):
    refs = await put_four(tight, clock)
    clock.advance(1)
    await (tight.get(refs[1]) if use == "get" else tight.put(b"b" * 30, "a/b"))
    clock.advance(1)
    await tight.put(b"e" * 30, "a/b")
    assert await held(tight, refs) == "bd"


async def test_use_is_written_down_once_a_minute(store, clock, looking):
    ref = await store.blobs.put(b"x", "a/b")
    put_us = clock.wall

    def written() -> int:
        with looking() as db:
            return db.execute("SELECT used_us FROM blobs").fetchone()[0]

    clock.advance(1)
    for _ in range(100):
        await store.blobs.get(ref)
    await store.tidy()
    assert written() == put_us
    clock.advance(FLUSH_AFTER_S)
    await store.tidy()
    assert written() == put_us + 1_000_000
    clock.advance(5)
    await store.blobs.get(ref)
    await store.close()
    assert written() == clock.wall, "closing writes down the rest"


async def test_a_clock_that_is_set_back_makes_nothing_look_older(store, clock, looking):
    ref = await store.blobs.put(b"x", "a/b")
    put_us = clock.wall
    clock.wall -= 3_600_000_000
    await store.blobs.get(ref)
    await store.close()
    with looking() as db:
        assert db.execute("SELECT used_us FROM blobs").fetchone() == (put_us,)


def test_notes_of_use_are_bounded(clock, monkeypatch):
    monkeypatch.setattr(touches, "_MOST", 3)
    notes = Touches("blobs", clock)
    for row in (1, 2, 3, 2, 4):
        notes.note(row)
    assert [row for _, row in notes.take()] == [2, 3, 4]
    assert notes.take() == []


async def flipped(looking, change, *values) -> None:
    with looking() as db:
        assert db.execute(f"UPDATE blobs SET {change}", values).rowcount == 1


@pytest.mark.parametrize("content", [b"a short one", b"a long one, " * 400])
async def test_no_flipped_bit_is_ever_served(store, looking, content):
    ref = await store.blobs.put(content, "text/plain")
    with looking() as db:
        (body,) = db.execute("SELECT body FROM blobs").fetchone()
    for place in range(len(body)):
        for bit in (0, 3, 7):
            await flipped(
                looking, "body = ?", body[:place] + bytes([body[place] ^ 1 << bit]) + body[place + 1 :]
            )
            with pytest.raises(BlobDamaged, match=ref):
                await store.blobs.get(ref)
    await flipped(looking, "body = ?", body)
    assert (await store.blobs.get(ref)).content == content


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("body = ?", b""),
        ("body = substr(body, 1, ?)", 20),
        ("size = ?", 7),
        ("size = ?", 2**60),
        ("encoding = ?", RAW),
        ("encoding = ?", 77),
        ("content_type = CAST(? AS TEXT)", b"\xff\xfe"),
    ],
)
async def test_other_damage_to_a_row_is_told(store, looking, change, value):
    ref = await store.blobs.put(b"a long one, " * 400, "text/plain")
    await flipped(looking, change, value)
    with pytest.raises(BlobDamaged) as caught:
        await store.blobs.get(ref)
    assert caught.value.code == "blob_damaged"


async def test_putting_damaged_content_again_mends_it(store, looking):
    content = b"a long one, " * 400
    ref = await store.blobs.put(content, "text/plain")
    await flipped(looking, "body = ?", b"garbage")
    assert await store.blobs.put(content, "text/plain") == ref
    assert (await store.blobs.get(ref)).content == content


def test_a_frame_that_announces_terabytes_sets_nothing_aside():
    bomb = zstandard.ZstdCompressor(level=3).compress(bytes(50_000_000))
    assert len(bomb) < 5000
    assert unpack(Packed(bytes(32), 100, ZSTD, bomb)) is None
    huge = b"\x28\xb5\x2f\xfd" + b"\xe0" + (2**50).to_bytes(8, "little") + b"\x01\x00\x00"
    assert zstandard.frame_content_size(huge) == 2**50
    assert unpack(Packed(bytes(32), 100, ZSTD, huge)) is None


async def test_a_destroyed_page_costs_its_own_blobs_only(store, open_store, path):
    contents = [os.urandom(20_000) for _ in range(40)]
    refs = [await store.blobs.put(content, "a/b") for content in contents]
    await store.close()
    raw = bytearray(path.read_bytes())
    page = raw.index(contents[20][9000:9100]) // 4096 * 4096
    raw[page : page + 4096] = bytes(4096)
    path.write_bytes(raw)

    again = await open_store()
    damaged = []
    for ref, content in zip(refs, contents, strict=True):
        try:
            assert (await again.blobs.get(ref)).content == content
        except BlobDamaged as error:
            damaged.append(error.detail)
    assert damaged == [BlobDamaged(refs[20]).detail]
    assert await again.blobs.put(b"new", "a/b") == ref_of(b"new")


async def test_the_counter_of_cached_bytes_stays_true(tight, clock, looking):
    await put_four(tight, clock)
    with looking() as db:
        said = db.execute("SELECT value FROM meta WHERE name = 'cached_bytes'").fetchone()
        assert said == db.execute("SELECT sum(size) FROM blobs WHERE owners = 0").fetchone() == (90,)
