"""The SDK against a real gateway process."""

import asyncio
import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdr_sdk import Draft, Hub, InvalidEvent, ServerError, blocking, follow_sse
from herdr_sdk.inbox import FULL_EVENTS

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from gateway import GatewayProcess, running_gateway


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GatewayProcess]:
    monkeypatch.delenv("HERDR_GATEWAY_TOKEN", raising=False)
    with running_gateway(tmp_path / "data") as process:
        monkeypatch.setenv("HERDR_GATEWAY_URL", process.url)
        yield process


def restart(gateway: GatewayProcess) -> None:
    """Start it again at its old address."""
    gateway.args = ("--port", str(gateway.port))
    gateway.start()


async def test_every_field_makes_the_round_trip(gateway, examples) -> None:
    draft = examples("drafts.json")["every_field"]
    async with Hub(name="t") as hub, hub.follow(subject="src/app/[id]/*", priority="P2") as events:
        [receipt] = await hub.publish_many([{**draft, "type": "tool.result"}])
        event = await anext(events)
    assert receipt.status == "accepted"
    assert (event.seq, event.epoch, event.id) == (receipt.seq, receipt.epoch, receipt.id)
    sent = {**draft, "type": "tool.result"}
    came = json.loads(json.dumps({name: getattr(event, name) for name in sent}))
    assert came == sent


@pytest.mark.parametrize("data", [None, 0, "", "a\u2028b\u0000\x7f😀", [1, [2.5, {"x": None}]], {"": "\r\n"}])
async def test_data_comes_as_it_went(gateway, data) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        await hub.publish("tool.result", data)
        assert (await anext(events)).data == data


async def test_the_same_id_is_a_duplicate(gateway) -> None:
    async with Hub(name="t") as hub:
        first = await hub.publish("tool.result", id="mine")
        again = await hub.publish("tool.result", id="mine")
    assert (again.status, again.seq, again.stored) == ("duplicate", first.seq, True)


async def test_each_refused_draft_names_its_field(gateway, examples) -> None:
    refused = examples("drafts-refused.json")
    async with Hub(name="t") as hub:
        for name, case in refused.items():
            with pytest.raises(InvalidEvent) as caught:
                await hub.publish_many([{"type": "tool.result", "data": name}, case["draft"]])
            said = " ".join(f"{error.field} {error.message}" for error in caught.value.errors)
            assert [error.index for error in caught.value.errors] == [1], name
            assert case["field"] in said, name
    async with Hub() as hub, hub.follow(after=0) as events:
        assert [(await anext(events)).data for _ in refused] == list(refused)


async def test_a_cursor_that_is_none_is_an_error(gateway) -> None:
    async with Hub() as hub:
        with pytest.raises(ServerError) as caught:
            async with hub.follow(after="nonsense"):
                pass
        assert caught.value.code == "bad_cursor"


async def test_another_log_is_a_gap(gateway) -> None:
    async with Hub(name="t") as hub:
        await hub.publish("tool.result", 1)
        async with hub.follow(after="00000000:5-5-5") as events:
            gap = await anext(events)
            assert (gap.type, gap.synthetic, gap.data["reason"]) == ("herdr.gap", True, "epoch")
            assert (await anext(events)).data == 1


async def test_nothing_is_lost_or_stored_twice_over_kills(gateway) -> None:
    """Publish through three kills; a follower sees every event once, and so does the log."""
    count = 12_000
    async with Hub(name="t") as hub, hub.follow(type="tool.*") as events:
        publishing = asyncio.create_task(
            hub.publish_many(Draft("tool.result", n, id=f"e{n}") for n in range(count))
        )
        seen = []
        for kill_at in (1_000, 4_000, 8_000, count):
            while len(seen) < kill_at:
                seen += [(event.seq, event.data) for event in await events.next_batch()]
            if kill_at < count:
                await asyncio.to_thread(gateway.kill)
                await asyncio.to_thread(restart, gateway)
        receipts = await publishing
    assert all(receipt.stored for receipt in receipts)
    assert [(receipt.seq, n) for n, receipt in enumerate(receipts)] == seen
    assert [n for _, n in seen] == list(range(count))


async def test_a_stopped_gateway_says_goodbye_and_is_found_again(gateway) -> None:
    async with Hub(name="t") as hub, hub.follow() as events:
        await hub.publish("tool.result", 1)
        assert await asyncio.to_thread(gateway.stop) == 0
        publishing = asyncio.create_task(hub.publish("tool.result", 2))
        await asyncio.to_thread(restart, gateway)
        assert (await publishing).stored
        assert [(await anext(events)).data for _ in range(2)] == [1, 2]


async def test_a_slow_consumer_misses_nothing_and_holds_up_nobody(gateway) -> None:
    count = 3 * FULL_EVENTS
    async with Hub(name="t") as hub, hub.follow(type="tool.*") as slow, hub.follow(type="tool.*") as quick:
        await hub.publish_many(Draft("tool.result", n) for n in range(count))
        assert [(await anext(quick)).data for _ in range(count)] == list(range(count))
        assert (await hub.publish("user.message", "receipts come")).stored
        assert [(await anext(slow)).data for _ in range(count)] == list(range(count))


def route(gateway: GatewayProcess, name: str, rule: dict) -> None:
    request = urllib.request.Request(
        f"{gateway.url}/v1/routes/{name}",
        json.dumps(rule).encode(),
        {"content-type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()


@pytest.mark.parametrize("mode", ["auto", "manual"])
async def test_a_target_goes_on_where_it_acknowledged_over_a_restart(gateway, mode) -> None:
    await asyncio.to_thread(
        route, gateway, "ide", {"event": "tool.*", "target": "ide", "timeout_ms": 600_000}
    )
    async with Hub(name="t") as hub:
        await hub.publish_many(Draft("tool.result", n) for n in range(10))
        await hub.publish("file.changed", "not for the ide")
        async with hub.follow(as_="ide", ack=mode) as events:
            seen = [(await anext(events)).data]
            while len(seen) < 10:
                seen.append((await anext(events)).data)
            if mode == "manual":
                await events.ack()
            else:
                await hub.publish("tool.result", 10)
                assert (await anext(events)).data == 10
        assert seen == list(range(10))
        await hub.publish("tool.result", 11)
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(restart, gateway)
        async with hub.follow(as_="ide") as events:
            assert (await anext(events)).data == (11 if mode == "manual" else 10)


async def test_a_paused_target_can_acknowledge(gateway) -> None:
    await asyncio.to_thread(
        route, gateway, "ide", {"event": "tool.*", "target": "ide", "timeout_ms": 600_000}
    )
    count = 3 * FULL_EVENTS
    async with Hub(name="t") as hub:
        await hub.publish_many(Draft("tool.result", n) for n in range(count))
        async with hub.follow(as_="ide", ack="auto") as events:
            seen = [event.data for event in await events.next_batch()]
            await events.ack()
            first = len(seen)
        async with hub.follow(as_="ide", ack="auto") as events:
            while len(seen) < count:
                seen += [event.data for event in await events.next_batch()]
    assert 0 < first < count
    assert seen == list(range(count))


async def test_attributes_are_matched_by_rules(gateway) -> None:
    rule = {
        "event": "tool.*",
        "target": "ide",
        "match": {"attr.activity": "debugging"},
        "timeout_ms": 600_000,
    }
    await asyncio.to_thread(route, gateway, "ide", rule)
    async with Hub(name="t", attrs={"activity": "writing"}) as hub, hub.follow(as_="ide") as events:
        await hub.publish("tool.result", "while writing")
        await hub.set_attrs(activity="debugging")
        await hub.publish("tool.result", "while debugging")
        assert (await anext(events)).data == "while debugging"


async def test_plain_server_sent_events_resume(gateway) -> None:
    async with Hub(name="t") as hub:
        await hub.publish_many(Draft("tool.result", n) for n in range(5))
        seen = []
        last = ""
        async for event in follow_sse(f"{gateway.url}/v1/events", query={"after": "0"}):
            seen.append(json.loads(event.data)["data"])
            last = event.id
            if len(seen) == 3:
                break
        async for event in follow_sse(f"{gateway.url}/v1/events", last_event_id=last):
            seen.append(json.loads(event.data)["data"])
            if len(seen) == 5:
                break
    assert seen == [0, 1, 2, 3, 4]


async def test_plain_server_sent_events_survive_a_restart(gateway) -> None:
    async with Hub(name="t") as hub:
        await hub.publish("tool.result", 1)
        stream = follow_sse(f"{gateway.url}/v1/events", query={"after": "0", "type": "tool.*"})
        assert json.loads((await anext(stream)).data)["data"] == 1
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(restart, gateway)
        await hub.publish("tool.result", 2)
        assert json.loads((await anext(stream)).data)["data"] == 2
        await stream.aclose()


def test_a_script_without_asyncio(gateway) -> None:
    with blocking.Hub(name="script") as hub, hub.follow(type="tool.*") as events:
        assert hub.publish("tool.result", 0).stored
        receipts = hub.publish_many(Draft("tool.result", n) for n in range(1, 2000))
        assert [next(events).data for _ in range(2000)] == list(range(2000))
    assert [receipt.seq for receipt in receipts] == list(range(2, 2001))
