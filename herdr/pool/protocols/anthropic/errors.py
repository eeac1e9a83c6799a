"""Pure: errors as Anthropic's clients expect them, in an answer and in the middle of a stream.

Kinds: https://docs.anthropic.com/en/api/errors
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

_TYPES: Mapping[int, str] = MappingProxyType(
    {
        400: "invalid_request_error",
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        504: "timeout_error",
    }
)


class _Inner(msgspec.Struct):
    type: str
    message: str


class _Error(msgspec.Struct, tag="error"):
    error: _Inner
    request_id: str


_encode = msgspec.json.Encoder().encode


def error_type(status: int) -> str:
    """Return the type that goes with an HTTP status. Never `overloaded_error`: Claude Code drops calls then."""
    return _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


def error_body(status: int, code: str, detail: str, call: str) -> bytes:
    """Return the body of an answer that failed; `code` is Herdr's own and has no place in it."""
    # Claude Code looks for the word anywhere in the text, so a backend's must not get there either.
    message = detail.replace("overloaded_error", "overloaded")
    return _encode(_Error(_Inner(error_type(status), message), f"req_{call}"))
