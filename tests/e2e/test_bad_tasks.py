"""What bad input gets where tasks are told of: the right error, and a task table that stays as it was."""

from collections.abc import Iterator
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from refusals import assert_problem
from task_gateway import claim, create, done, look, tell
from wire import all_events, call, send_raw

BIG = "x" * (16 * 1024)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with one task that is held, and one that has ended."""
    with running_gateway(tmp_path_factory.mktemp("bad-tasks") / "data") as gateway:
        create(gateway, "held")
        claim(gateway, "bob", ttl_s=3600)
        create(gateway, "ended")
        done(tell(gateway, "/ended/cancel", owner="ann"))
        create(gateway, "free", "tester")
        yield gateway
        assert not [line for line in gateway.log if "Traceback" in line]


@pytest.fixture
def unharmed(board: GatewayProcess) -> Iterator[GatewayProcess]:
    """Afterwards nothing has happened to any task."""
    events = all_events(board)
    yield board
    assert all_events(board) == events


def token_of(gateway: GatewayProcess) -> int:
    token: int = look(gateway, "held")["token"]
    return token


GOOD = {"title": "t", "role": "coder", "owner": "ann"}
BAD_NAMES = {
    "empty": "",
    "too long": "x" * 129,
    "line break": "a\nb",
    "NUL": "a\0b",
    "escape sequence": "\x1b[31mred",
    "delete": "a\x7f",
    "ends with a line break": "coder\n",
    "a number": 7,
    "a list": ["coder"],
}


@pytest.mark.parametrize("field", ["role", "owner", "workspace", "session", "task", "title"])
@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_bad_names(unharmed: GatewayProcess, field: str, name: Any) -> None:
    if field == "title" and name == "x" * 129:
        name = "x" * 257
    assert_problem(tell(unharmed, "", **{**GOOD, field: name}), 400, "invalid_request", field=field)


@pytest.mark.parametrize("task", ["a/b", ".", "..", "claim"])
def test_ids_that_no_address_could_have(unharmed: GatewayProcess, task: str) -> None:
    assert_problem(tell(unharmed, "", **GOOD, task=task), 400, "invalid_request", field="task")


def test_a_name_of_half_a_character(unharmed: GatewayProcess) -> None:
    answer = call(unharmed, "POST", "/v1/tasks", b'{"title":"\\ud800","role":"r","owner":"o"}')
    assert_problem(answer, 400, "invalid_request", "invalid_json")


BAD_TASKS: dict[str, tuple[dict[str, Any], str]] = {
    "no title": ({"title": None}, "title"),
    "long description": ({"description": BIG + "x"}, "description"),
    "no object": ({"note": "summary"}, "note"),
    "unknown in the note": ({"note": {"sumary": "x"}}, "note.sumary"),
    "long summary": ({"note": {"summary": BIG + "x"}}, "note.summary"),
    "many files": ({"note": {"files": ["a"] * 101}}, "note.files"),
    "long decision": ({"note": {"decisions": ["x" * 2049]}}, "note.decisions[0]"),
    "much in all": ({"note": {"decisions": ["x" * 2000] * 40}}, "note"),
    "unknown": ({"assignee": "bob"}, "assignee"),
    "priority": ({"priority": "P0"}, "priority"),
}


@pytest.mark.parametrize(("fields", "field"), BAD_TASKS.values(), ids=BAD_TASKS)
def test_bad_tasks(unharmed: GatewayProcess, fields: dict[str, Any], field: str) -> None:
    assert_problem(tell(unharmed, "", **{**GOOD, **fields}), 400, "invalid_request", field=field)


@pytest.mark.parametrize("missing", ["title", "role", "owner"])
def test_what_is_required(unharmed: GatewayProcess, missing: str) -> None:
    body = {name: value for name, value in GOOD.items() if name != missing}
    assert_problem(tell(unharmed, "", **body), 400, "invalid_request", field=missing)


BAD_CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "no role": ({"role": None}, "role"),
    "zero lease": ({"ttl_s": 0}, "ttl_s"),
    "huge lease": ({"ttl_s": 3601}, "ttl_s"),
    "lease as text": ({"ttl_s": "60"}, "ttl_s"),
    "long wait": ({"wait_s": 601}, "wait_s"),
    "negative wait": ({"wait_s": -1}, "wait_s"),
    "control character": ({"role": "a\tb"}, "role"),
    "unknown": ({"state": "submitted"}, "state"),
}


@pytest.mark.parametrize(("fields", "field"), BAD_CLAIMS.values(), ids=BAD_CLAIMS)
def test_bad_claims(unharmed: GatewayProcess, fields: dict[str, Any], field: str) -> None:
    body = {"role": "tester", "owner": "bob", **fields}
    assert_problem(tell(unharmed, "/claim", **body), 400, "invalid_request", field=field)


VERBS: dict[str, dict[str, Any]] = {
    "renew": {},
    "hand-over": {"role": "tester"},
    "ask": {"question": "which?"},
    "release": {},
    "finish": {},
    "fail": {},
    "reject": {},
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_token(unharmed: GatewayProcess, verb: str) -> None:
    token = token_of(unharmed) + 1
    problem = assert_problem(tell(unharmed, f"/held/{verb}", token=token, **VERBS[verb]), 409, "fenced")
    assert "bob holds it since" in problem["detail"] and "stop working on it" in problem["detail"]
    problem = assert_problem(tell(unharmed, f"/free/{verb}", token=1, **VERBS[verb]), 409, "fenced")
    assert "nobody holds it" in problem["detail"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("token", [None, "5", 0, -1, 2**63, 1.5, True])
def test_what_is_no_token(unharmed: GatewayProcess, verb: str, token: Any) -> None:
    answer = tell(unharmed, f"/held/{verb}", token=token, **VERBS[verb])
    assert_problem(answer, 400, "invalid_request", field="token")


@pytest.mark.parametrize("verb", [*VERBS, "claim", "answer", "cancel"])
def test_tasks_that_are_not_there_or_have_ended(unharmed: GatewayProcess, verb: str) -> None:
    body = {"token": 1, **VERBS[verb]} if verb in VERBS else {"owner": "ann"}
    body |= {"answer": "x"} if verb == "answer" else {}
    problem = assert_problem(tell(unharmed, f"/nothing/{verb}", **body), 404, "unknown_task")
    assert "'nothing'" in problem["detail"]
    problem = assert_problem(tell(unharmed, f"/ended/{verb}", **body), 409, "task_final")
    assert "canceled, by ann" in problem["detail"]


BAD_WORDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "no question": ("ask", {"question": ""}, "question"),
    "long question": ("ask", {"question": BIG + "x"}, "question"),
    "asked of nobody": ("ask", {"question": "x", "to": "\n"}, "to"),
    "long reason": ("release", {"reason": "x" * 1025}, "reason"),
    "no reason": ("fail", {"reason": ""}, "reason"),
    "reason of a finish": ("finish", {"reason": "x"}, "reason"),
    "no role": ("hand-over", {}, "role"),
}


@pytest.mark.parametrize(("verb", "fields", "field"), BAD_WORDS.values(), ids=BAD_WORDS)
def test_bad_words(unharmed: GatewayProcess, verb: str, fields: dict[str, Any], field: str) -> None:
    answer = tell(unharmed, f"/held/{verb}", token=token_of(unharmed), **fields)
    assert_problem(answer, 400, "invalid_request", field=field)


def test_answers_to_nothing(unharmed: GatewayProcess) -> None:
    answer = tell(unharmed, "/held/answer", owner="ann", answer="yes")
    assert_problem(answer, 409, "no_question")
    answer = tell(unharmed, "/held/answer", owner="ann")
    assert_problem(answer, 400, "invalid_request", field="answer")


def test_another_ones_task(unharmed: GatewayProcess) -> None:
    problem = assert_problem(tell(unharmed, "/held/claim", owner="eve"), 409, "task_held")
    assert "bob holds it since" in problem["detail"] and "unless it is renewed" in problem["detail"]


def test_an_id_that_is_taken(unharmed: GatewayProcess) -> None:
    assert_problem(tell(unharmed, "", **GOOD, task="held"), 409, "task_exists")


def test_the_same_request_again(unharmed: GatewayProcess) -> None:
    body = {"title": "Title of held", "task": "held", "role": "coder", "owner": "ann"}
    assert done(tell(unharmed, "", **body))["state"] == "working"


@pytest.mark.parametrize(
    "query", ["state=done", "limit=0", "limit=1001", "limit=x", "who=bob", "role=a&role=b"]
)
def test_bad_queries(unharmed: GatewayProcess, query: str) -> None:
    assert_problem(call(unharmed, "GET", f"/v1/tasks?{query}"), 400, "invalid_request")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"[" * 100_000, b"\xff"])
def test_bodies_that_are_none(unharmed: GatewayProcess, body: bytes) -> None:
    for path in ("/v1/tasks", "/v1/tasks/claim", "/v1/tasks/held/renew", "/v1/tasks/held/answer"):
        assert_problem(call(unharmed, "POST", path, body), 400, "invalid_request", "invalid_json")


def test_a_body_without_end(unharmed: GatewayProcess) -> None:
    head = b"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1100000\r\n\r\n"
    answer = send_raw(unharmed, head + b'{"title":"')
    assert "artifact" in assert_problem(answer, 413, "too_large")["detail"]


def test_methods_that_do_not_go(unharmed: GatewayProcess) -> None:
    assert_problem(call(unharmed, "DELETE", "/v1/tasks/held"), 405, "method_not_allowed")
    assert_problem(call(unharmed, "GET", "/v1/tasks/claim"), 405, "method_not_allowed")
    assert_problem(tell(unharmed, "/held/steal"), 404, "not_found")


def test_what_is_just_within_the_bounds(board: GatewayProcess) -> None:
    name = "Ünïcode näme 你好 " + "x" * 100
    note = {"summary": BIG, "decisions": ["d" * 2048] * 20}
    create(board, name, name, name, title="t" * 256, description=BIG, note=note, workspace=name)
    claimed = claim(board, name, name, workspace=name, ttl_s=3600)
    assert claimed["task"] == name and claimed["steps"][0]["note"] == note
