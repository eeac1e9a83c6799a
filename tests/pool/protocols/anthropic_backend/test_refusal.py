"""What a refusal of an Anthropic backend becomes."""

import json
from typing import Any

import pytest

from herdr.pool.protocols.anthropic_backend.refusal import MESSAGE_MAX, refusal, stream_failure


def error(type_: str, message: str, **more: Any) -> bytes:
    return json.dumps({"type": "error", "error": {"type": type_, "message": message, **more}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (400, error("invalid_request_error", "tools.0: no"), "backend_refused", "tools.0: no"),
        (404, error("not_found_error", "model: x"), "unknown_model", "'claude-x'"),
        (404, b"<html>nothing here</html>", "unknown_model", "url"),
        (413, error("request_too_large", "over 32 MB"), "backend_refused", "too large"),
        (429, error("rate_limit_error", "slow down"), "rate_limited", "slow down"),
        (500, error("api_error", "oh"), "backend_failed", "HTTP 500"),
        (502, b"", "backend_failed", "no reason"),
        (
            503,
            b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}',
            "overloaded",
            "L",
        ),
        (504, b"upstream timeout", "backend_timeout", "upstream timeout"),
        (529, error("overloaded_error", "Overloaded"), "overloaded", "Overloaded"),
        (402, error("billing_error", "pay first"), "backend_failed", "pay first"),
        (418, b'{"error":"a teapot"}', "backend_failed", "a teapot"),
        (422, b'{"detail":"no such field"}', "backend_refused", "no such field"),
        (200, error("overloaded_error", "Overloaded"), "overloaded", "Overloaded"),
        (302, b"", "backend_failed", "302"),
        (400, b"\xff{", "backend_refused", "{"),
        (400, b"[" * 5000, "backend_refused", "[["),
    ],
)
def test_each_refusal(status: int, body: bytes, code: str, words: str) -> None:
    failure = refusal(status, body, 7.2, "claude-x")
    assert failure.code == code
    assert words in failure.detail
    assert failure.retry_after_s == (8 if code in ("rate_limited", "overloaded") else None)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_never_repeated(status: int) -> None:
    failure = refusal(status, error("authentication_error", "invalid x-api-key sk-own"), None, "claude-x")
    assert failure.code == "backend_failed"
    assert "api_key_env" in failure.detail
    assert "sk-own" not in failure.detail


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("invalid_request_error", "prompt is too long: 2130 tokens > 2000 maximum")),
        (413, error("request_too_large", "prompt is too long: 2130 tokens > 2000 maximum")),
        (400, error("exceed_context_size_error", "request exceeds it", n_prompt_tokens=2130, n_ctx=2000)),
        (
            500,
            error(
                "server_error", "request (2130 tokens) exceeds the available context size (2000 tokens), try"
            ),
        ),
        (
            400,
            error(
                "BadRequestError",
                "This model's maximum context length is 2000 tokens. However, your request has 2130 input tokens.",
            ),
        ),
    ],
)
def test_a_prompt_that_is_too_long_has_claude_codes_wording(status: int, body: bytes) -> None:
    failure = refusal(status, body, None, "claude-x")
    assert failure.code == "prompt_too_long"
    assert failure.detail == "prompt is too long: 2130 tokens > 2000 maximum"


def test_a_prompt_that_is_too_long_by_nobody_knows_how_much() -> None:
    failure = refusal(400, error("invalid_request_error", "Prompt is too long"), None, "claude-x")
    assert failure.code == "prompt_too_long"
    assert failure.detail.startswith("prompt is too long")


def test_half_of_the_numbers_is_not_believed() -> None:
    body = error("exceed_context_size_error", "too much", n_prompt_tokens=5)
    assert refusal(400, body, None, "claude-x").code == "backend_refused"


def test_the_wording_that_lowers_max_tokens_is_kept() -> None:
    words = "input length and `max_tokens` exceed context limit: 1900 + 200 > 2000"
    failure = refusal(400, error("invalid_request_error", words), None, "claude-x")
    assert failure.code == "backend_refused"
    assert words in failure.detail


@pytest.mark.parametrize("size", [MESSAGE_MAX - 1, MESSAGE_MAX, MESSAGE_MAX + 1])
def test_a_message_is_kept_up_to_a_bound(size: int) -> None:
    shown = refusal(500, error("api_error", "b" * size), None, "claude-x").detail.rpartition(" ")[2]
    assert shown == ("b" * size if size <= MESSAGE_MAX else "b" * (MESSAGE_MAX - 1) + "…")


def test_a_long_message_is_cut_and_put_on_one_line() -> None:
    failure = refusal(500, error("api_error", "a\r\n\x1b[31m" + "b" * 100_000), None, "claude-x")
    assert "a [31mb" in failure.detail
    assert len(failure.detail) < MESSAGE_MAX + 100


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (error("overloaded_error", "Overloaded"), "overloaded"),
        (error("rate_limit_error", "slow"), "rate_limited"),
        (error("api_error", "oh"), "backend_failed"),
        (error("invalid_request_error", "prompt is too long: 3 tokens > 2 maximum"), "prompt_too_long"),
        (error("timeout_error", "slow"), "backend_timeout"),
        (error("authentication_error", "no"), "backend_failed"),
        (error("a_new_error", "oh"), "backend_failed"),
        (b'{"error":{"code":500,"message":"oh","type":"server_error"}}', "backend_failed"),
        (b'{"type":"error","error":"oh"}', "backend_failed"),
        (b"oh", "backend_failed"),
    ],
)
def test_an_error_event(data: bytes, code: str) -> None:
    assert stream_failure(data).code == code


def test_an_error_event_says_of_which_type_it_is() -> None:
    assert "(api_error)" in stream_failure(error("api_error", "oh")).detail
    assert "(an error event)" in stream_failure(b"oh").detail
