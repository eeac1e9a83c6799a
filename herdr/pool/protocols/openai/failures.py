"""Pure: errors as OpenAI's clients know them."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

_TYPES: Mapping[int, str] = MappingProxyType(
    {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
    }
)
_CODES: Mapping[str, str] = MappingProxyType(
    {
        "prompt_too_long": "context_length_exceeded",  # what makes Codex and opencode compact
        "unknown_model": "model_not_found",
        "rate_limited": "rate_limit_exceeded",
        "unauthorized": "invalid_api_key",
    }
)
_encode = msgspec.json.Encoder().encode


class Failure(msgspec.Struct):
    """The error object."""

    message: str
    type: str
    param: str | None
    code: str


class FailureBody(msgspec.Struct):
    """The error object in its envelope."""

    error: Failure


def error_type(status: int) -> str:
    """Return the kind of an error by its HTTP status."""
    return _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")


def error_code(code: str) -> str:
    """Return our code in the words of OpenAI's, where clients act on those."""
    return _CODES.get(code, code)


def error_body(status: int, code: str, detail: str, call: str) -> bytes:
    """Return an error's JSON; the call's id goes in a header here, not into the body."""
    return _encode(FailureBody(Failure(detail, error_type(status), None, error_code(code))))
