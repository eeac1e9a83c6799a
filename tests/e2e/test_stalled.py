"""A subscriber that stops reading: the others notice nothing, memory stays bounded, it is cut, and resumes."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from gateway import GatewayProcess, running_gateway
from wire import Socket, Stream, all_events, health, publish, wait_until

EVENTS, SIZE = 240, 100_000  # 24 MB: more than the kernel takes for a socket that nobody reads
STALLED = 12
MEMORY_MAX = 120 * 1024 * 1024  # 12 stalled followers with a buffer of their own would hold 288 MB


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    env = {
        "HERDR_GATEWAY_SERVER__SEND_TIMEOUT_S": "0.5",
        "HERDR_GATEWAY_BUS__BUFFER_SIZE": "60",  # so that the recent events in memory are few
    }
    with running_gateway(tmp_path / "data", env=env) as process:
        yield process


def memory(gateway: GatewayProcess) -> int:
    for line in Path(f"/proc/{gateway.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def publish_much(gateway: GatewayProcess) -> None:
    for start in range(0, EVENTS, 20):
        events = [{"type": "tool.result", "id": str(n), "data": "x" * SIZE} for n in range(start, start + 20)]
        receipts = publish(gateway, *events)
        assert {receipt["status"] for receipt in receipts} == {"accepted"}


def test_stalled_streams_cost_little_and_are_cut(gateway: GatewayProcess) -> None:
    with ExitStack() as stack:
        reading = stack.enter_context(Stream(gateway)).start()
        got: list[int] = []
        reader = threading.Thread(
            target=lambda: got.extend(e["seq"] for e in reading.take(EVENTS)), daemon=True
        )
        reader.start()
        stalled = [stack.enter_context(Stream(gateway)).start() for _ in range(STALLED)]
        before = memory(gateway)
        publish_much(gateway)
        reader.join(20)
        assert got == list(range(1, EVENTS + 1)), "the one who reads was disturbed"
        assert memory(gateway) - before < MEMORY_MAX
        wait_until(lambda: health(gateway)["connections"]["sse"] == 1, "the stalled to be cut")
        assert any("taken nothing" in line for line in gateway.log)
        # What a cut stream had received, and what it gets when it resumes, is everything once.
        seen = [block.json()["seq"] for block in stalled[0].blocks() if block.data]
        assert 0 < len(seen) < EVENTS
        with Stream(gateway, headers={"last-event-id": stalled[0].last_id}) as resumed:
            seen += [event["seq"] for event in resumed.take(EVENTS - len(seen))]
        assert seen == list(range(1, EVENTS + 1))
    assert not [line for line in gateway.log if "Traceback" in line]


def test_a_stalled_websocket_is_cut_too(gateway: GatewayProcess) -> None:
    with Socket(gateway) as reading, Socket(gateway, max_queue=1) as stalled:
        for connection in (reading, stalled):
            connection.send("follow", ref=1)
            assert connection.recv()["events"] == []
        got: list[int] = []
        reader = threading.Thread(
            target=lambda: got.extend(e["seq"] for e in reading.events(EVENTS)), daemon=True
        )
        reader.start()
        before = memory(gateway)
        publish_much(gateway)
        reader.join(20)
        assert got == list(range(1, EVENTS + 1)), "the one who reads was disturbed"
        assert memory(gateway) - before < MEMORY_MAX
        wait_until(lambda: health(gateway)["connections"]["websocket"] == 1, "the stalled one to be cut")
        assert reading.ask("ping") == {"op": "pong"}
    assert len(all_events(gateway)) == EVENTS
    assert not [line for line in gateway.log if "Traceback" in line]
