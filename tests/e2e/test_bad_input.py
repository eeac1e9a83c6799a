"""What bad events and bodies get: a clear error, nothing stored, everybody else undisturbed, no traceback."""

import json
import socket
from typing import Any

import pytest
from gateway import GatewayProcess
from refusals import DEEP, GOOD, assert_problem
from wire import PATIENCE_S, accept, all_events, call, post, send_raw

# Malformed JSON, deep nesting, text that is none: (name, body, content type)
NO_JSON = [
    ("empty", b"", "application/json"),
    ("word", b"hello", "application/json"),
    ("cut", b'{"type": "tool.result", "data": {"a": ', "application/json"),
    ("twice", b'{"type": "tool.result"}{"type": "tool.result"}', "application/json"),
    ("comma", b'[{"type": "tool.result"},]', "application/json"),
    ("nan", b'{"type": "tool.result", "data": NaN}', "application/json"),
    ("single quotes", b"{'type': 'tool.result'}", "application/json"),
    ("control in text", b'{"type": "tool.result", "data": "a\nb"}', "application/json"),
    ("latin-1", b'{"type": "tool.result", "data": "\xe9"}', "application/json"),
    ("utf-8 surrogate", b'{"type": "tool.result", "data": "\xed\xa0\x80"}', "application/json"),
    ("utf-16", '{"type": "tool.result"}'.encode("utf-16"), "application/json"),
    ("nul", b"\0", "application/json"),
    ("number", b"1", "application/json"),
    ("null", b"null", "application/json"),
    ("text", b'"tool.result"', "application/json"),
    ("list of lists", b"[[]]", "application/json"),
    ("ndjson second line", b'{"type": "tool.result"}\n{"type": \n', "application/x-ndjson"),
    ("ndjson of arrays", b"[]\n[]\n", "application/x-ndjson"),
    ("cloudevent cut", b'{"specversion": "1.0"', "application/cloudevents+json"),
    ("cloudevents no batch", b"{}", "application/cloudevents-batch+json"),
    ("deep body", DEEP, "application/json"),
    ("deep data", b'{"type": "tool.result", "data": ' + DEEP + b"}", "application/json"),
    (
        "deep objects",
        b'{"type": "tool.result", "data": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        "application/json",
    ),
    ("deep unknown field", b'{"type": "tool.result", "x": ' + DEEP + b"}", "application/json"),
    (
        "deep in a batch",
        b'[{"type": "tool.result"}, {"type": "tool.result", "data": ' + DEEP + b"}]",
        "application/json",
    ),
    ("deep in ndjson", b'{"type": "tool.result", "data": ' + DEEP + b"}\n", "application/x-ndjson"),
    (
        "deep cloudevent",
        b'{"specversion": "1.0", "id": "1", "source": "s", "type": "tool.result", "data": ' + DEEP + b"}",
        "application/cloudevents+json",
    ),
    ("deep batch of cloudevents", DEEP, "application/cloudevents-batch+json"),
    ("deep open end", b"[" * 100_000, "application/json"),
    ("number beyond doubles", b'{"type": "tool.result", "data": 1e999}', "application/json"),
]


@pytest.mark.parametrize(("body", "kind"), [row[1:] for row in NO_JSON], ids=[row[0] for row in NO_JSON])
def test_what_is_no_json_is_refused(unharmed: GatewayProcess, body: bytes, kind: str) -> None:
    answer = post(unharmed, body, content_type=kind)
    problem = assert_problem(answer, 400, "invalid_event", "invalid_json")
    assert len(problem["detail"]) < 500


SURROGATES = [b"\\ud800", b"\\udfff", b"\\ud800x", b"\\udc00\\ud800", b"\\ud800\\ud800"]


@pytest.mark.parametrize("text", SURROGATES)
@pytest.mark.parametrize("field", ["id", "source", "subject", "type", "data", "unknown"])
def test_lone_surrogates_are_refused_wherever_they_stand(
    unharmed: GatewayProcess, field: str, text: bytes
) -> None:
    body = b'{"type": "tool.result", "%s": "%s"}' % (field.encode(), text)
    if field == "type":
        body = b'{"type": "tool.%s"}' % text
    assert_problem(post(unharmed, body), 400, "invalid_event", "invalid_json")
    assert_problem(post(unharmed, b"[" + body + b"]"), 400, "invalid_event", "invalid_json")


def test_a_lone_surrogate_as_a_member_s_name_inside_data_is_refused(unharmed: GatewayProcess) -> None:
    body = b'{"type": "tool.result", "data": {"\\udc01": 1}}'
    assert_problem(post(unharmed, body), 400, "invalid_event", "invalid_json")


def test_a_pair_of_surrogates_is_a_character(shared: GatewayProcess) -> None:
    answer = post(shared, b'{"type": "tool.result", "data": "\\ud83d\\ude00", "subject": "\\ud83d\\ude00"}')
    assert answer.json()["status"] == "accepted"
    event = all_events(shared)[-1]
    assert (event["data"], event["subject"]) == ("\U0001f600", "\U0001f600")


WRONG: list[tuple[str, Any]] = [
    *(("type", value) for value in (1, None, [], "", "Tool.Result", "tool..x", "tool. x", ".", "a" * 129)),
    *(("id", value) for value in (1, "", "x" * 129, {})),
    *(("source", value) for value in (1, "", "x" * 129)),
    *(("subject", value) for value in (1, "", "x" * 4097)),
    *(("workspace", value) for value in (None, 1, "")),
    ("session", 1),
    ("task", []),
    *(("time", value) for value in (1, "yesterday", "2026-01-31", "2026-13-31T12:00:00Z")),
    *(("priority", value) for value in ("P3", "p0", 0)),
    *(("tags", value) for value in ("one", [1], ["x"] * 17, ["x" * 65])),
    *(("based_on", value) for value in ("1", -1, 1.5, 2**63)),
    *(("if_stale", value) for value in ("ignore", True)),
    *(("trace", value) for value in ("abc", "00-" + "0" * 32 + "-" + "1" * 16 + "-01")),
    *(("ext", value) for value in ([], {"a": {}}, {"a": 1.5})),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=[f"{f}-{str(v)[:20]}" for f, v in WRONG])
def test_a_wrong_value_is_refused_with_its_field(unharmed: GatewayProcess, field: str, value: Any) -> None:
    event = {**GOOD, field: value}
    one = assert_problem(post(unharmed, event), 400, "invalid_event")
    assert one["errors"][0]["field"].split("[")[0].split(".")[0] == field
    many = assert_problem(post(unharmed, [GOOD, event]), 400, "invalid_event")
    assert many["errors"][0]["index"] == 1


BROKEN = ["a\r", "a\n", "a\nb", "a\r\nid: 7", "\0", "a\0b", "a\x7f", "a\x1b[31m"]


@pytest.mark.parametrize("text", BROKEN, ids=repr)
@pytest.mark.parametrize("field", ["type", "id", "source", "subject", "workspace", "session", "task"])
def test_line_breaks_and_control_characters_are_refused(
    unharmed: GatewayProcess, field: str, text: str
) -> None:
    value = text if field != "type" else "tool." + text
    problem = assert_problem(post(unharmed, {**GOOD, field: value}), 400, "invalid_event", field=field)
    assert "\n" not in problem["detail"] and "\r" not in problem["detail"]


@pytest.mark.parametrize("name", ["ce-id", "ce-source", "ce-subject", "ce-type"])
def test_percent_encoded_line_breaks_in_cloudevents_headers_are_refused(
    unharmed: GatewayProcess, name: str
) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "s",
        "ce-type": "tool.result",
        name: "a%0D%0Ab",
    }
    answer = call(unharmed, "POST", "/v1/events", b"1", {"content-type": "application/json", **headers})
    assert_problem(answer, 400, "invalid_event", field=name.removeprefix("ce-"))


@pytest.mark.parametrize("name", ["tyPe", "prioritee", "seq", "epoch", "class", "accepted", "if-stale"])
def test_an_unknown_field_is_refused_by_name(unharmed: GatewayProcess, name: str) -> None:
    problem = assert_problem(post(unharmed, {**GOOD, name: 1}), 400, "invalid_event", field=name)
    assert "unknown" in problem["errors"][0]["message"]
    lines = json.dumps(GOOD) + "\n" + json.dumps({**GOOD, name: 1})
    answer = post(unharmed, lines.encode(), content_type="application/x-ndjson")
    assert_problem(answer, 400, "invalid_event", field=name, index=1)


@pytest.mark.parametrize(
    "type_",
    ["herdr.bye", "lock.granted", "conflict.detected", "handoff.x", "session.x", "model.x", "context.x"],
)
def test_types_of_the_gateway_s_own_are_refused(unharmed: GatewayProcess, type_: str) -> None:
    assert_problem(post(unharmed, [GOOD, {"type": type_}]), 400, "invalid_event", field="type", index=1)


def test_every_wrong_event_of_a_batch_is_told(unharmed: GatewayProcess) -> None:
    events = [GOOD, {"type": 1}, GOOD, {"type": "a", "x": 1}, {}]
    problem = assert_problem(post(unharmed, events), 400, "invalid_event")
    assert [(e["index"], e["field"]) for e in problem["errors"]] == [(1, "type"), (3, "x"), (4, "type")]


def test_more_events_than_a_request_may_hold(unharmed: GatewayProcess) -> None:
    assert_problem(post(unharmed, [GOOD] * 1001), 400, "too_many_events")
    lines = b"\n".join([json.dumps(GOOD).encode()] * 1001)
    assert_problem(post(unharmed, lines, content_type="application/x-ndjson"), 400, "too_many_events")


def test_a_content_type_that_is_not_for_events(unharmed: GatewayProcess) -> None:
    assert_problem(post(unharmed, GOOD, content_type="text/plain"), 415, "unsupported_media_type")
    assert_problem(post(unharmed, GOOD, content_encoding="gzip"), 415, "unsupported_media_type")


def head(*lines: str) -> bytes:
    return "\r\n".join(["POST /v1/events HTTP/1.1", "host: 127.0.0.1", *lines, "", ""]).encode()


BIG = b'{"type": "tool.result", "data": "' + b"x" * 10_000_000 + b'"}'  # 10 MB; the limit is 8 MiB


def test_a_body_over_the_limit_by_its_declared_length(unharmed: GatewayProcess) -> None:
    answer = send_raw(unharmed, head("content-type: application/json", f"content-length: {len(BIG)}"))
    assert_problem(answer, 413, "too_large")


def test_an_event_of_ten_megabytes(unharmed: GatewayProcess) -> None:
    answer = send_raw(unharmed, head("content-type: application/json", f"content-length: {len(BIG)}") + BIG)
    assert_problem(answer, 413, "too_large")


def test_a_body_over_the_limit_in_chunks(unharmed: GatewayProcess) -> None:
    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(part), part)
        for part in (BIG[i : i + 65536] for i in range(0, len(BIG), 65536))
    )
    answer = send_raw(
        unharmed, head("content-type: application/json", "transfer-encoding: chunked") + chunks + b"0\r\n\r\n"
    )
    assert_problem(answer, 413, "too_large")


def test_data_over_the_limit_of_one_event(unharmed: GatewayProcess) -> None:
    event = {**GOOD, "data": "x" * 2**20}
    problem = assert_problem(post(unharmed, [GOOD, event]), 413, "too_large", field="data", index=1)
    assert "1048576" in problem["detail"]


def test_data_of_exactly_the_limit_is_taken(shared: GatewayProcess) -> None:
    accept(shared, **GOOD, data="x" * (2**20 - 2))


HALVES = {
    "request line": b"POST /v1/ev",
    "header": head("content-type: application/json")[:-2],
    "nothing at all": b"",
    "body": head("content-type: application/json", "content-length: 30") + b'{"type": ',
    "chunk": head("content-type: application/json", "transfer-encoding: chunked") + b'9\r\n{"type": \r\n',
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_a_request_that_never_ends(unharmed: GatewayProcess, half: bytes) -> None:
    answer = send_raw(unharmed, half)
    assert_problem(answer, 408, "request_timeout")
    assert answer.headers["connection"] == "close"


NO_HTTP = {
    "no http": b"hello\r\n\r\n",
    "two lengths": head("content-length: 1", "content-length: 2") + b"1",
    "length and chunked": head("content-length: 1", "transfer-encoding: chunked") + b"0\r\n\r\n",
    "negative length": head("content-length: -1"),
    "space in a name": head("content length: 1"),
}


@pytest.mark.parametrize("request_", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http_is_told_so(unharmed: GatewayProcess, request_: bytes) -> None:
    assert_problem(send_raw(unharmed, request_), 400, "bad_request", "invalid_event")


def test_a_header_without_end(unharmed: GatewayProcess) -> None:
    answer = send_raw(unharmed, head("x: " + "y" * 40_000)[:-2])
    assert_problem(answer, 431, "too_large")


@pytest.mark.parametrize("finish", ["close", "chunked close"])
def test_a_publisher_that_leaves_in_the_middle_of_ndjson(unharmed: GatewayProcess, finish: str) -> None:
    lines = b"".join(b'{"type": "tool.result", "data": %d}\n' % n for n in range(50))
    if finish == "close":
        sent = head("content-type: application/x-ndjson", f"content-length: {len(lines) * 2}") + lines
    else:
        sent = head("content-type: application/x-ndjson", "transfer-encoding: chunked")
        sent += b"%x\r\n%s\r\n" % (len(lines), lines)
    with socket.create_connection(("127.0.0.1", unharmed.port), timeout=PATIENCE_S) as sock:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1000) == b"", "half a body was answered"  # and the unharmed has noticed
