import asyncio

import pytest

from herdr_sdk import ConnectionFailed, Draft, Follow, Hub, ServerError, Unauthorized
from herdr_sdk.inbox import FULL_EVENTS


def draft(n: int, type: str = "tool.result") -> dict:
    return {"type": type, "id": f"e{n}", "data": n, "source": "t"}


async def take(events: Follow, count: int) -> list:
    return [(await anext(events)).data for _ in range(count)]


async def test_what_is_published_after_entering_is_seen(faulty) -> None:
    await faulty.append(draft(0))
    async with Hub(name="t") as hub, hub.follow() as events:
        await hub.publish("tool.result", {"n": 1}, subject="a.py")
        event = await anext(events)
    assert (event.seq, event.type, event.data, event.subject) == (2, "tool.result", {"n": 1}, "a.py")
    assert (event.class_, event.priority, event.source, event.synthetic) == ("tool", "P1", "t", False)


async def test_the_query_travels_by_the_protocols_names(faulty) -> None:
    async with Hub(attrs={"editor": "vim"}) as hub, hub.follow(
        type=["tool.*", "user.*"], class_="tool", priority="P1", source="ci", workspace="w", session="s",
        subject="src/**", as_="cursor-ide", after=0, attrs={"activity": "debugging"},
    ):  # fmt: skip
        pass
    [follow] = faulty.of("follow")
    assert follow == {
        "op": "follow", "ref": follow["ref"], "type": ["tool.*", "user.*"], "class": "tool", "priority": "P1",
        "source": "ci", "workspace": "w", "session": "s", "subject": "src/**",
        "as": "cursor-ide", "after": "0", "attrs": {"activity": "debugging"},
    }  # fmt: skip


async def test_from_the_oldest_with_a_filter(faulty) -> None:
    await faulty.append(*(draft(n, "tool.result" if n % 2 else "file.changed") for n in range(20)))
    async with Hub() as hub, hub.follow(type="file.*", after=0) as events:
        assert await take(events, 10) == list(range(0, 20, 2))


async def test_without_entering_it_begins_with_the_first_event_asked_for(faulty) -> None:
    await faulty.append(draft(0), draft(1))
    async with Hub() as hub:
        seen = []
        async for event in hub.follow(after=0):
            seen.append(event.data)
            if len(seen) == 2:
                break
    assert seen == [0, 1]


async def test_resumes_after_lost_connections_without_loss_or_repetition(faulty) -> None:
    seen: list[int] = []
    async with Hub(name="t") as hub, hub.follow() as events:
        for n in range(30):
            await hub.publish_many(draft(n * 10 + m) for m in range(10))
            seen += await take(events, n % 7 + 1)
            faulty.hang_up()
        seen += await take(events, 300 - len(seen))
    assert seen == list(range(300))
    assert len(faulty.of("follow")) > 10


async def test_a_frame_cut_in_the_middle_comes_again_whole(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        faulty.cut_frames = 5
        await faulty.append(*(draft(n) for n in range(40)))
        assert await take(events, 40) == list(range(40))
    assert faulty.cut_frames == 0


async def test_a_resume_names_the_position_after_the_last_frame_received(faulty) -> None:
    async with Hub() as hub, hub.follow() as events:
        await faulty.append(*(draft(n) for n in range(3)))
        await take(events, 1)  # of a frame with three
        faulty.hang_up()
        await faulty.wait(lambda: len(faulty.of("follow")) == 2)
        assert faulty.of("follow")[1]["after"] == faulty.cursor(3)
        assert await take(events, 2) == [1, 2]


async def test_cursor_covers_only_what_was_handed_out(faulty) -> None:
    await faulty.append(*(draft(n) for n in range(6)))
    async with Hub() as hub, hub.follow(after=0) as events:
        cursors = [events.cursor]
        for _ in range(6):
            await anext(events)
            cursors.append(events.cursor)
    assert cursors == [faulty.cursor(n) for n in (0, 0, 0, 3, 3, 3, 6)]


async def test_going_on_from_a_cursor_in_another_hub(faulty) -> None:
    await faulty.append(*(draft(n) for n in range(9)))
    async with Hub() as hub, hub.follow(after=0) as events:
        await take(events, 6)
        cursor = events.cursor
    async with Hub() as hub, hub.follow(after=cursor) as events:
        assert await take(events, 3) == [6, 7, 8]


async def test_another_log_shows_as_a_gap(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events, hub.follow(gaps=False) as without:
        await faulty.append(draft(1))
        assert await take(events, 1) == await take(without, 1) == [1]
        faulty.epoch, faulty.log, faulty.seqs = "ffffffff", [], {}
        faulty.hang_up()
        gap = await anext(events)
        assert (gap.type, gap.synthetic, gap.data) == (
            "herdr.gap",
            True,
            {"reason": "epoch", "from": 1, "to": 0},
        )
        await hub.publish("tool.result", "new")
        assert await take(events, 1) == await take(without, 1) == ["new"]
        assert events.cursor == "ffffffff:1"


async def test_a_slow_consumer_pauses_and_misses_nothing(faulty) -> None:
    count = 3 * FULL_EVENTS
    faulty.page = 100
    async with Hub(name="t") as hub, hub.follow() as events:
        await hub.publish_many(draft(n) for n in range(count))
        await faulty.wait(lambda: faulty.of("unfollow"))
        assert (await hub.publish("user.message", "receipts still come")).stored
        assert await take(events, count) == list(range(count))
    assert len(faulty.of("follow")) >= 2
    refs = [frame["ref"] for frame in faulty.of("follow")]
    assert len(set(refs)) == len(refs)


async def test_large_events_pause_by_their_bytes(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        await hub.publish_many(Draft("tool.result", f"{n}" + "x" * 1_000_000) for n in range(20))
        await faulty.wait(lambda: faulty.of("unfollow"))
        assert [data[:2].rstrip("x") for data in await take(events, 20)] == [f"{n}" for n in range(20)]


async def test_a_paused_follow_stays_paused_over_a_lost_connection(faulty) -> None:
    faulty.page = 1000
    async with Hub(name="t") as hub, hub.follow() as events:
        await faulty.append(*(draft(n) for n in range(3 * FULL_EVENTS)))
        await faulty.wait(lambda: faulty.of("unfollow"))
        faulty.hang_up()
        await hub.publish("tool.result", "back")
        assert len(faulty.of("follow")) == 1
        assert await take(events, 3 * FULL_EVENTS + 1) == [*range(3 * FULL_EVENTS), "back"]


async def test_a_busy_gateway_is_asked_again(faulty) -> None:
    faulty.busy = 3
    async with Hub(name="t") as hub, hub.follow() as events:
        await hub.publish("tool.result", 1)
        assert await take(events, 1) == [1]
    assert len(faulty.of("follow")) == 4


async def test_a_stopping_gateway_is_left_and_found_again(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        await faulty.say_bye(30)
        await faulty.close()
        await hub.publish("tool.result", 1)
        assert await take(events, 1) == [1]
    assert len(faulty.of("follow")) == 2


async def test_an_error_is_raised_after_what_had_arrived(faulty) -> None:
    await faulty.append(draft(0))
    async with Hub() as hub, hub.follow(after=0) as events:
        await faulty.wait(lambda: faulty.of("follow"))
        ref = faulty.of("follow")[0]["ref"]
        await faulty.sockets[0].send_json(
            {"op": "error", "ref": ref, "code": "bad_cursor", "detail": "Broken."}
        )
        with pytest.raises(ServerError, match="Broken") as caught:
            while True:
                await anext(events)
        assert caught.value.code == "bad_cursor"
        with pytest.raises(ServerError):
            await anext(events)


async def test_a_refused_follow_raises_on_entering(faulty, monkeypatch) -> None:
    async def refuse(socket, frame, tasks):
        error = {"op": "error", "ref": frame["ref"], "code": "missing_scope", "detail": "No events:follow."}
        await socket.send_json(error)

    monkeypatch.setattr(faulty, "handle", refuse)
    async with Hub() as hub:
        with pytest.raises(Unauthorized, match="events:follow"):
            async with hub.follow():
                pass


async def test_an_unreadable_frame_fails_its_follow_only(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events, hub.follow() as other:
        ref = faulty.of("follow")[0]["ref"]
        await faulty.sockets[0].send_json(
            {"op": "events", "ref": ref, "events": [{"type": 5}], "cursor": "x"}
        )
        with pytest.raises(ServerError, match="cannot read"):
            await anext(events)
        await hub.publish("tool.result", 1)
        assert await take(other, 1) == [1]


async def test_closing_ends_the_iteration(faulty) -> None:
    async with Hub(name="t") as hub:
        async with hub.follow() as events:
            waiting = asyncio.create_task(anext(events, "end"))
            await asyncio.sleep(0)
        assert await waiting == "end"
        assert await anext(events, "end") == "end"
        await faulty.wait(lambda: faulty.of("unfollow"))
        await events.aclose()


async def test_closing_the_hub_is_an_error_for_who_still_waits(faulty) -> None:
    async with Hub() as hub:
        events = hub.follow()
        waiting = asyncio.create_task(anext(events))
        await faulty.wait(lambda: faulty.of("follow"))
    with pytest.raises(ConnectionFailed, match="closed"):
        await waiting
    with pytest.raises(ConnectionFailed, match="closed"):
        await anext(hub.follow())


async def test_a_cancelled_wait_loses_nothing(faulty) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(events)
        await hub.publish("tool.result", 1)
        assert await take(events, 1) == [1]


async def test_batches(faulty) -> None:
    await faulty.append(*(draft(n) for n in range(6)))
    async with Hub() as hub, hub.follow(after=0) as events:
        await anext(events)
        assert [e.data for e in await events.next_batch()] == [1, 2]
        assert [e.data for e in await events.next_batch()] == [3, 4, 5]
        assert events.cursor == faulty.cursor(6)


async def test_idle_positions_move_the_cursor(faulty, eventually) -> None:
    async with Hub() as hub, hub.follow(type="never") as events:
        await faulty.append(draft(1), draft(2))
        waiting = asyncio.create_task(anext(events))
        await eventually(lambda: events.cursor == faulty.cursor(2))
        waiting.cancel()
        faulty.hang_up()
        await faulty.wait(lambda: len(faulty.of("follow")) == 2)
        assert faulty.of("follow")[1]["after"] == faulty.cursor(2)


async def test_attributes_are_told_again_to_every_connection(faulty) -> None:
    async with Hub(attrs={"editor": "vim"}) as hub:
        await hub.set_attrs(activity="debugging")
        await faulty.wait(lambda: len(faulty.of("attrs")) == 2)
        faulty.hang_up()
        await faulty.wait(lambda: len(faulty.of("attrs")) == 3)
    assert [frame["attrs"] for frame in faulty.of("attrs")] == [
        {"editor": "vim"},
        {"editor": "vim", "activity": "debugging"},
        {"editor": "vim", "activity": "debugging"},
    ]


async def test_passing_trouble_of_the_gateway_is_waited_out(faulty, monkeypatch) -> None:
    left = 3
    handle = faulty.handle

    async def trouble(socket, frame, tasks):
        nonlocal left
        if frame["op"] == "follow" and left:
            left -= 1
            error = {
                "op": "error",
                "ref": frame["ref"],
                "code": "log_unavailable",
                "detail": "The disk is full.",
            }
            await socket.send_json(error)
        elif frame["op"] != "unfollow" or frame["ref"] in tasks:  # after a failure it may be gone or not
            await handle(socket, frame, tasks)

    monkeypatch.setattr(faulty, "handle", trouble)
    async with Hub(name="t") as hub, hub.follow() as events:
        await hub.publish("tool.result", 1)
        assert await take(events, 1) == [1]
    assert left == 0
