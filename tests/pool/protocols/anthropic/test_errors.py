import msgspec
import pytest

from herdr.pool.protocols import anthropic
from herdr.pool.protocols.anthropic.errors import error_type


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (405, "invalid_request_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "api_error"),
    ],
)
def test_types(status: int, expected: str) -> None:
    assert error_type(status) == expected


def test_a_body() -> None:
    body = anthropic.error_body(400, "prompt_too_long", "prompt is too long: 9 tokens > 8 maximum", "01J")
    assert msgspec.json.decode(body) == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
        "request_id": "req_01J",
    }


def test_nothing_ever_says_overloaded_error() -> None:
    said = 'the backend says {"type":"overloaded_error"}'
    for status in range(400, 600):
        assert b"overloaded_error" not in anthropic.error_body(status, "overloaded", said, "01J")
