"""PROTOCOL section 6: health, liveness, readiness, metrics, and the description of the API."""

import re
from typing import Any

from gateway import GatewayProcess
from prometheus_client.parser import text_string_to_metric_families
from wire import Socket, Stream, call, health, post, publish, put_route, wait_until

import herdr


def test_healthz_has_every_number(gateway: GatewayProcess) -> None:
    answer = call(gateway, "GET", "/healthz")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    report = answer.json()
    assert report["status"] == "ok" and report["version"] == herdr.__version__
    assert report["connections"] == {"sse": 0, "websocket": 0}
    assert report["queue_depth"] == {"P0": 0, "P1": 0, "P2": 0, "total": 0}
    assert set(report["throughput"]) == {"published_per_s", "delivered_per_s"}
    assert report["dropped"] == {"rate_limited": 0, "overloaded": 0, "expired": 0}
    assert (report["head"], report["backends"]) == (0, [])
    assert report["store"]["head"] == 0 and report["store"]["bytes"] > 0
    assert isinstance(report["uptime_s"], float)
    assert health(gateway)["uptime_s"] >= report["uptime_s"] >= 0


def test_the_numbers_follow_what_happens(gateway: GatewayProcess) -> None:
    with Stream(gateway) as stream, Socket(gateway) as connection:
        stream.start()
        connection.ask("ping")
        publish(gateway, *[{"type": "tool.result"}] * 50)
        stream.take(50)
        report = health(gateway)
        assert report["connections"] == {"sse": 1, "websocket": 1}
        assert report["head"] == report["store"]["head"] == 50
        wait_until(lambda: health(gateway)["throughput"]["published_per_s"] > 0, "the rate of publishing")
        wait_until(lambda: health(gateway)["throughput"]["delivered_per_s"] > 0, "the rate of delivering")


def test_liveness_and_readiness(gateway: GatewayProcess) -> None:
    for path in ("/livez", "/readyz"):
        answer = call(gateway, "GET", path)
        assert (answer.status, answer.json()["status"]) == (200, "ok")
        assert answer.headers["cache-control"] == "no-store"


def metrics(gateway: GatewayProcess) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = call(gateway, "GET", "/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.body.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics(gateway: GatewayProcess) -> None:
    put_route(gateway, "t", event="tool.*", target="a")
    before = metrics(gateway)
    publish(gateway, {"type": "tool.result", "id": "a"}, {"type": "tool.result", "id": "a"})
    post(gateway, {"type": "file.changed", "subject": "a.py"})
    after = metrics(gateway)
    receipts = {
        dict(labels)["status"]: value
        for (name, labels), value in after.items()
        if name == "herdr_receipts_total"
    }
    assert receipts == {"accepted": 1, "duplicate": 1, "deferred": 1, "dropped": 0, "stale": 0}
    assert after["herdr_log_head_seq", ()] == 1 and after["herdr_log_writable", ()] == 1
    assert after["herdr_published_events_total", ()] == 1
    assert set(after) == set(before), "no series appears with its first event"
    assert all(name.startswith(("herdr_", "gen_ai_")) for name, _ in after)


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        found = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return found.union(*map(references, node.values()))
    if isinstance(node, list):
        return set().union(*map(references, node))
    return set()


def test_the_description_is_whole(gateway: GatewayProcess) -> None:
    document = call(gateway, "GET", "/openapi.json").json()
    assert re.fullmatch(r"3\.[01]\.\d+", document["openapi"])
    assert document["info"]["version"] == herdr.__version__
    for reference in references(document):
        node: Any = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part.replace("~1", "/").replace("~0", "~")]
        assert node
    operations = [op for methods in document["paths"].values() for op in methods.values()]
    assert all(operation["summary"] and operation["responses"] for operation in operations)
    for path, methods in document["paths"].items():
        named = {p["name"] for op in methods.values() for p in op.get("parameters", []) if p["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path)), path


def test_a_head_request_is_answered_without_a_body(gateway: GatewayProcess) -> None:
    for path in ("/healthz", "/v1/events?after=0", "/openapi.json"):
        answer = call(gateway, "HEAD", path)
        assert (answer.status, answer.body) == (200, b"")
