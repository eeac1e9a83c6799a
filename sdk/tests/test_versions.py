"""`based_on` is filled in from what a follow of the same hub has handed out."""

import asyncio

import pytest

from herdr_sdk import Draft, Event, Hub, Receipt, blocking
from herdr_sdk.versions import Versions


def change(n: int, subject: str = "a.py", **fields: object) -> dict:
    return {"type": "file.changed", "id": f"c{n}", "source": "watcher", "workspace": "default",
            "subject": subject, **fields}  # fmt: skip


def based(faulty) -> list:
    return [event.get("based_on") for frame in faulty.of("publish") for event in frame["events"]]


async def test_what_was_handed_out_is_what_it_is_based_on(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow(type="file.*") as events:
        await hub.publish("tool.result", subject="a.py")
        await faulty.append(change(1), change(2, "b.py"))
        await anext(events)
        await hub.publish_many(Draft("tool.result", subject=subject) for subject in ("a.py", "b.py"))
        await faulty.append(change(3))
        await anext(events)
        await anext(events)
        await hub.publish_many(
            [Draft("tool.result", subject="a.py"), {"type": "tool.result", "subject": "b.py"}]
        )
        await hub.publish("tool.result", subject="never-seen.py")
        await hub.publish("tool.result")
    assert based(faulty) == [None, 2, None, 6, 3, None, None]


async def test_a_batch_is_seen_whole(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        await faulty.append(change(1), change(2))
        await events.next_batch()
        await hub.publish("tool.result", subject="a.py")
    assert based(faulty) == [2]


async def test_publishing_alone_is_no_sight_of_others(faulty) -> None:
    async with Hub(name="t") as hub:
        for _ in range(2):
            await hub.publish("file.changed", subject="a.py")
    assert based(faulty) == [None, None]


async def test_own_accepted_events_advance_what_is_followed(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow(source="watcher", type="file.*") as events:
        await faulty.append(change(1))
        await anext(events)
        for _ in range(3):
            await hub.publish("tool.result", subject="a.py")
    assert based(faulty) == [1, 2, 3]


async def test_it_can_be_given_and_switched_off(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        await faulty.append(change(1))
        await anext(events)
        await hub.publish("tool.result", subject="a.py", based_on=None)
        await hub.publish_many([{"type": "tool.result", "subject": "a.py", "based_on": None}])
        await hub.publish("tool.result", subject="a.py")
        await hub.publish("tool.result", subject="a.py", based_on=7)
    assert based(faulty) == [None, None, 1, 7]
    assert "based_on" not in faulty.of("publish")[0]["events"][0]


async def test_it_can_be_switched_off_for_all(faulty) -> None:
    async with Hub(name="t", track_versions=False) as hub, hub.follow() as events:
        await faulty.append(change(1))
        await anext(events)
        await hub.publish("tool.result", subject="a.py")
    assert based(faulty) == [None]


async def test_a_draft_stays_as_it_was_given(faulty) -> None:
    draft = Draft("tool.result", subject="a.py")
    async with Hub(name="t") as hub, hub.follow() as events:
        await faulty.append(change(1))
        await anext(events)
        await hub.publish_many([draft])
    assert draft == Draft("tool.result", subject="a.py")
    assert based(faulty) == [1]


@pytest.mark.parametrize("gaps", [True, False])
async def test_another_log_has_other_versions(faulty, gaps) -> None:
    async with Hub(name="t") as hub, hub.follow(gaps=gaps) as events:
        await faulty.append(change(1))
        await anext(events)
        faulty.epoch, faulty.log, faulty.seqs = "ffffffff", [], {}
        faulty.hang_up()
        await hub.publish("user.message")
        while (await anext(events)).type != "user.message":
            pass
        await hub.publish("tool.result", subject="a.py")
    assert based(faulty) == [None, None]


async def test_blocking_follows_count_event_by_event(faulty) -> None:
    await faulty.append(change(1), change(2))

    def script() -> None:
        with blocking.Hub(name="t") as hub, hub.follow(after=0) as events:
            next(events)
            hub.publish("tool.result", subject="a.py")
            next(events)
            hub.publish("tool.result", subject="a.py", based_on=None)
            hub.publish("tool.result", subject="a.py")

    await asyncio.to_thread(script)
    assert based(faulty) == [1, None, 3]


def event(seq: int, type: str = "file.changed", subject: str = "a.py", **fields: object) -> Event:
    return Event(type, seq, "e1", subject=subject, **fields)


def based_on(versions: Versions, subject: str = "a.py", workspace: str | None = None) -> object:
    draft = Draft("tool.result", subject=subject, workspace=workspace)
    versions.base(draft, lambda outcome: None)
    return draft.based_on or None


def test_only_what_makes_a_version_counts() -> None:
    versions = Versions()
    versions.saw(event(5, "tool.result"))
    assert based_on(versions) is None
    versions.saw(event(3, "change.proposed"))
    versions.saw(event(9, "lock.granted"))
    assert based_on(versions) == 3


def test_the_highest_counts_whatever_the_order() -> None:
    versions = Versions()
    for seq in (4, 9, 6):
        versions.saw(event(seq))
    assert based_on(versions) == 9


def test_workspaces_are_apart_and_an_event_without_one_does_not_count() -> None:
    versions = Versions()
    versions.saw(event(4, workspace="shop"))
    versions.saw(Event("file.changed", 7, subject="a.py", ref="/v1/events/7"))
    assert (based_on(versions), based_on(versions, workspace="shop")) == (None, 4)


def test_only_so_many_are_kept_the_oldest_go() -> None:
    versions = Versions(2)
    for seq, subject in enumerate(("a", "b", "a", "c"), 1):
        versions.saw(event(seq, subject=subject))
    assert [based_on(versions, subject) for subject in "abc"] == [3, None, 4]


@pytest.mark.parametrize(
    ("receipt", "then"),
    [
        (Receipt("accepted", "x", 9, "e1"), 9),
        (Receipt("accepted", "x", 9, "e2"), 5),
        (Receipt("accepted", "x", 9, "e1", conflict={}), 5),
        (Receipt("duplicate", "x", 9, "e1"), 5),
        (Receipt("stale", "x"), 5),
        (Receipt("accepted", "x", 3, "e1"), 5),
    ],
)
def test_only_acceptance_without_a_conflict_advances(receipt, then) -> None:
    versions = Versions()
    versions.saw(event(5))
    settled = []
    versions.base(Draft("tool.result", subject="a.py"), settled.append)(receipt)
    assert settled == [receipt]
    assert based_on(versions) == then


def test_an_older_copy_of_the_log_has_other_versions() -> None:
    versions = Versions()
    versions.saw(event(5))
    versions.saw(Event("herdr.gap", data={"reason": "retention", "from": 1, "to": 2}))
    assert based_on(versions) == 5
    versions.saw(Event("herdr.gap", data={"reason": "rewound", "from": 1, "to": 2}))
    assert based_on(versions) is None
