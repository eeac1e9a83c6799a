"""A storm: 5,000 background events at once with users' words among them. Every P0 arrives, drops are counted."""

import threading
import time
from collections import Counter
from typing import Any

from gateway import GatewayProcess
from wire import Stream, accept, all_events, call, health, post, publish, put_route

NOISY, REQUESTS, PER_REQUEST, WORDS = 4, 5, 250, 5  # 4 tools x 5 requests x (250 P2 and 5 P0)
RATE, BURST_S = 20, 1.5  # per second by default; burst of a second, and half a second's overdraft


def storm(gateway: GatewayProcess, tool: int, into: list[dict[str, Any]]) -> None:
    for request in range(REQUESTS):
        events: list[dict[str, Any]] = [
            {"type": "index.updated", "source": f"tool-{tool}", "data": n} for n in range(PER_REQUEST)
        ]
        for word in range(WORDS):
            words = {"type": "user.message", "source": "user", "id": f"{tool}-{request}-{word}"}
            events.insert(word * 50 + 25, words)
        into.extend(
            {"asked": event["type"], **receipt}
            for event, receipt in zip(events, publish(gateway, *events), strict=True)
        )


def test_every_p0_arrives_through_a_storm_and_drops_are_counted(gateway: GatewayProcess) -> None:
    put_route(gateway, "words", event="user.*", target="agent")
    accept(gateway, type="tool.result")
    with Stream(gateway, "as=agent") as agent:
        agent.start()
        receipts: list[dict[str, Any]] = []
        began = time.monotonic()
        tools = [threading.Thread(target=storm, args=(gateway, n, receipts)) for n in range(NOISY)]
        for tool in tools:
            tool.start()
        quiet = post(gateway, {"type": "index.updated", "source": "quiet"})
        for tool in tools:
            tool.join()
        took = time.monotonic() - began
        words = agent.take(NOISY * REQUESTS * WORDS)

    told = Counter((receipt["asked"], receipt["status"], receipt.get("reason")) for receipt in receipts)
    assert told["user.message", "accepted", None] == NOISY * REQUESTS * WORDS
    assert {word["id"] for word in words} == {r["id"] for r in receipts if r["asked"] == "user.message"}
    assert len({word["seq"] for word in words}) == len(words)

    dropped = told["index.updated", "dropped", "rate_limited"]
    stored = told["index.updated", "accepted", None]
    assert dropped + stored == NOISY * REQUESTS * PER_REQUEST, told
    assert RATE <= stored <= RATE * (took + BURST_S) + 1
    assert quiet.json()["status"] == "accepted", "a quiet tool finds room beside noisy ones"
    assert len(all_events(gateway, "type=index.updated")) == stored + 1

    assert health(gateway)["dropped"]["rate_limited"] == dropped
    assert health(gateway)["status"] == "ok"
    metrics = call(gateway, "GET", "/metrics").body.decode()
    assert f'herdr_dropped_events_total{{reason="rate_limited"}} {float(dropped)}' in metrics


def test_a_single_event_over_the_rate_is_answered_202(gateway: GatewayProcess) -> None:
    answers = [post(gateway, {"type": "index.updated"}) for _ in range(100)]
    assert {answer.status for answer in answers} == {200, 202}
    refused = next(answer.json() for answer in answers if answer.status == 202)
    assert (refused["status"], refused["reason"]) == ("dropped", "rate_limited") and "seq" not in refused
