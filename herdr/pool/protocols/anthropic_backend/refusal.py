"""Pure: what went wrong at a backend that speaks Anthropic's Messages API, as one of the gateway's failures."""

import re
from typing import NamedTuple

import msgspec

from herdr.pool.failures import ModelError, prompt_too_long

MESSAGE_MAX = 500
"""Characters that are kept of a server's message; an HTML page of a proxy says nothing beyond them."""

_KINDS = {  # the error types of docs.claude.com/en/api/errors, and llama-server's own
    "authentication_error": "key",
    "permission_error": "key",
    "billing_error": "backend_failed",
    "not_found_error": "unknown_model",
    "invalid_request_error": "backend_refused",
    "exceed_context_size_error": "backend_refused",
    "not_supported_error": "backend_refused",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
    "unavailable_error": "overloaded",
    "timeout_error": "backend_timeout",
    "api_error": "backend_failed",
}
_KINDS_OF_STATUS = {
    **{400: "backend_refused", 422: "backend_refused", 401: "key", 403: "key", 402: "backend_failed"},
    **{404: "unknown_model", 408: "backend_timeout", 413: "too_large", 429: "rate_limited"},
    **{503: "overloaded", 504: "backend_timeout", 529: "overloaded"},
}
_TOO_LONG = (  # wordings of Anthropic, llama.cpp and vLLM; each gives the prompt's tokens and the limit
    re.compile(r"prompt is too long: (?P<tokens>\d+) tokens > (?P<limit>\d+)"),
    re.compile(r"request \((?P<tokens>\d+) tokens\) exceeds the available context size \((?P<limit>\d+)"),
    re.compile(r"maximum context length is (?P<limit>\d+) tokens\D+(?P<tokens>\d+)"),
)


class Fault(NamedTuple):
    """What a server says of a failure; empty where it says nothing."""

    type: str = ""
    message: str = ""
    tokens: int | None = None
    limit: int | None = None


class _Error(msgspec.Struct):
    type: str = ""
    message: str = ""
    n_prompt_tokens: int | None = None
    n_ctx: int | None = None


class _Envelope(msgspec.Struct):
    error: _Error


class _Loose(msgspec.Struct):
    error: str = ""
    message: str = ""
    detail: str = ""


_envelope = msgspec.json.Decoder(_Envelope)
_loose = msgspec.json.Decoder(_Loose)


def refusal(status: int, body: bytes, retry_after_s: float | None, model: str) -> ModelError:
    """Return the failure for an answer that is not a 200, or for an error in one.

    `retry_after_s` is how long the server asks everybody to wait; `model` is named when it is unknown.
    """
    fault = read_fault(body)
    kind = _KINDS_OF_STATUS.get(status) or (_KINDS.get(fault.type) if status < 400 else None)
    return _failure(kind or "backend_failed", f"HTTP {status}", fault, retry_after_s, model)


def stream_failure(data: bytes) -> ModelError:
    """Return the failure for an `error` event in a stream."""
    fault = read_fault(data)
    kind = _KINDS.get(fault.type, "backend_failed")
    return _failure(kind, fault.type or "an error event", fault, None, "the model")


def read_fault(body: bytes) -> Fault:
    """Return what an error's body says: Anthropic's or llama-server's form, or whatever text there is."""
    try:
        error = _envelope.decode(body).error
        return Fault(error.type, _plain(error.message), error.n_prompt_tokens, error.n_ctx)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    try:
        loose = _loose.decode(body)
        return Fault(message=_plain(loose.error or loose.message or loose.detail))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return Fault(message=_plain(body[: 4 * MESSAGE_MAX].decode(errors="replace")))


def _plain(text: str) -> str:
    """Return text on one line, of a bounded length, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 8 * MESSAGE_MAX]).split())
    return line if len(line) <= MESSAGE_MAX else line[: MESSAGE_MAX - 1] + "…"


def _failure(kind: str, said: str, fault: Fault, retry_after_s: float | None, model: str) -> ModelError:
    why = fault.message or "it gave no reason"
    if kind in _MAYBE_TOO_LONG and (long := _too_long(fault)) is not None:
        return long
    if kind == "key":  # the server's own words may repeat a part of the key
        return ModelError(
            "backend_failed",
            f"the backend refused the gateway's key ({said}): set this backend's api_key_env to the name of "
            "an environment variable that holds a valid key with access to the model",
        )
    if kind == "unknown_model":
        return ModelError(
            kind,
            f"the backend knows nothing of the model {model!r} ({said}: {why}); "
            "see the names in models: and the backend's url",
        )
    if kind == "too_large":
        return ModelError("backend_refused", f"the request is too large for the backend ({said}): {why}")
    if kind == "backend_refused":
        return ModelError(kind, f"the backend refused the request: {why}")
    if kind in ("rate_limited", "overloaded"):
        return ModelError(kind, f"{_WORDS[kind]} ({said}): {why}; try again later", retry_after_s)
    return ModelError(kind, f"the backend failed ({said}): {why}")


_MAYBE_TOO_LONG = ("backend_refused", "too_large", "backend_failed")  # old llama.cpp builds: HTTP 500
_WORDS = {
    "rate_limited": "the backend's rate limit or quota is used up",
    "overloaded": "the backend is overloaded",
}


def _too_long(fault: Fault) -> ModelError | None:
    if fault.tokens is not None and fault.limit is not None:
        return prompt_too_long(fault.tokens, fault.limit)
    for pattern in _TOO_LONG:
        if match := pattern.search(fault.message):
            return prompt_too_long(int(match["tokens"]), int(match["limit"]))
    if "prompt is too long" in fault.message.lower():
        return ModelError("prompt_too_long", f"prompt is too long: the backend says: {fault.message}")
    return None
