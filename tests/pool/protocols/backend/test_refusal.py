import msgspec
import pytest

from herdr.pool.protocols.backend.quote import quoted
from herdr.pool.protocols.backend.refusal import refusal


def body(message: str, **fields: object) -> bytes:
    return msgspec.json.encode({"error": {"message": message, **fields}})


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
    error = refusal(status, said, "llamacpp", "m")
    assert (error.code, error.status) == ("prompt_too_long", 400)
    assert error.detail.startswith(f"prompt is too long: {detail}")


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
        (404, body("model not found"), "unknown_model", "does not know model big-one"),
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
    error = refusal(status, said, "openai", "big-one")
    assert error.code == code
    if status != 403:
        assert detail in error.detail
    assert "abcdefghijk" not in error.detail
    assert len(error.detail) < 600


def test_when_to_come_back() -> None:
    assert refusal(429, b"", "openai", "m", 12.2).retry_after_s == 13
    assert refusal(429, b"", "openai", "m").retry_after_s is None
    assert refusal(503, b"", "openai", "m", 600).retry_after_s == 60
    assert refusal(503, body("Loading model"), "llamacpp", "m").retry_after_s == 5
    assert refusal(500, b"", "llamacpp", "m").retry_after_s is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("a\n\n  b", "a b"),
        (b"x" * 9000, "x" * 399 + "…"),
        (" <html lang=en>x", "(an HTML page)"),
        (b"  ", "(nothing)"),
        ("Authorization: Bearer abc.def-123 was wrong", "Authorization: Bearer *** was wrong"),
        ("key sk-proj-1234567890 and hf_abcdefgh", "key sk-*** and hf_***"),
        ("a < b and a task-force", "a < b and a task-force"),
    ],
)
def test_quotes(said: bytes | str, expected: str) -> None:
    assert quoted(said) == expected
