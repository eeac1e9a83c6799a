"""The thin line through everything: publish, log, follow, in one real process."""

import json
import urllib.request
from pathlib import Path

from gateway import GatewayProcess, running_gateway


def publish(gateway: GatewayProcess, event: object) -> dict[str, object]:
    request = urllib.request.Request(
        f"{gateway.url}/v1/events", json.dumps(event).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def page(gateway: GatewayProcess, query: str = "after=0") -> dict[str, object]:
    with urllib.request.urlopen(f"{gateway.url}/v1/events?{query}") as answer:
        return json.load(answer)


def test_an_accepted_event_is_there_after_a_restart(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        receipt = publish(gateway, {"type": "user.message", "data": {"text": "hello"}})
        assert receipt["status"] == "accepted"
        assert gateway.stop() == 0
    with running_gateway(tmp_path / "data") as gateway:
        events = page(gateway)["events"]
    assert [(e["seq"], e["id"], e["data"]) for e in events] == [(1, receipt["id"], {"text": "hello"})]


def test_a_stream_begins_with_what_is_there_and_goes_on_with_what_comes(gateway: GatewayProcess) -> None:
    publish(gateway, {"type": "tool.result", "data": 1})
    request = urllib.request.Request(
        f"{gateway.url}/v1/events?after=0", headers={"accept": "text/event-stream"}
    )
    with urllib.request.urlopen(request, timeout=20) as stream:
        assert _next_data(stream) == 1
        publish(gateway, {"type": "tool.result", "data": 2})
        assert _next_data(stream) == 2


def _next_data(stream: object) -> object:
    for line in stream:
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))["data"]
    raise AssertionError("the stream ended")
