"""What a refusal of a backend becomes, whichever protocol it speaks."""

from typing import Any

import msgspec
import pytest

from herdr.pool.failures import RETRY_AFTER_S
from herdr.pool.protocols.quote import QUOTE_MAX
from herdr.pool.protocols.refusal import refusal, stream_failure


def body(message: str, **fields: object) -> bytes:
    return msgspec.json.encode({"error": {"message": message, **fields}})


def error(type_: str, message: str, **more: Any) -> bytes:
    """Return an error as Anthropic's servers write it."""
    return msgspec.json.encode({"type": "error", "error": {"type": type_, "message": message, **more}})


@pytest.mark.parametrize(
    ("status", "said", "detail"),
    [
        (
            400,
            body(
                "request (6031 tokens) exceeds",
                type="exceed_context_size_error",
                n_prompt_tokens=6031,
                n_ctx=4096,
            ),
            "6031 tokens > 4096 maximum",
        ),
        (
            500,
            body("request (6031 tokens) exceeds the available context size (4096 tokens), try increasing it"),
            "6031 tokens > 4096 maximum",
        ),
        (
            400,
            body(
                "This model's maximum context length is 128,000 tokens. However, your messages resulted in 130,001 "
                "tokens.",
                code="context_length_exceeded",
            ),
            "130001 tokens > 128000 maximum",
        ),
        (
            400,
            body(
                "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens."
            ),
            "5000 tokens > 4096 maximum",
        ),
        (
            400,
            body("The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
            "5000 tokens > 4096 maximum",
        ),
        (
            400,
            body("You passed 8193 input tokens, but the model's context length is only 8192 tokens"),
            "8193 tokens > 8192 maximum",
        ),
        (
            400,
            msgspec.json.encode(
                {
                    "object": "error",
                    "message": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
                }
            ),
            "5000 tokens > 4096 maximum",
        ),
        (400, body("prompt is too long: 9 tokens > 8 maximum"), "9 tokens > 8 maximum"),
        (
            400,
            b'{"error":"the input length exceeds the context length"}',
            "the input length exceeds the context",
        ),
        (
            500,
            body("the request exceeds the available context size. try increasing it"),
            "the request exceeds",
        ),
    ],
)
def test_a_prompt_that_is_too_long(status: int, said: bytes, detail: str) -> None:  # row 42
    failure = refusal(status, said, "m")
    assert (failure.code, failure.status) == ("prompt_too_long", 400)
    assert failure.detail.startswith(f"prompt is too long: {detail}")


@pytest.mark.parametrize(
    ("status", "said", "code", "detail"),
    [
        (400, body("Unable to generate parser for this template: maxLength"), "backend_refused", "maxLength"),
        (
            400,
            body("'max_tokens' is too large: 9000. This model's maximum context length is 4096 tokens"),
            "backend_refused",
            "too large",
        ),
        (422, b'{"detail":[{"loc":["body"]}]}', "backend_refused", '[{"loc":["body"]}]'),
        (400, b"", "backend_refused", "(nothing)"),
        (501, body("not supported"), "backend_refused", "not supported"),
        (
            401,
            body("Incorrect API key provided: sk-abcdefghijk"),
            "backend_failed",
            "refused the gateway's key",
        ),
        (403, body("key sk-abcdefghijk"), "backend_failed", "api_key"),
        (402, body("no credit"), "backend_failed", "no credit"),
        (404, body("model not found"), "unknown_model", "does not know the model 'big-one'"),
        (405, b"<html>", "backend_failed", "url"),
        (408, b"", "backend_timeout", "408"),
        (504, b"<html>", "backend_timeout", "504"),
        (429, body("slow down"), "rate_limited", "slow down"),
        (503, body("Loading model", type="unavailable_error"), "overloaded", "still loading"),
        (503, b"<!DOCTYPE html><html>..", "overloaded", "(an HTML page)"),
        (529, body("busy"), "overloaded", "busy"),
        (500, body("System message must be at the beginning."), "backend_failed", "must be at the beginning"),
        (500, body("image input is not supported - hint: mmproj"), "unsupported_input", "cannot see images"),
        (502, b"\xff\xfe", "backend_failed", "status 502"),
        (302, b"", "backend_failed", "status 302"),
        (500, b'[{"error":{"message":"wrapped"}}]', "backend_failed", "wrapped"),
        (500, b"[" * 50_000, "backend_failed", "status 500"),
        (500, b'"just text"', "backend_failed", "just text"),
        (500, b'{"error":{"message":{"deep":1}}}', "backend_failed", '{"deep":1}'),
    ],
)
def test_other_refusals(status: int, said: bytes, code: str, detail: str) -> None:
    failure = refusal(status, said, "big-one")
    assert failure.code == code
    assert detail in failure.detail
    assert "abcdefghijk" not in failure.detail
    assert len(failure.detail) < 600


def test_when_to_come_back() -> None:
    assert refusal(429, b"", "m", 12.2).retry_after_s == 13
    assert refusal(429, b"", "m").wait_s == RETRY_AFTER_S
    assert refusal(503, b"", "m", 600).retry_after_s == 60
    assert refusal(503, body("Loading model"), "m").wait_s == RETRY_AFTER_S
    assert refusal(500, b"", "m").retry_after_s is None


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (400, error("invalid_request_error", "tools.0: no"), "backend_refused", "tools.0: no"),
        (404, error("not_found_error", "model: x"), "unknown_model", "'claude-x'"),
        (404, b"<html>nothing here</html>", "unknown_model", "url"),
        (413, error("request_too_large", "over 32 MB"), "backend_refused", "too large"),
        (429, error("rate_limit_error", "slow down"), "rate_limited", "slow down"),
        (500, error("api_error", "oh"), "backend_failed", "status 500"),
        (502, b"", "backend_failed", "(nothing)"),
        (
            503,
            b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}',
            "overloaded",
            "still loading",
        ),
        (504, b"upstream timeout", "backend_timeout", "upstream timeout"),
        (529, error("overloaded_error", "Overloaded"), "overloaded", "Overloaded"),
        (402, error("billing_error", "pay first"), "backend_failed", "pay first"),
        (418, b'{"error":"a teapot"}', "backend_refused", "a teapot"),
        (422, b'{"detail":"no such field"}', "backend_refused", "no such field"),
        (200, error("overloaded_error", "Overloaded"), "overloaded", "Overloaded"),
        (302, b"", "backend_failed", "302"),
        (400, b"\xff{", "backend_refused", "{"),
        (400, b"[" * 5000, "backend_refused", "[["),
    ],
)
def test_each_refusal_with_a_time_to_wait(status: int, body: bytes, code: str, words: str) -> None:
    failure = refusal(status, body, "claude-x", 7.2)
    assert failure.code == code
    assert words in failure.detail
    assert failure.retry_after_s == (8 if code in ("rate_limited", "overloaded") else None)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_never_repeated(status: int) -> None:
    failure = refusal(status, error("authentication_error", "invalid x-api-key sk-own"), "claude-x")
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
    failure = refusal(status, body, "claude-x")
    assert failure.code == "prompt_too_long"
    assert failure.detail == "prompt is too long: 2130 tokens > 2000 maximum"


def test_a_prompt_that_is_too_long_by_nobody_knows_how_much() -> None:
    failure = refusal(400, error("invalid_request_error", "Prompt is too long"), "claude-x")
    assert failure.code == "prompt_too_long"
    assert failure.detail.startswith("prompt is too long")


@pytest.mark.parametrize(
    ("status", "code"), [(429, "rate_limited"), (503, "overloaded"), (404, "unknown_model")]
)
def test_a_status_that_says_more_than_the_wording(status: int, code: str) -> None:
    words = "30,000 input tokens a minute exceed the maximum context length of 20,000"
    assert refusal(status, body(words), "m").code == code
    assert refusal(400, body(words), "m").code == "prompt_too_long"


def test_half_of_the_numbers_is_not_believed() -> None:
    body = error("exceed_context_size_error", "too much", n_prompt_tokens=5)
    assert refusal(400, body, "claude-x").detail == "prompt is too long: too much"


def test_the_wording_that_lowers_max_tokens_is_kept() -> None:
    words = "input length and `max_tokens` exceed context limit: 1900 + 200 > 2000"
    failure = refusal(400, error("invalid_request_error", words), "claude-x")
    assert failure.code == "backend_refused"
    assert words in failure.detail


@pytest.mark.parametrize("size", [QUOTE_MAX - 1, QUOTE_MAX, QUOTE_MAX + 1])
def test_a_message_is_kept_up_to_a_bound(size: int) -> None:
    shown = refusal(500, error("api_error", "b" * size), "claude-x").detail.split(": ")[1].partition(";")[0]
    assert shown == ("b" * size if size <= QUOTE_MAX else "b" * (QUOTE_MAX - 1) + "…")


def test_a_long_message_is_cut_and_put_on_one_line() -> None:
    failure = refusal(500, error("api_error", "a\r\n\x1b[31m" + "b" * 100_000), "claude-x")
    assert "a [31mb" in failure.detail
    assert len(failure.detail) < QUOTE_MAX + 100


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
