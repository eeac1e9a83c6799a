import asyncio

import pytest

from herdr_sdk import Hub, ServerError
from herdr_sdk.inbox import FULL_EVENTS


def drafts(count: int) -> list[dict]:
    return [{"type": "tool.result", "id": f"e{n}", "data": n, "source": "t"} for n in range(count)]


async def test_acknowledged_events_do_not_come_again(faulty) -> None:
    await faulty.append(*drafts(9))
    async with Hub() as hub, hub.follow(as_="ide", after=0) as events:
        assert [(await anext(events)).data for _ in range(6)] == [0, 1, 2, 3, 4, 5]
        await events.ack()
        assert faulty.targets == {"ide": 6}
    async with Hub() as hub, hub.follow(as_="ide") as events:
        assert (await anext(events)).data == 6


async def test_a_frame_handed_out_in_part_is_not_acknowledged(faulty) -> None:
    await faulty.append(*drafts(6))
    async with Hub() as hub, hub.follow(as_="ide", after=0) as events:
        for _ in range(5):
            await anext(events)
        await events.ack()
        assert faulty.targets == {"ide": 3}


async def test_a_given_position_is_acknowledged(faulty) -> None:
    await faulty.append(*drafts(6))
    async with Hub() as hub, hub.follow(as_="ide", after=0) as events:
        await events.ack(faulty.cursor(2))
        assert faulty.targets == {"ide": 2}


async def test_automatic_acknowledges_when_the_next_is_asked_for(faulty) -> None:
    await faulty.append(*drafts(6))
    async with Hub() as hub, hub.follow(as_="ide", after=0, ack="auto") as events:
        for _ in range(3):
            await anext(events)
        assert faulty.targets.get("ide", 0) == 0
        await anext(events)
        await faulty.wait(lambda: faulty.targets.get("ide") == 3)


async def test_leaving_does_not_acknowledge_the_event_in_hand(faulty) -> None:
    await faulty.append(*drafts(3))
    async with Hub() as hub, hub.follow(as_="ide", after=0, ack="auto") as events:
        for _ in range(3):
            await anext(events)
    assert faulty.targets.get("ide", 0) == 0


async def test_automatic_acknowledgements_are_coalesced(faulty) -> None:
    await faulty.append(*drafts(900))
    async with Hub() as hub, hub.follow(as_="ide", after=0, ack="auto") as events:
        for _ in range(900):
            await anext(events)
        waiting = asyncio.create_task(anext(events))
        await faulty.wait(lambda: faulty.targets.get("ide") == 900)
        waiting.cancel()
    assert len(faulty.of("ack")) < 200


async def test_an_acknowledgement_lost_with_the_connection_is_sent_again(faulty, monkeypatch) -> None:
    lost = 2
    answer = faulty.ack

    async def lose(socket, frame, tasks):
        nonlocal lost
        if lost:
            lost -= 1
            faulty.hang_up(socket)
            raise ConnectionError
        await answer(socket, frame, tasks)

    monkeypatch.setattr(faulty, "ack", lose)
    await faulty.append(*drafts(3))
    async with Hub() as hub, hub.follow(as_="ide", after=0) as events:
        for _ in range(3):
            await anext(events)
        await events.ack()
    assert faulty.targets == {"ide": 3}
    assert len(faulty.of("ack")) == 3


async def test_a_paused_follow_can_acknowledge(faulty) -> None:
    count = 2 * FULL_EVENTS
    faulty.page = 64
    await faulty.append(*drafts(count))
    async with Hub() as hub, hub.follow(as_="ide", after=0) as events:
        await faulty.wait(lambda: faulty.of("unfollow"))
        for _ in range(64):
            await anext(events)
        await events.ack()
        assert faulty.targets == {"ide": 64}
        await faulty.wait(lambda: len(faulty.of("unfollow")) == 2)
        seen = [(await anext(events)).data for _ in range(count - 64)]
    assert seen == list(range(64, count))


async def test_what_comes_while_a_paused_follow_acknowledges_is_not_taken_twice(faulty, monkeypatch) -> None:
    answer = faulty.ack

    async def late(socket, frame, tasks):
        sent = faulty.events_sent
        await faulty.wait(lambda: faulty.events_sent > sent)  # on the follow that is there to acknowledge
        await answer(socket, frame, tasks)

    monkeypatch.setattr(faulty, "ack", late)
    count = 2 * FULL_EVENTS
    faulty.page = 64
    await faulty.append(*drafts(count))
    async with Hub() as hub, hub.follow(as_="ide", after=0) as events:
        await faulty.wait(lambda: faulty.of("unfollow"))
        seen = [event.data for event in await events.next_batch()]
        await events.ack()
        while len(seen) < count:
            seen += [event.data for event in await events.next_batch()]
    assert seen == list(range(count))


async def test_a_follow_that_pauses_with_an_acknowledgement_under_way_hears_the_answer(
    faulty, monkeypatch, eventually
) -> None:
    answer, go = faulty.ack, asyncio.Event()
    answering = []

    async def held(socket, frame, tasks):
        async def later():
            await go.wait()
            await answer(socket, frame, tasks)

        answering.append(asyncio.create_task(later()))

    monkeypatch.setattr(faulty, "ack", held)
    faulty.page = 64
    await faulty.append(*drafts(64))
    async with Hub() as hub, hub.follow(as_="ide", after=0) as events:
        await events.next_batch()
        acknowledging = asyncio.create_task(events.ack())
        await faulty.wait(lambda: answering)
        await faulty.append(*drafts(FULL_EVENTS + 64)[64:])
        await eventually(lambda: events._subscription.inbox.full)  # nothing on the wire tells of the pause
        seen: list[int] = []
        while len(faulty.of("follow")) < 2:
            seen += [event.data for event in await events.next_batch()]
            await asyncio.sleep(0)
        await faulty.append(*drafts(3 * FULL_EVENTS)[FULL_EVENTS + 64 :])  # seen by the old follow too
        await faulty.wait(lambda: faulty.events_sent > 3 * FULL_EVENTS)
        go.set()
        await acknowledging
        assert faulty.targets == {"ide": 64}
        while len(seen) < 3 * FULL_EVENTS - 64:
            seen += [event.data for event in await events.next_batch()]
    assert seen == list(range(64, 3 * FULL_EVENTS))


async def test_leaving_waits_for_the_acknowledgement_of_a_paused_follow(faulty) -> None:
    faulty.page = 64
    await faulty.append(*drafts(2 * FULL_EVENTS))
    async with Hub() as hub, hub.follow(as_="ide", after=0, ack="auto") as events:
        await faulty.wait(lambda: faulty.of("unfollow"))
        await events.next_batch()
        await events.next_batch()
    assert faulty.targets == {"ide": 64}


async def test_acknowledging_without_a_target_is_a_mistake(faulty) -> None:
    async with Hub() as hub:
        with pytest.raises(ValueError, match="as_"):
            hub.follow(ack="auto")
        async with hub.follow() as events:
            with pytest.raises(ValueError, match="as_"):
                await events.ack()


async def test_who_waits_for_an_acknowledgement_hears_of_a_failed_follow(faulty, monkeypatch) -> None:
    async def refuse(socket, frame, tasks):
        error = {"op": "error", "ref": frame["ref"], "code": "bad_cursor", "detail": "That is no cursor."}
        await socket.send_json(error)

    monkeypatch.setattr(faulty, "ack", refuse)
    async with Hub() as hub, hub.follow(as_="ide") as events:
        with pytest.raises(ServerError, match="no cursor"):
            await events.ack("x")
        with pytest.raises(ServerError, match="no cursor"):
            await anext(events)
