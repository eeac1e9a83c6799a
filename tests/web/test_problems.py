import json

import msgspec
import pytest

from herdr.errors import FieldError, HerdrError, InvalidInput, LogUnavailable, NotFound
from herdr.locks.refusals import Deadlock, Fenced, Locked, TooMany
from herdr.web.problems import CONTENT_TYPE, Refused, headers_of, problem_of, retry_after_s_of, status_of


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidInput("x"), 400, "invalid_request"),
        (InvalidInput("x", "bad_cursor"), 400, "bad_cursor"),
        (InvalidInput("x", "too_large"), 413, "too_large"),
        (NotFound("x"), 404, "not_found"),
        (NotFound("x", "unknown_event"), 404, "unknown_event"),
        (LogUnavailable("x"), 503, "log_unavailable"),
        (HerdrError("x"), 500, "internal"),
        (Refused("unauthorized", "x"), 401, "unauthorized"),
        (Refused("missing_scope", "x"), 403, "missing_scope"),
        (Refused("foreign_origin", "x"), 403, "foreign_origin"),
        (Refused("not_found", "x"), 404, "not_found"),
        (Refused("method_not_allowed", "x"), 405, "method_not_allowed"),
        (Refused("request_timeout", "x"), 408, "request_timeout"),
        (Refused("too_large", "x"), 413, "too_large"),
        (Refused("unsupported_media_type", "x"), 415, "unsupported_media_type"),
        (Refused("foreign_host", "x"), 421, "foreign_host"),
        (Refused("overloaded", "x"), 503, "overloaded"),
        (Locked("x", [], 1), 409, "locked"),
        (Deadlock("x", []), 409, "deadlock"),
        (Fenced("x"), 409, "fenced"),
        (TooMany("x"), 503, "too_many_locks"),
        (TooMany("x", "too_many_waiters"), 503, "too_many_waiters"),
    ],
)
def test_each_error_has_its_status(error: HerdrError, status: int, code: str) -> None:
    problem = problem_of(error)
    assert (status_of(error), problem.status, problem.code) == (status, status, code)
    assert problem.type == f"urn:herdr:problem:{code}"
    assert problem.title
    assert problem.detail == "x"


def test_a_problem_on_the_wire() -> None:
    error = InvalidInput("d", "invalid_event", [FieldError("type", "m", 0), FieldError("id", "n")])
    assert json.loads(msgspec.json.encode(problem_of(error))) == {
        "type": "urn:herdr:problem:invalid_event",
        "title": "Bad Request",
        "status": 400,
        "code": "invalid_event",
        "detail": "d",
        "errors": [
            {"index": 0, "field": "type", "message": "m"},
            {"field": "id", "message": "n"},
        ],
    }


def test_a_problem_without_fields_lists_none() -> None:
    assert "errors" not in json.loads(msgspec.json.encode(problem_of(NotFound("x"))))


def test_a_problem_says_what_it_is_and_carries_the_headers_of_its_refusal() -> None:
    plain = (b"content-type", CONTENT_TYPE.encode())
    assert headers_of(NotFound("x")) == [plain]
    assert headers_of(Refused("method_not_allowed", "x", {"allow": "GET"})) == [plain, (b"allow", b"GET")]


def test_a_log_that_fails_asks_to_come_back() -> None:
    assert (b"retry-after", b"1") in headers_of(LogUnavailable("x"))


def test_what_time_mends_asks_to_come_back() -> None:
    for error, seconds in (
        (TooMany("x", "too_many_waiters"), 1),
        (HerdrError("x", "overloaded"), 1),
        (Locked("x", [], 17), 17),
        (Deadlock("x", ["a", "a"]), None),
        (Fenced("x"), None),
    ):
        wanted = [] if seconds is None else [(b"retry-after", b"%d" % seconds)]
        assert (retry_after_s_of(error), headers_of(error)[1:]) == (seconds, wanted)


def test_what_is_in_the_way_of_a_lock_stands_beside_the_detail() -> None:
    shown = json.loads(msgspec.json.encode(problem_of(Locked("x", [], 1))))
    assert shown["conflicts"] == [] and "cycle" not in shown
    shown = json.loads(msgspec.json.encode(problem_of(Deadlock("x", ["a", "b", "a"]))))
    assert shown["cycle"] == ["a", "b", "a"] and "conflicts" not in shown
