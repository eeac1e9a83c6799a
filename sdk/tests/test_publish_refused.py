"""What becomes of events that the gateway, or the SDK before it, does not take."""

import pytest

from herdr_sdk import Hub, InvalidEvent, OutcomeUnknown, ServerError, Stale, Unauthorized
from herdr_sdk.outbox import FRAME_BYTES


async def test_a_refused_event_does_not_take_its_neighbours_along(faulty) -> None:
    def refuse(frame):
        errors = [
            {"index": i, "field": "type", "message": "bad"}
            for i, event in enumerate(frame["events"])
            if event["type"] == "BAD"
        ]
        return {"code": "invalid_request", "detail": "no.", "errors": errors} if errors else None

    faulty.refusal = refuse
    async with Hub(name="t") as hub:
        with pytest.raises(InvalidEvent) as caught:
            await hub.publish_many(
                {"type": "BAD" if n % 40 == 7 else "tool.result", "data": n} for n in range(100)
            )
    assert [(e.index, e.field) for e in caught.value.errors] == [(7, "type"), (47, "type"), (87, "type")]
    assert [type(r).__name__ for r in caught.value.results].count("Receipt") == 97
    assert [event["data"] for event in faulty.log] == [n for n in range(100) if n % 40 != 7]


async def test_a_refusal_that_names_no_event_is_narrowed_down(faulty) -> None:
    def refuse(frame):
        bad = any(event["type"] == "BAD" for event in frame["events"])
        return (
            {"code": "invalid_request", "detail": "no.", "errors": [{"field": "type", "message": "bad"}]}
            if bad
            else None
        )

    faulty.refusal = refuse
    async with Hub(name="t") as hub:
        with pytest.raises(InvalidEvent) as caught:
            await hub.publish_many({"type": "BAD" if n == 5 else "tool.result", "data": n} for n in range(20))
    assert [(e.index, e.message) for e in caught.value.errors] == [(5, "bad")]
    assert sorted(event["data"] for event in faulty.log) == [n for n in range(20) if n != 5]


async def test_other_errors_carry_their_code(faulty) -> None:
    faulty.refusal = lambda frame: {"code": "log_unavailable", "detail": "The disk is full."}
    async with Hub(name="t") as hub:
        with pytest.raises(ServerError, match="disk is full") as caught:
            await hub.publish("tool.result")
        assert caught.value.code == "log_unavailable"
        faulty.refusal = lambda frame: {"code": "missing_scope", "detail": "The token lacks events:publish."}
        with pytest.raises(Unauthorized, match="events:publish"):
            await hub.publish("tool.result")


async def test_stale_is_a_receipt_or_an_error(faulty, examples) -> None:
    async def answer(*events):
        return [examples("receipts.json")["stale"] for _ in events]

    faulty.append = answer
    async with Hub(name="t") as hub:
        receipt = await hub.publish("file.changed", based_on=1)
        assert (receipt.status, receipt.stored, receipt.conflict.source) == ("stale", False, "cursor")
        with pytest.raises(Stale, match=r"cursor changed src/a\.py as seq 40") as caught:
            await hub.publish("file.changed", based_on=1, raise_on_stale=True)
    assert caught.value.conflict.seq == 40


@pytest.mark.parametrize("data", [object(), {1j: 2}, "\ud800", "x" * (9 * 1024 * 1024)])
async def test_data_that_cannot_be_sent_is_refused_here(faulty, data) -> None:
    async with Hub(name="t") as hub:
        with pytest.raises(InvalidEvent, match="data: "):
            await hub.publish("tool.result", data)
        with pytest.raises(InvalidEvent) as caught:
            await hub.publish_many(
                [{"type": "tool.result", "id": "good"}, {"type": "tool.result", "data": data}]
            )
        assert caught.value.errors[0].index == 1
    assert [event["id"] for event in faulty.log] == ["good"]


async def test_a_mapping_with_an_unknown_field_is_refused_here(faulty) -> None:
    async with Hub(name="t") as hub:
        with pytest.raises(InvalidEvent, match="sujbect"):
            await hub.publish_many([{"type": "tool.result", "sujbect": "a.py"}])


async def test_an_event_too_big_for_the_gateway_fails_alone(faulty) -> None:
    faulty.close_next = 1009
    async with Hub(name="t") as hub:
        with pytest.raises(InvalidEvent, match="size"):
            await hub.publish("tool.result", "x" * (FRAME_BYTES + 1))
        assert (await hub.publish("tool.result")).stored


async def test_receipts_of_another_length_are_an_unknown_outcome(faulty) -> None:
    async def answer(*events):
        return []

    faulty.append = answer
    async with Hub(name="t") as hub:
        with pytest.raises(OutcomeUnknown):
            await hub.publish("tool.result")


async def test_a_broken_receipt_is_an_unknown_outcome(faulty) -> None:
    async def answer(*events):
        return [{"status": "lost", "id": "x"}]

    faulty.append = answer
    async with Hub(name="t") as hub:
        with pytest.raises(OutcomeUnknown):
            await hub.publish("tool.result")
