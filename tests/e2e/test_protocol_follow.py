"""PROTOCOL section 1, following: pages, streams, filters, cursors, gaps, limits, the last word at a stop."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from gateway import GatewayProcess, running_gateway
from wire import Socket, Stream, accept, all_events, call, health, page, post, publish, wait_until

CURSOR = re.compile(r"[0-9a-f]{8}:\d+-\d+-\d+")


def test_a_follower_that_comes_before_the_first_event(gateway: GatewayProcess) -> None:
    with Stream(gateway) as one, Stream(gateway) as two:
        for stream in (one, two):
            stream.start()
        accept(gateway, type="tool.result", data="first")
        assert one.next().json() == two.next().json() == all_events(gateway)[0]


def test_the_form_of_a_stream(gateway: GatewayProcess) -> None:
    accept(gateway, type="tool.result", id="a")
    with Stream(gateway, "after=0") as stream:
        assert stream.response.headers["content-type"].partition(";")[0] == "text/event-stream"
        assert "no-transform" in stream.response.headers["cache-control"]
        first = next(stream.blocks())
        assert first.data == "" and first.id and CURSOR.fullmatch(first.id)
        assert first.retry is not None and 1000 <= first.retry <= 4000
        block = stream.next()
    assert block.event == "tool.result" and block.id and CURSOR.fullmatch(block.id)
    assert block.json() == call(gateway, "GET", "/v1/events/1").json() == page(gateway)["events"][0]
    assert block.id.startswith(block.json()["epoch"])


@pytest.mark.slow
def test_a_silent_stream_is_kept_alive_with_its_place(gateway: GatewayProcess) -> None:
    with Stream(gateway, "type=none") as stream:
        stream.start()
        accept(gateway, type="tool.result")
        block = next(stream.blocks())  # after 15 s of silence
        assert block.data == "" and block.id and block.id.endswith(":1-1-1")


def test_a_page_is_what_was_asked_for(gateway: GatewayProcess) -> None:
    publish(gateway, *({"type": "tool.result", "id": str(n)} for n in range(5)))
    first = page(gateway, "after=0&limit=2")
    assert set(first) == {"events", "cursor", "head"}
    assert ([e["id"] for e in first["events"]], first["head"]) == (["0", "1"], 5)
    rest = page(gateway, f"after={first['cursor']}")
    assert [e["id"] for e in rest["events"]] == ["2", "3", "4"]
    end = page(gateway, f"after={rest['cursor']}")
    assert (end["events"], end["cursor"]) == ([], rest["cursor"])
    assert page(gateway, "after=3")["events"][0]["seq"] == 4, "a plain seq is a place too"
    assert page(gateway, "limit=1")["events"] == [], "without `after` there is only what is new"


MIXED = [
    {"type": "user.message", "source": "cursor", "session": "s1", "subject": "app/[id]/page.tsx"},
    {"type": "tool.result", "source": "claude-code/3f2a", "session": "s2", "subject": "app/i/page.tsx"},
    {"type": "tool.result.partial", "source": "claude-code/77", "workspace": "shop", "subject": "app/a/b/c.tsx"},
    {"type": "test.failed", "source": "ci", "workspace": "shop/web", "subject": "tests/test_a.py"},
    {"type": "index.updated", "source": "ci"},
]  # fmt: skip
FILTERS: list[tuple[str, list[int]]] = [
    ("type=tool.result", [2]),
    ("type=tool.*", [2, 3]),
    ("type=tool.*&type=user.message", [1, 2, 3]),
    ("type=*", [1, 2, 3, 4, 5]),
    ("type=TOOL.*", []),
    ("class=environment", [4, 5]),
    ("class=user&class=tool", [1, 2, 3]),
    ("priority=P0&priority=P2", [1, 5]),
    ("source=claude-code/*", [2, 3]),
    ("source=c?", [4, 5]),
    ("workspace=shop", [3]),
    ("workspace=shop/*", [4]),
    ("workspace=default", [1, 2, 5]),
    ("session=s1", [1]),
    ("session=s*", [1, 2]),
    ("subject=app/**", [1, 2, 3]),
    ("subject=app/*/page.tsx", [1, 2]),
    ("subject=**/*.tsx", [1, 2, 3]),
    ("subject=app/[id]/page.tsx", [1]),
    ("subject=app/?/page.tsx", [2]),
    ("subject=app/*", []),
    ("type=tool.*&source=ci", []),
    ("type=test.*&workspace=shop/web", [4]),
]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path_factory.mktemp("mixed") / "data") as process:
        publish(process, *MIXED)
        yield process


@pytest.mark.parametrize(("query", "seqs"), FILTERS, ids=[f[0] for f in FILTERS])
def test_filters(mixed: GatewayProcess, query: str, seqs: list[int]) -> None:
    order = sorted(e["type"] for e in MIXED)
    by_lane = {e["type"]: e["seq"] for e in all_events(mixed)}
    assert sorted(by_lane) == order
    wanted = {MIXED[n - 1]["type"] for n in seqs}
    encoded = quote(query, safe="=&")
    assert {e["type"] for e in all_events(mixed, encoded)} == wanted
    fields: dict[str, Any] = {}
    for name, _, value in (pair.partition("=") for pair in query.split("&")):
        fields.setdefault(name, []).append(value)
    with Socket(mixed) as connection:
        connection.send("follow", ref=1, after=0, **fields)
        assert {e["type"] for e in connection.events(len(wanted))} == wanted
    if wanted:
        with Stream(mixed, f"after=0&{encoded}") as stream:
            assert {e["type"] for e in stream.take(len(wanted))} == wanted


def test_a_resume_loses_and_repeats_nothing_at_any_place(gateway: GatewayProcess) -> None:
    types = ("user.message", "tool.result", "index.updated")
    publish(gateway, *({"type": types[n % 3]} for n in range(15)))
    with Stream(gateway, "after=0") as stream:
        blocks = [stream.next() for _ in range(15)]
    seqs = [block.json()["seq"] for block in blocks]
    assert sorted(seqs) == list(range(1, 16))
    for place, block in enumerate(blocks[:-1]):
        assert block.id
        with Stream(gateway, headers={"last-event-id": block.id}) as stream:
            assert [e["seq"] for e in stream.take(14 - place)] == seqs[place + 1 :]
        with Stream(gateway, f"after={block.id}") as stream:
            assert stream.next().json()["seq"] == seqs[place + 1]


def test_the_header_wins_over_the_query(gateway: GatewayProcess) -> None:
    publish(gateway, *[{"type": "tool.result"}] * 5)
    with Stream(gateway, "after=0", {"last-event-id": "3"}) as stream:
        assert stream.next().json()["seq"] == 4
    assert page(gateway, "after=0", last_event_id="3")["events"][0]["seq"] == 4
    with Stream(gateway, "after=2", {"last-event-id": ""}) as stream:
        assert stream.next().json()["seq"] == 3, "an empty header is none"


def test_resume_over_a_restart(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        with Stream(gateway) as stream:
            stream.start()
            publish(gateway, *[{"type": "tool.result"}] * 3)
            stream.take(2)
            place = stream.last_id
        gateway.kill()
    with running_gateway(tmp_path / "data") as gateway, Stream(gateway, f"after={place}") as stream:
        accept(gateway, type="tool.result")
        assert [e["seq"] for e in stream.take(2)] == [3, 4]


def gap_of(gateway: GatewayProcess, after: str) -> tuple[dict[str, Any], list[int]]:
    """Follow from a cursor in all three ways; return the gap and the next three seqs, which must agree."""
    with Stream(gateway, headers={"last-event-id": after}) as stream:
        block = stream.next()
        assert block.event == "herdr.gap" and block.id
        gap, seqs = block.json(), [e["seq"] for e in stream.take(3)]
    with Stream(gateway, headers={"last-event-id": block.id}) as stream:
        assert stream.next().json()["seq"] == seqs[0], "the gap's own id leads just behind it"
    got = page(gateway, f"after={after}")
    assert (got["gap"], [e["seq"] for e in got["events"][:3]]) == (gap, seqs)
    with Socket(gateway) as connection:
        connection.send("follow", ref=1, after=after)
        frames = [connection.recv(), connection.recv()]
        said = next(frame for frame in frames if frame["op"] == "gap")
        assert (said["ref"], said["gap"]) == (1, gap)
        assert [e["seq"] for e in connection.events(3)][:3] == seqs
    return gap, seqs


def test_a_cursor_of_another_log_gets_a_gap(gateway: GatewayProcess) -> None:
    publish(gateway, *[{"type": "tool.result"}] * 3)
    gap, seqs = gap_of(gateway, "00000000:2-2-2")
    assert (gap["reason"], seqs) == ("epoch", [1, 2, 3])
    assert set(gap) == {"reason", "from", "to"}


def test_a_cursor_past_the_head_gets_a_gap(gateway: GatewayProcess) -> None:
    publish(gateway, *[{"type": "tool.result"}] * 3)
    epoch = health(gateway)["epoch"]
    for after in (f"{epoch}:7-7-7", "7", f"{epoch}:3-3-4"):
        gap, seqs = gap_of(gateway, after)
        assert (gap["reason"], seqs) == ("rewound", [1, 2, 3])


def test_a_cursor_older_than_the_retention_gets_a_gap(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_BUS__RETENTION__MAX_EVENTS": "10"}
    with running_gateway(tmp_path / "data", env=env) as gateway:
        publish(gateway, *[{"type": "tool.result"}] * 40)

        def trimmed() -> bool:
            accept(gateway, type="tool.result")
            return bool(health(gateway)["store"]["first"] > 20)

        wait_until(trimmed, "the retention to trim")
        first = health(gateway)["store"]["first"]
        gap, seqs = gap_of(gateway, f"{health(gateway)['epoch']}:5-5-5")
        assert gap == {"reason": "retention", "from": 6, "to": first - 1}
        assert seqs == [first, first + 1, first + 2]
        assert page(gateway, "after=0")["events"][0]["seq"] == first
        assert "gap" not in page(gateway, "after=0"), "0 means the oldest there is"
        answer = call(gateway, "GET", "/v1/events/1")
        assert (answer.status, answer.json()["code"]) == (404, "unknown_event")


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway with room for one follower."""
    with running_gateway(tmp_path / "data", env={"HERDR_GATEWAY_SERVER__MAX_CONNECTIONS": "1"}) as process:
        yield process


def test_a_follower_too_many_is_told_to_come_back(narrow: GatewayProcess) -> None:
    with Stream(narrow) as kept:
        kept.start()
        with Stream(narrow, "after=0") as refused:
            blocks = list(refused.blocks())  # the stream ends by itself
            assert refused.retry is not None and refused.retry > 2000
        (busy,) = [block for block in blocks if block.data]
        assert busy.event == "herdr.busy" and busy.id is None and isinstance(busy.json(), dict)
        with Socket(narrow) as connection:
            said = connection.ask("follow", ref=1)
            assert (said["op"], said["ref"]) == ("busy", 1) and said["retry_ms"] > 2000
            # publishing and reading pages never count
            said = connection.ask("publish", ref=2, events=[{"type": "tool.result", "id": "a"}])
            assert said["results"][0]["status"] == "accepted"
        assert post(narrow, {"type": "tool.result"}).status == 200
        assert len(page(narrow)["events"]) == 2
        assert [e["seq"] for e in kept.take(2)] == [1, 2], "the one who was there is not disturbed"
        assert health(narrow)["connections"]["sse"] == 1
    wait_until(lambda: health(narrow)["connections"]["sse"] == 0, "the place to be free")
    with Stream(narrow, "after=0") as stream:
        assert stream.next().json()["seq"] == 1


def test_a_stop_ends_every_stream_with_a_last_word(tmp_path: Path) -> None:
    with ExitStack() as stack, running_gateway(tmp_path / "data") as gateway:
        streams = [stack.enter_context(Stream(gateway)).start() for _ in range(5)]
        with Socket(gateway) as connection:
            connection.send("follow", ref=1)
            assert connection.recv()["op"] == "events"
            accept(gateway, type="tool.result", id="last")
            began = time.monotonic()
            code = gateway.stop()
            took = time.monotonic() - began
            assert connection.events(1)[0]["id"] == "last"
            assert connection.recv()["op"] == "bye"
        for stream in streams:
            blocks = [block for block in stream.blocks() if block.data]
            assert [block.event for block in blocks] == ["tool.result", "herdr.bye"]
            assert blocks[1].id is None and stream.retry is not None
            assert not stream.broken, "the end is clean"
        assert code == 0
        assert took < 5, "a stop takes at most 5 s"
        assert not [line for line in gateway.log if "Traceback" in line or '"error"' in line]


def test_synthetic_events_are_bare_objects(narrow: GatewayProcess) -> None:
    with Stream(narrow) as kept:
        kept.start()
        with Stream(narrow) as refused:
            said = next(block for block in refused.blocks() if block.data)
    assert "seq" not in json.loads(said.data) and "data" not in json.loads(said.data)
