"""Context beside events, over real HTTP: SSE, WebSocket and pages alike."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_gateway import WAIT, Folder, context_gateway
from fake_contexts import shown
from gateway import GatewayProcess
from refusals import assert_problem
from wire import Socket, Stream, accept, all_events, call, page, publish, put_route

WINDOW = "Decided: the port stays 8787.\n- Ünï 你好 \u2028"
OUTLINE = "class Cart:\n    def total(self) -> int"
BOTH = {"session_tokens": 2048, "graph": True}
FILLED = {"session": shown(WINDOW), "graph": shown(OUTLINE)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = Folder(tmp_path_factory.mktemp("context") / "texts")
    folder.put("sessions", "s-1", WINDOW)
    folder.put("sessions", "late", WAIT)
    folder.put("files", "src/cart.py", OUTLINE)
    return folder


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, folder: Folder) -> Iterator[GatewayProcess]:
    with context_gateway(tmp_path_factory.mktemp("beside") / "data", folder) as process:
        yield process


def routed(gateway: GatewayProcess, target: str, **rule: Any) -> None:
    put_route(gateway, target, event=f"{target}.*", target=target, timeout_ms=60_000, **rule)


def changed(target: str, **fields: Any) -> dict[str, Any]:
    about = {"session": "s-1", "subject": "src/cart.py", "workspace": "shop"}
    return {"type": f"{target}.news", **about, **fields}


def read(gateway: GatewayProcess, way: str, target: str, count: int = 1) -> list[dict[str, Any]]:
    """What a target gets, from the oldest on."""
    if way == "sse":
        with Stream(gateway, f"as={target}&after=0") as stream:
            return stream.take(count)
    if way == "page":
        return list(page(gateway, f"as={target}&after=0")["events"])
    with Socket(gateway) as socket:
        socket.send("follow", ref=1, **{"as": target}, after="0")
        return socket.events(count)


@pytest.mark.parametrize("way", ["sse", "websocket", "page"])
@pytest.mark.parametrize("form", ["full", "summary", "ref"])
def test_what_the_rule_asks_for_stands_beside_the_event(gateway: GatewayProcess, way: str, form: str) -> None:
    target = f"{form}-{way}"
    routed(gateway, target, format=form, context=BOTH)
    seq = accept(gateway, **changed(target, data={"n": 1}))
    (event,) = read(gateway, way, target)
    assert event.pop("context") == FILLED
    assert event["seq"] == seq and ("data" in event) == (form == "full")
    assert set(event) >= {"seq", "type", "subject"}


def test_the_question_is_the_rules(gateway: GatewayProcess, folder: Folder) -> None:
    routed(gateway, "asks", context={"session_tokens": 77, "graph": True})
    accept(gateway, **changed("asks"))
    read(gateway, "page", "asks")
    assert folder.asked("sessions")[-1] == ["sessions", "s-1", 77]
    assert folder.asked("files")[-1] == ["files", "src/cart.py", "shop"]


def test_it_is_as_of_the_delivery(gateway: GatewayProcess, folder: Folder) -> None:
    routed(gateway, "later", context={"graph": True})
    folder.put("files", "moving.py", "before")
    accept(gateway, **changed("later", subject="moving.py"))
    assert read(gateway, "sse", "later")[0]["context"] == {"graph": shown("before")}
    folder.put("files", "moving.py", "after")
    assert read(gateway, "sse", "later")[0]["context"] == {"graph": shown("after")}


def test_what_is_missing_says_why_and_the_event_comes(gateway: GatewayProcess) -> None:
    routed(gateway, "missing", context=BOTH)
    publish(
        gateway,
        changed("missing", session="nobody", subject="no.py"),
        changed("missing", session="late"),
        {"type": "missing.news"},
    )
    first, second, third = read(gateway, "page", "missing")
    assert first["context"] == {
        "session": {"unavailable": "unknown_session"},
        "graph": {"unavailable": "unknown_file"},
    }
    assert second["context"] == {"session": {"unavailable": "timeout"}, "graph": shown(OUTLINE)}
    assert "context" not in third


def test_only_the_target_gets_it(gateway: GatewayProcess) -> None:
    routed(gateway, "alone", context=BOTH)
    seq = accept(gateway, **changed("alone"))
    assert "context" not in call(gateway, "GET", f"/v1/events/{seq}").json()
    assert [event for event in all_events(gateway, "type=alone.*") if "context" in event] == []
    assert read(gateway, "page", "alone")[0]["context"] == FILLED


@pytest.mark.parametrize("way", ["sse", "websocket"])
def test_nobody_else_waits_for_a_late_one(gateway: GatewayProcess, way: str) -> None:
    """While one follower waits, others are served, and so is the same follower's own P0."""
    slow, plain = f"slow-{way}", f"plain-{way}"
    routed(gateway, slow, context=BOTH)
    routed(gateway, plain, priority="P0")
    put_route(gateway, f"{slow}-p0", event=f"{plain}.*", target=slow, priority="P0")
    if way == "sse":
        with (
            Stream(gateway, f"as={slow}&after=0") as waiting,
            Stream(gateway, f"as={plain}&after=0") as other,
        ):
            waiting.start(), other.start()
            late = accept(gateway, **changed(slow, session="late"))
            urgent = accept(gateway, type=f"{plain}.word")
            assert other.take(1)[0]["seq"] == urgent
            got = waiting.take(2)
    else:
        with Socket(gateway) as socket:
            socket.send("follow", ref=1, **{"as": slow}, after="0")
            socket.send("follow", ref=2, **{"as": plain}, after="0")
            assert {socket.recv()["ref"], socket.recv()["ref"]} == {1, 2}
            late = accept(gateway, **changed(slow, session="late"))
            urgent = accept(gateway, type=f"{plain}.word")
            frames = [socket.recv() for _ in range(3)]
        assert [e["seq"] for f in frames if f["ref"] == 2 for e in f["events"]] == [urgent]
        got = [event for frame in frames if frame["ref"] == 1 for event in frame["events"]]
    assert [event["seq"] for event in got] == [late, urgent]
    assert got[0]["context"]["session"]["unavailable"] in ("overtaken", "timeout")
    assert "context" not in got[1]


def test_a_stream_resumes_between_the_pieces_of_a_page(gateway: GatewayProcess) -> None:
    routed(gateway, "pieces", context={"graph": True}, match={"data.plain": False})
    put_route(gateway, "pieces-plain", event="pieces.*", target="pieces", match={"data.plain": True})
    publish(gateway, *(changed("pieces", data={"plain": n % 2 == 0}) for n in range(4)))
    with Stream(gateway, "as=pieces&after=0") as stream:
        whole = stream.take(4)
    cursors = []
    with Stream(gateway, "as=pieces&after=0") as stream:
        for event in whole:
            assert stream.take(1) == [event]
            cursors.append(stream.last_id)
    for n, cursor in enumerate(cursors[:-1], 1):
        with Stream(gateway, f"as=pieces&after={cursor}") as stream:
            assert stream.take(4 - n) == whole[n:]
    with Socket(gateway) as socket:
        socket.send("follow", ref=1, **{"as": "pieces"}, after="0")
        frames = [socket.recv() for _ in range(3)]
    assert [[e["seq"] for e in frame["events"]] for frame in frames] == [
        [],
        [whole[0]["seq"]],
        [e["seq"] for e in whole[1:]],
    ]
    assert page(gateway, f"as=pieces&after={frames[1]['cursor']}")["events"] == whole[1:]


@pytest.mark.parametrize(
    ("context", "code"),
    [
        ({}, "bad_rule"),
        ({"graph": False}, "bad_rule"),
        ({"session_tokens": 63}, "invalid_request"),
        ({"tokens": 100}, "invalid_request"),
        ("all", "invalid_request"),
    ],
)
def test_a_wrong_context_is_refused(gateway: GatewayProcess, context: Any, code: str) -> None:
    answer = call(gateway, "PUT", "/v1/routes/wrong", {"event": "*", "target": "t", "context": context})
    assert_problem(answer, 400, code)
    assert "context" in answer.json()["detail"]
    assert call(gateway, "GET", "/v1/routes/wrong").status == 404


def test_a_rule_shows_its_context_and_keeps_it_over_a_restart(tmp_path: Path, folder: Folder) -> None:
    with context_gateway(tmp_path / "data", folder) as gateway:
        routed(gateway, "kept", context=BOTH)
        put_route(gateway, "plain", event="x", target="t", context="none")
        accept(gateway, **changed("kept"))
        assert gateway.stop() == 0
    with context_gateway(tmp_path / "data", folder) as gateway:
        assert call(gateway, "GET", "/v1/routes/kept").json()["context"] == BOTH
        assert "context" not in call(gateway, "GET", "/v1/routes/plain").json()
        assert read(gateway, "page", "kept")[0]["context"] == FILLED, "the wish was stored with the event"


def test_a_token_needs_the_scope_to_ask_for_context(tmp_path: Path, folder: Folder) -> None:
    tokens = {"router": ["routes"], "sharer": ["routes", "context"], "boss": ["admin"]}
    listed = [
        {"name": name, "token": f"hrd_{name}_012345", "scopes": scopes} for name, scopes in tokens.items()
    ]
    (tmp_path / "herdr.yaml").write_text(json.dumps({"auth": {"tokens": listed}}))
    with context_gateway(tmp_path / "data", folder, "--config", str(tmp_path / "herdr.yaml")) as gateway:
        for name in tokens:
            headers = {"authorization": f"Bearer hrd_{name}_012345"}
            rule = {"event": "*", "target": "t"}
            assert call(gateway, "PUT", "/v1/routes/r", rule, headers).status in (200, 201)
            answer = call(gateway, "PUT", "/v1/routes/r", {**rule, "context": BOTH}, headers)
            if name == "router":
                assert_problem(answer, 403, "missing_scope")
            else:
                assert answer.status == 200 and answer.json()["context"] == BOTH


def test_the_description_of_the_api_names_it(gateway: GatewayProcess) -> None:
    schemas = call(gateway, "GET", "/openapi.json").json()["components"]["schemas"]
    assert "RouteContext" in json.dumps(schemas["RouteRule"]["properties"]["context"])
    assert set(schemas["EventContext"]["properties"]) == {"session", "graph"}
    assert "EventContext" in json.dumps(schemas["FollowedEvent"]["properties"]["context"])
