"""What the dashboard reads, against a real gateway: sign-in, the live stream, clients, routes tried, its files."""

import gzip
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import PATIENCE_S, call, publish, put_route, wait_until

TOKENS = {
    "auth": {
        "tokens": [
            {"name": "boss", "token": "boss-secret", "scopes": ["admin"]},
            {"name": "reader", "token": "reader-secret", "scopes": ["events:follow"]},
        ]
    }
}
BOSS, READER = {"authorization": "Bearer boss-secret"}, {"authorization": "Bearer reader-secret"}
OWN = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data") as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GatewayProcess]:
    config = tmp_path / "herdr.yaml"
    config.write_text(json.dumps(TOKENS))
    with running_gateway(tmp_path / "data", "--config", str(config)) as process:
        yield process


class Live:
    """A live stream, read event by event."""

    def __init__(self, gateway: GatewayProcess, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
        self._connection.request("GET", "/v1/live", headers={"accept": "text/event-stream", **headers})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()

    def next(self, kind: str) -> dict[str, Any]:
        """Return the next event of a kind."""
        name = ""
        while True:
            line = self._answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == kind:
                return dict(json.loads(line.removeprefix("data: ")))

    def close(self) -> None:
        self._connection.close()


def sign_in(gateway: GatewayProcess, by: dict[str, str]) -> dict[str, str]:
    link = call(gateway, "POST", "/v1/browser-links", {}, by)
    assert link.status == 201 and link.json()["link"] == f"/#login={link.json()['ticket']}"
    answer = call(gateway, "POST", "/v1/browser-sessions", {"ticket": link.json()["ticket"]})
    assert answer.status == 204, answer
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Secure" not in cookie
    return {"cookie": cookie.partition(";")[0]}


def test_the_live_stream_begins_with_what_was_and_goes_on(gateway: GatewayProcess) -> None:
    publish(gateway, {"type": "tool.result", "source": "before"})
    live = Live(gateway)
    hello = live.next("hello")
    assert [event["source"] for event in hello["recent"]] == ["before"] and hello["head"] == 1
    publish(gateway, {"type": "tool.result", "source": "after", "data": {"n": 1}})
    (event,) = live.next("events")["events"]
    assert (event["source"], event["seq"], event["data"]) == ("after", 2, {"n": 1})
    sample = live.next("sample")
    assert sample["sse"] == 1 and len(sample["depth"]) == 3
    live.close()
    wait_until(lambda: call(gateway, "GET", "/healthz").json()["connections"]["sse"] == 0, "the end")


def test_a_storm_is_thinned_out_counted_and_holds_the_users_words(gateway: GatewayProcess) -> None:
    streams = [Live(gateway), Live(gateway)]
    for live in streams:
        live.next("hello")
    storm = [{"type": "tool.result", "source": "storm", "data": n} for n in range(1000)]
    for word in range(10):
        publish(gateway, *storm)
        publish(gateway, {"type": "user.message", "source": "me", "data": word})
    publish(gateway, {"type": "user.message", "source": "me", "data": "stop"})
    for live in streams:
        shown: list[dict[str, Any]] = []
        skipped = 0
        while not any(event["data"] == "stop" for event in shown):
            block = live.next("events")
            assert len(block["events"]) <= 25
            shown += block["events"]
            skipped += block["skipped"]
        assert skipped > 5000 and len(shown) + skipped == 10_011
        assert [event["data"] for event in shown if event["source"] == "me"] == [*range(10), "stop"]
        seqs = [event["seq"] for event in shown]
        assert seqs == sorted(set(seqs))
        live.close()


def test_a_redacted_event_is_not_shown_to_who_comes_later(gateway: GatewayProcess) -> None:
    publish(gateway, {"type": "tool.result", "source": "leak", "data": "hunter2"})
    assert call(gateway, "POST", "/v1/events/1/redact", {}).status == 200
    wait_until(lambda: call(gateway, "GET", "/healthz").json()["head"] == 2, "what tells of it")
    live = Live(gateway)
    redacted, _ = live.next("hello")["recent"]
    assert (redacted["seq"], redacted["source"], redacted["data"]) == (1, "leak", {"redacted": True})
    live.close()


def test_a_large_payload_is_named_not_sent(gateway: GatewayProcess) -> None:
    live = Live(gateway)
    live.next("hello")
    publish(gateway, {"type": "tool.result", "source": "big", "data": "x" * 100_000})
    (event,) = live.next("events")["events"]
    assert "data" not in event and event["data_bytes"] > 100_000 and event["ref"] == "/v1/events/1"
    live.close()


def test_a_stop_is_said_to_the_browser(gateway: GatewayProcess) -> None:
    live = Live(gateway)
    live.next("hello")
    assert gateway.stop() == 0
    assert live.next("herdr.bye")["retry_ms"] > 0
    live.close()


def test_clients_are_listed_with_how_far_behind_targets_are(gateway: GatewayProcess) -> None:
    put_route(gateway, "r", event="tool.*", target="ide")
    publish(gateway, {"type": "tool.result", "source": "ci", "workspace": "w", "session": "s"})
    cursor = call(gateway, "GET", "/v1/events?as=ide").json()["cursor"]
    assert call(gateway, "POST", "/v1/targets/ide/ack", {"cursor": cursor}).status == 200
    publish(gateway, *[{"type": "tool.result", "source": "ci"}] * 3)
    rows = {row["name"]: row for row in call(gateway, "GET", "/v1/clients").json()["clients"]}
    assert (rows["ci"]["events"], rows["ci"]["kinds"], rows["ci"]["session"]) == (4, ["publisher"], "s")
    assert (rows["ide"]["kinds"], rows["ide"]["behind"]) == (["target"], 3)
    call(gateway, "POST", "/hooks/claude-code", {"hook_event_name": "Stop", "session_id": "12345678"})
    rows = {row["name"]: row for row in call(gateway, "GET", "/v1/clients").json()["clients"]}
    assert (rows["claude-code/12345678"]["kinds"], rows["ci"]["kinds"]) == (["hooks"], ["publisher"])


def test_who_hears_of_events_in_answers_is_behind_by_what_waits_for_it(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    added = call(gateway, "POST", "/v1/workspaces", {"path": str(tmp_path)})
    assert added.status in (200, 201), added
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "12345678", "cwd": str(tmp_path)}
    assert "additionalContext" in str(call(gateway, "POST", "/hooks/claude-code", prompt).json())
    publish(gateway, *[{"type": "tool.result", "source": "ci"}] * 3)  # for nobody
    body = {"title": "t", "role": "claude-code/12345678", "owner": "me"}
    assert call(gateway, "POST", "/v1/tasks", body).status == 201
    rows = {row["name"]: row for row in call(gateway, "GET", "/v1/clients").json()["clients"]}
    assert rows["claude-code/12345678"]["behind"] == 1


def test_an_event_is_tried_against_the_table_and_not_published(gateway: GatewayProcess) -> None:
    put_route(gateway, "failures", event="test.*", target="ide", match={"data.level": "error"}, priority="P0")
    put_route(gateway, "all", event="*", target="log", match={"attr.mode": "verbose"})
    event = {"type": "test.failed", "source": "ci", "data": {"level": "warning"}}
    tried = call(gateway, "POST", "/v1/routes/try", event).json()
    assert (tried["class"], tried["priority"], tried["tags"]) == ("environment", "P1", ["failure"])
    why = {rule["name"]: (rule["fits"], rule["why"]) for rule in tried["rules"]}
    assert why["failures"] == (False, 'data.level is "warning", not "error"')
    assert why["all"] == (True, "fits followers whose attr.mode fit")
    event["data"] = {"level": "error"}
    tried = call(gateway, "POST", "/v1/routes/try", event).json()
    assert tried["priority"] == "P0" and tried["deliveries"][0]["rules"] == ["failures"]
    assert call(gateway, "GET", "/healthz").json()["head"] == 0
    assert call(gateway, "POST", "/v1/routes/try", [event, event]).status == 400
    assert call(gateway, "POST", "/v1/routes/try", {"type": "test.failed", "nonsense": 1}).status == 400


def test_events_of_the_gateway_itself_are_tried_too(gateway: GatewayProcess) -> None:
    put_route(gateway, "trouble", event="conflict.*", target="ide")
    event = {"type": "conflict.detected", "source": "herdr", "priority": "P0"}
    tried = call(gateway, "POST", "/v1/routes/try", event).json()
    assert (tried["priority"], [d["target"] for d in tried["deliveries"]]) == ("P0", ["ide"])
    assert call(gateway, "POST", "/v1/events", event).status == 400


def test_a_link_signs_in_once_with_the_rights_of_who_asked(guarded: GatewayProcess) -> None:
    assert call(guarded, "GET", "/v1/me").status == 401
    assert call(guarded, "POST", "/v1/browser-links", {}).status == 401
    cookie = sign_in(guarded, READER)
    me = call(guarded, "GET", "/v1/me", headers=cookie).json()
    assert (me["name"], me["scopes"], me["open"]) == ("reader", ["events:follow"], False)
    assert call(guarded, "GET", "/v1/clients", headers=cookie).status == 200
    assert call(guarded, "GET", "/v1/routes", headers=cookie).status == 403
    ticket = call(guarded, "POST", "/v1/browser-links", {}, BOSS).json()["ticket"]
    assert call(guarded, "POST", "/v1/browser-sessions", {"ticket": ticket}).status == 204
    assert len(ticket) >= 43  # 256 bits: nobody guesses one within its five minutes
    again = call(guarded, "POST", "/v1/browser-sessions", {"ticket": ticket})
    assert again.status == 401 and "herdr open" in again.json()["detail"]


def test_a_session_outlives_the_gateway_and_not_its_token(guarded: GatewayProcess, tmp_path: Path) -> None:
    cookie = sign_in(guarded, READER)
    guarded.kill()
    guarded.start()
    assert call(guarded, "GET", "/v1/me", headers=cookie).status == 200
    guarded.kill()
    tokens = {"auth": {"tokens": TOKENS["auth"]["tokens"][:1]}}
    (tmp_path / "herdr.yaml").write_text(json.dumps(tokens))
    guarded.start()
    assert call(guarded, "GET", "/v1/me", headers=cookie).status == 401


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "x",
        "cmVhZGVy.9999999999.00",
        "cmVhZGVy.1.00",
        "%.9999999999.00",
        "cmVhZGVy.٩٩.00",
        "a.b.c.d",
        "cmVhZGVy.9999999999.é",
    ],
)
def test_a_cookie_that_nobody_gave_opens_nothing(guarded: GatewayProcess, wrong: str) -> None:
    headers = {"cookie": f"other=1; herdr_session={wrong}".encode().decode("latin-1")}
    assert call(guarded, "GET", "/v1/me", headers=headers).status == 401


def test_another_pages_request_changes_nothing_with_the_cookie(guarded: GatewayProcess) -> None:
    cookie = sign_in(guarded, BOSS)
    rule = {"event": "*", "target": "x"}
    foreign = [{}, {"sec-fetch-site": "same-site"}, {"origin": "http://localhost:3000"}]
    for headers in foreign:
        answer = call(guarded, "PUT", "/v1/routes/r", rule, cookie | headers)
        assert (answer.status, answer.json()["code"]) == (403, "foreign_origin")
        if headers:
            assert call(guarded, "GET", "/v1/live", None, cookie | headers).status == 403
    assert call(guarded, "GET", "/v1/routes", None, cookie | {"sec-fetch-site": "none"}).status == 200
    assert call(guarded, "PUT", "/v1/routes/r", rule, cookie | OWN).status == 201
    own = {"origin": f"http://127.0.0.1:{guarded.port}"}
    assert call(guarded, "DELETE", "/v1/routes/r", None, cookie | own).status == 204


def test_browsers_get_the_page_and_programs_what_this_is(gateway: GatewayProcess) -> None:
    page = call(gateway, "GET", "/", headers={"accept": "text/html,*/*"})
    assert page.status == 200 and b"<!doctype html>" in page.body.lower()
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "trusted-types" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "accept" in page.headers["vary"].split(", ")
    assert call(gateway, "GET", "/").json()["name"] == "herdr"


def test_files_are_compressed_known_and_no_path_leads_out(gateway: GatewayProcess) -> None:
    plain = call(gateway, "GET", "/dashboard/index.html")
    small = call(gateway, "GET", "/dashboard/index.html", headers={"accept-encoding": "gzip"})
    assert gzip.decompress(small.body) == plain.body and small.headers["content-encoding"] == "gzip"
    known = call(gateway, "GET", "/dashboard/index.html", headers={"if-none-match": plain.headers["etag"]})
    assert (known.status, known.body) == (304, b"")
    head = call(gateway, "HEAD", "/dashboard/index.html")
    assert (head.body, head.headers["content-length"]) == (b"", str(len(plain.body)))
    for path in ("../surface.py", "..%2fsurface.py", "%2e%2e/surface.py", "/etc/passwd", "nothing.js", ""):
        gone = call(gateway, "GET", f"/dashboard/{path}")
        assert gone.status == 404 and "content-security-policy" in gone.headers, path


def test_head_of_the_live_stream_has_no_end_to_wait_for(gateway: GatewayProcess) -> None:
    assert call(gateway, "HEAD", "/v1/live").status == 200


def test_a_page_of_another_program_gets_no_socket_with_the_cookie(guarded: GatewayProcess) -> None:
    cookie = sign_in(guarded, BOSS)
    key = {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13"}
    upgrade = {"connection": "upgrade", "upgrade": "websocket", **key}
    foreign = call(
        guarded, "GET", "/v1/connect", None, cookie | upgrade | {"origin": "http://localhost:3000"}
    )
    assert (foreign.status, foreign.json()["code"]) == (403, "foreign_origin")
