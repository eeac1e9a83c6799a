import re

from prometheus_client.parser import text_string_to_metric_families

from herdr.web.metrics import CONTENT_TYPE, Snapshot, render

QUIET = Snapshot(
    version="1.2.3",
    uptime_s=0.5,
    connections={},
    queue_depth={},
    receipts={},
    dropped={},
    published=0,
    delivered=0,
    expired=0,
    head=0,
    first=1,
    log_writable=True,
)
BUSY = QUIET._replace(
    connections={"sse": 3, "websocket": 2},
    queue_depth={"P0": 1, "P1": 20, "P2": 300},
    receipts={"accepted": 9, "stale": 1, "user-made\n": 5},
    dropped={"rate_limited": 7, "overloaded": 8},
    published=9,
    delivered=90,
    expired=4,
    head=1234,
    first=200,
    log_writable=False,
    store_bytes=4096,
)

Labels = tuple[tuple[str, str], ...]


def read(body: bytes) -> dict[tuple[str, Labels], float]:
    families = text_string_to_metric_families(body.decode())
    return {(s.name, tuple(s.labels.items())): s.value for family in families for s in family.samples}


def test_every_number_arrives() -> None:
    assert read(render(BUSY)) == {
        ("herdr_build_info", (("version", "1.2.3"),)): 1,
        ("herdr_uptime_seconds", ()): 0.5,
        ("herdr_connections", (("kind", "sse"),)): 3,
        ("herdr_connections", (("kind", "websocket"),)): 2,
        ("herdr_queue_events", (("lane", "P0"),)): 1,
        ("herdr_queue_events", (("lane", "P1"),)): 20,
        ("herdr_queue_events", (("lane", "P2"),)): 300,
        ("herdr_log_head_seq", ()): 1234,
        ("herdr_log_first_seq", ()): 200,
        ("herdr_log_writable", ()): 0,
        ("herdr_log_size_bytes", ()): 4096,
        ("herdr_published_events_total", ()): 9,
        ("herdr_delivered_events_total", ()): 90,
        ("herdr_expired_deliveries_total", ()): 4,
        ("herdr_receipts_total", (("status", "accepted"),)): 9,
        ("herdr_receipts_total", (("status", "duplicate"),)): 0,
        ("herdr_receipts_total", (("status", "deferred"),)): 0,
        ("herdr_receipts_total", (("status", "dropped"),)): 0,
        ("herdr_receipts_total", (("status", "stale"),)): 1,
        ("herdr_dropped_events_total", (("reason", "rate_limited"),)): 7,
        ("herdr_dropped_events_total", (("reason", "overloaded"),)): 8,
    }


def test_what_has_not_happened_yet_is_there_as_zero() -> None:
    optional = {("herdr_log_size_bytes", ())}
    assert set(read(render(BUSY))) - set(read(render(QUIET))) == optional
    assert read(render(QUIET))["herdr_dropped_events_total", (("reason", "overloaded"),)] == 0


def test_every_family_is_named_and_explained_as_prometheus_asks() -> None:
    families = list(text_string_to_metric_families(render(BUSY).decode()))
    for family in families:
        assert re.fullmatch(r"herdr_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        assert family.type in ("gauge", "counter")
        assert all(s.name.endswith("_total") for s in family.samples) is (family.type == "counter")
    assert len({family.name for family in families}) == len(families)


def test_the_format_is_prometheus_text() -> None:
    assert CONTENT_TYPE.startswith("text/plain; version=")
    assert render(QUIET).endswith(b"\n")
