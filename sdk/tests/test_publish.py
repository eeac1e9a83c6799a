import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from herdr_sdk import (
    ConnectionFailed,
    Draft,
    Hub,
    OutcomeUnknown,
)
from herdr_sdk.outbox import BYTES_OPEN, EVENTS_OPEN, FRAME_BYTES, FRAME_EVENTS, FRAMES_OPEN


async def test_publish_sends_what_was_given_and_returns_the_receipt(faulty) -> None:
    async with Hub(name="cursor") as hub:
        receipt = await hub.publish("tool.result", {"ok": True}, subject="a.py", tags=["x"], based_on=3)
    [frame] = faulty.of("publish")
    [sent] = frame["events"]
    assert (receipt.status, receipt.seq, receipt.epoch, receipt.stored) == ("accepted", 1, "0a0b0c0d", True)
    assert receipt.id == sent.pop("id")
    assert sent == {
        "type": "tool.result", "source": "cursor", "data": {"ok": True},
        "subject": "a.py", "tags": ["x"], "based_on": 3,
    }  # fmt: skip


async def test_own_id_and_source_win(faulty) -> None:
    async with Hub(name="cursor") as hub:
        receipt = await hub.publish("tool.result", id="mine", source="ci")
    assert receipt.id == "mine"
    assert faulty.log[0]["source"] == "ci"


async def test_without_a_name_the_gateway_chooses_the_source(faulty) -> None:
    async with Hub() as hub:
        await hub.publish("tool.result")
    assert "source" not in faulty.log[0]


async def test_concurrent_publishes_share_frames(faulty) -> None:
    async with Hub(name="t") as hub:
        receipts = await asyncio.gather(*(hub.publish("tool.result", n) for n in range(200)))
    assert [receipt.seq for receipt in receipts] == list(range(1, 201))
    assert len(faulty.of("publish")) == 1


async def test_frames_are_bounded_in_events_and_bytes(faulty) -> None:
    async with Hub(name="t") as hub:
        await hub.publish_many(Draft("tool.result", "x" * 100) for _ in range(3 * FRAME_EVENTS + 1))
        await hub.publish_many(Draft("tool.result", "x" * 100_000) for _ in range(7))
    small = [len(f["events"]) for f in faulty.of("publish") if len(f["events"][0]["data"]) == 100]
    large = [len(f["events"]) for f in faulty.of("publish") if len(f["events"][0]["data"]) == 100_000]
    assert max(small) == FRAME_EVENTS
    assert max(large) == FRAME_BYTES // 100_000


async def test_many_from_drafts_and_mappings_come_back_in_order(faulty) -> None:
    async with Hub(name="t") as hub:
        receipts = await hub.publish_many(
            Draft("tool.result", n, id=f"i{n}")
            if n % 2
            else {"type": "tool.result", "data": n, "id": f"i{n}"}
            for n in range(1000)
        )
    assert [receipt.id for receipt in receipts] == [f"i{n}" for n in range(1000)]
    assert [event["data"] for event in faulty.log] == list(range(1000))


async def test_many_from_an_asynchronous_iterable(faulty) -> None:
    async def events() -> AsyncIterator[Draft]:
        for n in range(5):
            yield Draft("tool.result", n)

    async with Hub(name="t") as hub:
        assert len(await hub.publish_many(events())) == 5
        assert await hub.publish_many([]) == []
    assert [event["data"] for event in faulty.log] == [0, 1, 2, 3, 4]


async def test_publishing_a_draft_twice_publishes_two_events(faulty) -> None:
    draft = Draft("tool.result", 1)
    async with Hub(name="t") as hub:
        await hub.publish_many([draft, draft])
    assert len(faulty.log) == 2
    assert draft.id is None


async def test_data_is_taken_at_once(faulty) -> None:
    data = {"n": 1}
    async with Hub(name="t") as hub:
        future = await hub.submit("tool.result", data)
        data["n"] = 2
        await future
    assert faulty.log[0]["data"] == {"n": 1}


async def test_submitting_waits_while_too_much_is_unanswered(faulty) -> None:
    faulty.silent = True
    async with Hub(name="t", publish_timeout_s=0.5) as hub:
        futures = [await hub.submit("tool.result", n) for n in range(EVENTS_OPEN)]
        blocked = asyncio.create_task(hub.submit("tool.result", "last"))
        await faulty.wait(lambda: len(faulty.log) == EVENTS_OPEN)
        assert not blocked.done()
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        futures.append(await blocked)
        outcomes += await asyncio.gather(futures[-1], return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {OutcomeUnknown}


async def test_large_events_are_bounded_by_bytes(faulty) -> None:
    faulty.silent = True
    size = 4 * 1024 * 1024
    async with Hub(name="t", publish_timeout_s=0.3) as hub:
        futures = []
        submitting = asyncio.create_task(_submit_into(hub, futures, "x" * size, 5))
        await faulty.wait(lambda: len(faulty.log) == BYTES_OPEN // size - 1)
        assert len(futures) == BYTES_OPEN // size - 1
        await submitting
        await asyncio.gather(*futures, return_exceptions=True)


async def _submit_into(hub: Hub, futures: list, data: str, count: int) -> None:
    for _ in range(count):
        futures.append(await hub.submit("tool.result", data))


async def test_what_a_user_says_overtakes_what_waits(faulty) -> None:
    faulty.silent = True
    async with Hub(name="t", publish_timeout_s=1) as hub:
        many = asyncio.create_task(hub.publish_many(Draft("tool.result", n) for n in range(EVENTS_OPEN + 1)))
        await faulty.wait(lambda: len(faulty.log) == EVENTS_OPEN)
        urgent = [
            await hub.submit("user.message", "stop"),
            await hub.submit("tool.result", "now", priority="P0"),
        ]
        await faulty.wait(lambda: len(faulty.log) == EVENTS_OPEN + 2)
        await asyncio.gather(many, *urgent, return_exceptions=True)
    assert [event["data"] for event in faulty.log[-3:-1]] == ["stop", "now"]


async def test_frames_under_way_are_bounded_and_what_waits_shares_one(faulty) -> None:
    faulty.silent = True
    async with Hub(name="t", publish_timeout_s=0.5) as hub:
        futures = []
        for n in range(FRAMES_OPEN):
            futures.append(await hub.submit("tool.result", n))
            await faulty.wait(lambda: len(faulty.log) == len(futures))
        futures += [await hub.submit("tool.result", "waits") for _ in range(10)]
        await hub.set_attrs(a="b")
        await faulty.wait(lambda: faulty.of("attrs"))
        assert len(faulty.of("publish")) == FRAMES_OPEN
        await asyncio.gather(*futures, return_exceptions=True)


async def test_a_frame_that_was_sent_is_sent_again_as_it_was(faulty, eventually) -> None:
    faulty.silent = True
    async with Hub(name="t") as hub:
        first = await hub.submit("tool.result", "first")
        await faulty.wait(lambda: faulty.log)
        await faulty.stop()
        await eventually(lambda: not hub.connected)
        second = await hub.submit("tool.result", "second")
        faulty.silent = False
        await faulty.start()
        assert (await first).status == "duplicate"
        assert (await second).status == "accepted"
    sent = [[event["data"] for event in frame["events"]] for frame in faulty.of("publish")]
    assert sent == [["first"], ["first"], ["second"]]


async def test_no_timer_stays_behind_an_answered_frame(faulty) -> None:
    def pending() -> int:
        return sum(not timer.cancelled() for timer in asyncio.get_running_loop()._scheduled)

    async with Hub(name="t") as hub:
        await hub.publish("tool.result")
        before = pending()
        for _ in range(50):
            await hub.publish("tool.result")
        assert pending() <= before


async def test_receipts_lost_with_the_connection_come_on_the_next(faulty) -> None:
    faulty.lose_receipts = 1
    async with Hub(name="t") as hub:
        receipt = await hub.publish("tool.result", 1)
    assert (receipt.status, receipt.seq, receipt.stored) == ("duplicate", 1, True)
    first, second = faulty.of("publish")
    assert first["events"] == second["events"]
    assert len(faulty.log) == 1


async def test_publishes_lost_with_the_connection_are_sent_again_in_order(faulty) -> None:
    faulty.lose_publishes = 2
    async with Hub(name="t") as hub:
        count = EVENTS_OPEN + 1000  # so that some wait behind what was sent and lost
        receipts = await hub.publish_many(Draft("tool.result", n) for n in range(count))
    assert [receipt.seq for receipt in receipts] == list(range(1, count + 1))
    assert [event["data"] for event in faulty.log] == list(range(count))


async def test_every_event_is_stored_once_over_many_lost_connections(faulty) -> None:
    async with Hub(name="t") as hub:
        for n in range(20):
            faulty.lose_receipts, faulty.lose_publishes = n % 2, n % 3
            await hub.publish_many(Draft("tool.result", (n, m)) for m in range(300))
    assert [event["data"] for event in faulty.log] == [[n, m] for n in range(20) for m in range(300)]


async def test_unanswered_in_time_is_an_unknown_outcome(faulty) -> None:
    faulty.silent = True
    async with Hub(name="t", publish_timeout_s=0.05) as hub:
        with pytest.raises(OutcomeUnknown, match="same id") as caught:
            await hub.publish("tool.result", id="mine")
        assert caught.value.ids == ["mine"]
        with pytest.raises(OutcomeUnknown) as caught:
            await hub.publish_many({"type": "tool.result", "id": f"i{n}"} for n in range(3))
        assert caught.value.ids == ["i0", "i1", "i2"]


async def test_never_sent_is_not_unknown(faulty, eventually) -> None:
    async with Hub(name="t", publish_timeout_s=0.1) as hub:
        await faulty.stop()
        await eventually(lambda: not hub.connected)
        with pytest.raises(ConnectionFailed, match="was not sent"):
            await hub.publish("tool.result")


async def test_a_late_receipt_is_ignored(faulty) -> None:
    faulty.silent = True
    async with Hub(name="t", publish_timeout_s=0.05) as hub:
        with pytest.raises(OutcomeUnknown):
            await hub.publish("tool.result", id="mine")
        [frame] = faulty.of("publish")
        late = {
            "op": "receipts",
            "ref": frame["ref"],
            "results": [{"status": "accepted", "id": "mine", "seq": 1}],
        }
        await faulty.sockets[0].send_json(late)
        faulty.silent = False
        assert (await hub.publish("tool.result", id="mine")).status == "duplicate"


async def test_leaving_waits_for_receipts(faulty) -> None:
    async with Hub(name="t") as hub:
        futures = [await hub.submit("tool.result", n) for n in range(10)]
    assert [future.result().seq for future in futures] == list(range(1, 11))


async def test_after_closing_nothing_is_sent(faulty) -> None:
    async with Hub(name="t") as hub:
        pass
    with pytest.raises(ConnectionFailed, match="closed"):
        await hub.publish("tool.result")
    await hub.close()


async def test_a_cancelled_publish_disturbs_nobody(faulty) -> None:
    faulty.silent = True
    async with Hub(name="t") as hub:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await hub.publish("tool.result", id="first")
        faulty.silent = False
        faulty.hang_up()
        assert (await hub.publish("tool.result")).seq == 2


async def test_an_error_while_drawing_events_is_the_callers(faulty) -> None:
    def events() -> Iterator[Draft]:
        yield Draft("tool.result", 1)
        raise KeyError("mine")

    async with Hub(name="t") as hub:
        with pytest.raises(KeyError, match="mine"):
            await hub.publish_many(events())
    assert len(faulty.log) == 1


async def test_frames_that_nobody_knows_are_ignored(faulty, caplog) -> None:
    caplog.set_level(logging.WARNING, "herdr_sdk")
    async with Hub(name="t") as hub:
        await faulty.sockets[0].send_json({"op": "lock", "ref": 9})
        await faulty.sockets[0].send_str("no json")
        await faulty.sockets[0].send_json(
            {"op": "error", "ref": None, "code": "unknown_op", "detail": "what?"}
        )
        await faulty.sockets[0].send_json({"op": "receipts", "ref": 99, "results": []})
        assert (await hub.publish("tool.result")).stored
    assert "is no frame" in caplog.text
    assert "what?" in caplog.text
