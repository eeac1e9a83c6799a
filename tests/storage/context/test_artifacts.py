"""What `herdr.context.artifacts.Artifacts` promises, on real files."""

import asyncio

import pytest
from storage.context.artifact_parts import draft

from herdr.context.artifacts import EXPIRED_A_CALL, ArtifactTooLarge
from herdr.context.blobs import BlobDamaged, ref_of
from herdr.storage.sqlite.context.artifacts import SqliteArtifacts


async def test_every_field_comes_back(store, open_store, clock):
    one = draft(
        "build/fix 1.patch", ttl_s=60, workspace="web", kind="log_digest", content_type="text/plain",
        by="claude-code", session="s-1", based_on="a" * 64, redacted=3,
    )  # fmt: skip
    stored = await store.artifacts.put(one, b"the content")
    artifact = stored.artifact
    assert (stored.replaced, list(stored.gone)) == (False, [])
    assert (artifact.workspace, artifact.name, artifact.kind) == ("web", "build/fix 1.patch", "log_digest")
    assert (artifact.ref, artifact.bytes, artifact.content_type) == (ref_of(b"the content"), 11, "text/plain")
    assert (artifact.created_us, artifact.used_us) == (clock.wall, clock.wall)
    assert artifact.expires_us == clock.wall + 60_000_000
    assert (artifact.by, artifact.session, artifact.based_on) == ("claude-code", "s-1", "a" * 64)
    assert artifact.redacted == 3
    await store.close()
    again = await open_store()
    assert await again.artifacts.describe("web", "build/fix 1.patch") == artifact
    assert await again.artifacts.get("web", "build/fix 1.patch") == (artifact, b"the content")
    assert (await again.blobs.get(artifact.ref)).content == b"the content"


async def test_names_belong_to_workspaces(store):
    await store.artifacts.put(draft("a"), b"1")
    await store.artifacts.put(draft("a", workspace="other"), b"2")
    assert (await store.artifacts.get("default", "a"))[1] == b"1"
    assert await store.artifacts.get("third", "a") is None
    assert await store.artifacts.delete("third", "a") is None
    assert [one.workspace for one in (await store.artifacts.shelf("other")).artifacts] == ["other"]


async def test_a_name_taken_is_replaced_and_its_content_goes(store):
    old = (await store.artifacts.put(draft("a"), b"old")).artifact
    assert (await store.artifacts.put(draft("a"), b"new")).replaced
    assert (await store.artifacts.get("default", "a"))[1] == b"new"
    assert await store.blobs.get(old.ref) is None


async def test_content_stays_until_its_last_owner_goes(store):
    shared = (await store.artifacts.put(draft("a"), b"same")).artifact
    await store.artifacts.put(draft("b"), b"same")
    assert (await store.artifacts.shelf("default")).bytes == 8, "each counts for itself"
    await store.artifacts.delete("default", "a")
    assert (await store.blobs.get(shared.ref)).content == b"same"
    await store.artifacts.delete("default", "b")
    assert await store.blobs.get(shared.ref) is None


async def test_content_of_an_answer_that_becomes_an_artifact_is_no_cache_any_more(store, looking):
    ref = await store.blobs.put(b"answer", "a/b")
    await store.artifacts.put(draft("a"), b"answer")
    with looking() as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'cached_bytes'").fetchone() == (0,)
        assert db.execute("SELECT owners FROM blobs").fetchall() == [(1,)]
    assert await store.blobs.put(b"answer", "a/b") == ref
    await store.artifacts.delete("default", "a")
    assert await store.blobs.get(ref) is None


async def test_one_larger_than_all_together_is_refused_and_nothing_goes(store):
    await store.artifacts.put(draft("a"), bytes(900))
    with pytest.raises(
        ArtifactTooLarge, match="1001 bytes, and all of them together may have 1000"
    ) as caught:
        await store.artifacts.put(draft("b"), bytes(1001))
    assert caught.value.code == "artifact_too_large"
    assert await store.artifacts.describe("default", "a") is not None
    gone = (await store.artifacts.put(draft("b"), bytes(1000))).gone
    assert [(one.artifact.name, one.reason) for one in gone] == [("a", "size")]


async def test_reading_saves_and_looking_does_not(store, clock):
    for name in "abc":
        clock.advance(1)
        await store.artifacts.put(draft(name), bytes(300))
    clock.advance(1)
    await store.artifacts.get("default", "a")
    await store.artifacts.describe("default", "b")
    await store.artifacts.shelf("default")
    assert (await store.artifacts.describe("default", "a")).used_us == clock.wall
    gone = (await store.artifacts.put(draft("d"), bytes(300))).gone
    assert [one.artifact.name for one in gone] == ["b"]


async def test_the_count_is_bounded_too(store, clock):
    few = SqliteArtifacts(store._database, clock, limit_bytes=1000, count_max=2)
    gone = []
    for name in "abcd":
        clock.advance(1)
        gone += (await few.put(draft(name), b"")).gone
    assert [(one.artifact.name, one.reason) for one in gone] == [("a", "size"), ("b", "size")]


async def test_time_over_is_gone_before_anybody_has_cleared_it(store, clock):
    await store.artifacts.put(draft("a", ttl_s=10), b"a")
    await store.artifacts.put(draft("b", ttl_s=20), b"b")
    assert await store.artifacts.next_expiry() == clock.wall + 10_000_000
    clock.advance(10)
    assert await store.artifacts.get("default", "a") is None
    assert await store.artifacts.describe("default", "a") is None
    assert [one.name for one in (await store.artifacts.shelf("default")).artifacts] == ["b"]
    assert await store.artifacts.delete("default", "a") is None
    await store.artifacts.put(draft("c", ttl_s=10), b"c")
    clock.advance(10)
    gone = await store.artifacts.expire()
    assert [(one.artifact.name, one.reason) for one in gone] == [("b", "ttl"), ("c", "ttl")]
    assert await store.artifacts.expire() == []
    assert await store.artifacts.next_expiry() is None


async def test_one_that_goes_tells_of_its_last_use(store, clock):
    for name in "ab":
        await store.artifacts.put(draft(name, ttl_s=10), bytes(400))
    clock.advance(5)
    used_us = clock.wall
    await store.artifacts.get("default", "a")
    await store.artifacts.get("default", "b")
    gone = list((await store.artifacts.put(draft("c", ttl_s=1000), bytes(400))).gone)
    clock.advance(2)
    await store.artifacts.get("default", "b")
    clock.advance(3)
    gone += await store.artifacts.expire()
    assert [(one.artifact.name, one.artifact.used_us) for one in gone] == [
        ("a", used_us),
        ("b", used_us + 2_000_000),
    ]


async def test_one_whose_time_is_over_is_no_replacement_and_goes_first(store, clock):
    await store.artifacts.put(draft("a", ttl_s=10), bytes(500))
    await store.artifacts.put(draft("b"), bytes(500))
    clock.advance(10)
    stored = await store.artifacts.put(draft("a"), bytes(500))
    assert not stored.replaced
    assert [(one.artifact.name, one.reason) for one in stored.gone] == [("a", "ttl")]


async def test_expiry_comes_in_portions(store, clock):
    for n in range(EXPIRED_A_CALL + 5):
        await store.artifacts.put(draft(str(n), ttl_s=1), b"")
    clock.advance(1)
    last = await store.artifacts.put(draft(str(EXPIRED_A_CALL + 4)), b"")
    assert (last.replaced, len(last.gone)) == (False, EXPIRED_A_CALL)
    for n in range(EXPIRED_A_CALL):
        await store.artifacts.put(draft(str(n), ttl_s=1), b"")
    clock.advance(1)
    assert len(await store.artifacts.expire()) == EXPIRED_A_CALL
    assert await store.artifacts.expire() == []


async def test_lists_are_newest_first_and_say_how_many_are_left_off(store, clock):
    for n in range(5):
        clock.advance(1)
        await store.artifacts.put(draft(str(n), kind=["patch", "digest"][n % 2], session=f"s{n % 3}"), b"xy")
    shelf = await store.artifacts.shelf("default", limit=2)
    assert ([one.name for one in shelf.artifacts], shelf.more, shelf.bytes) == (["4", "3"], 3, 10)
    assert [one.name for one in (await store.artifacts.shelf("default", kind="digest")).artifacts] == [
        "3",
        "1",
    ]
    both = await store.artifacts.shelf("default", kind="patch", session="s1")
    assert [one.name for one in both.artifacts] == ["4"]
    assert (await store.artifacts.shelf("nowhere")).artifacts == []


async def test_damaged_content_is_told_and_a_new_put_mends_it(store, looking):
    one = (await store.artifacts.put(draft("a"), b"good " * 100)).artifact
    with looking() as db:
        db.execute("UPDATE blobs SET body = x'00'")
    with pytest.raises(BlobDamaged, match=one.ref):
        await store.artifacts.get("default", "a")
    assert await store.artifacts.describe("default", "a") is not None
    await store.artifacts.put(draft("b"), b"good " * 100)
    assert (await store.artifacts.get("default", "a"))[1] == b"good " * 100


async def test_readers_see_whole_artifacts_while_they_are_replaced(store):
    contents = {bytes([letter]) * 300 for letter in b"abcdefgh"}
    await store.artifacts.put(draft("x"), bytes([97]) * 300)
    seen = set()

    async def read() -> None:
        for _ in range(200):
            artifact, content = await store.artifacts.get("default", "x")
            assert artifact.ref == ref_of(content)
            seen.add(content)

    async def write() -> None:
        for _ in range(10):
            for content in sorted(contents):
                await store.artifacts.put(draft("x"), content)

    await asyncio.gather(read(), read(), read(), write())
    assert seen <= contents and len(seen) > 1
