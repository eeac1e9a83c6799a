"""Pure: why a backend gave no answer, or stopped giving one, in the gateway's own words.

One reader for all kinds of backends: they sit behind the same proxies, and llama-server speaks two protocols
and has one form of error.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from herdr.pool.failures import ModelError, prompt_too_long
from herdr.pool.protocols.quote import quoted

_OF_STATUS: Mapping[int, str] = MappingProxyType(
    {
        **{401: "key", 403: "key", 402: "unpaid", 404: "unknown_model", 405: "wrong_url", 413: "too_large"},
        **{408: "timeout", 504: "timeout", 429: "rate_limited", 503: "overloaded", 529: "overloaded"},
    }
)
"""HTTP status → a key of `_MEANINGS`. Others of the 400s, and 501, mean `refused`, the rest `failed`."""

_OF_TYPE: Mapping[str, str] = MappingProxyType(
    {
        "authentication_error": "key",
        "permission_error": "key",
        "billing_error": "unpaid",
        "not_found_error": "unknown_model",
        "invalid_request_error": "refused",
        "exceed_context_size_error": "refused",
        "context_length_exceeded": "refused",
        "not_supported_error": "refused",
        "request_too_large": "too_large",
        "rate_limit_error": "rate_limited",
        "rate_limit_exceeded": "rate_limited",
        "overloaded_error": "overloaded",
        "unavailable_error": "overloaded",
        "timeout_error": "timeout",
    }
)
"""An error's type or code → what it means; those of OpenAI, of docs.claude.com/en/api/errors, of llama-server."""

_MEANINGS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {  # what the server says of a key may repeat a part of it, so that is not quoted
        "key": (
            "backend_failed",
            "the backend refused the gateway's key ({at}): set this backend's api_key_env to the name of "
            "an environment variable that holds a valid key with access to the model",
        ),
        "unpaid": ("backend_failed", "the backend wants to be paid first ({at}): {said}"),
        "unknown_model": (
            "unknown_model",
            "the backend does not know {model} ({at}: {said}); "
            "see the names in models: and the backend's url",
        ),
        "wrong_url": ("backend_failed", "the backend's url leads to what takes no requests for text ({at})"),
        "timeout": (
            "backend_timeout",
            "the backend, or what stands before it, gave up waiting ({at}): {said}",
        ),
        "too_large": ("backend_refused", "the request is too large for the backend ({at}): {said}"),
        "refused": ("backend_refused", "the backend refused the request ({at}): {said}"),
        "rate_limited": (
            "rate_limited",
            "the backend's rate limit or quota is used up ({at}): {said}; try again later",
        ),
        "loading": ("overloaded", "the backend is still loading its model; ask again soon"),
        "overloaded": ("overloaded", "the backend is too busy ({at}): {said}; try again later"),
        "failed": ("backend_failed", "the backend failed ({at}): {said}; its own log says more"),
    }
)
"""What a refusal means → the failure's code, and how it is put."""

_TOO_LONG_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_MAYBE_TOO_LONG = {"refused", "too_large", "failed"}  # old llama.cpp builds say so with status 500
# llama.cpp, OpenAI and vLLM, SGLang, Ollama, LM Studio, TGI, Anthropic: each has its own wording.
_TOO_LONG = re.compile(
    r"(?i)exceeds? (the )?(available |model'?s? |maximum |allowed )*(maximum )?(context|input|model) "
    r"?(size|length|window|limit)|maximum context length|longer than the (maximum model|model'?s? context) length"
    r"|context length is only|prompt is too long|greater than the context length|tokens` must be <="
    r"|when context the overflows"
)
# That the answer could be too long is another matter: clients then lower `max_tokens`.
_OF_THE_ANSWER = re.compile(
    r"(?i)max(_completion)?_tokens\S* (or \S+ )?((is|are) too (large|high)|exceed context limit)"
)
_LIMIT = re.compile(
    r"(?i)(?:context (?:length|size|window)|model length|maximum|must be <=)[^\d,.]{0,40}(\d[\d,]*)"
    r"|(\d[\d,]*) maximum"
)
_NUMBER = re.compile(r"\d[\d,]*")


class ErrorBody(msgspec.Struct, frozen=True):
    """What the body of a refusal says, whichever server wrote it; empty or 0 where it says nothing."""

    message: str = ""
    type: str = ""
    code: str = ""
    tokens: int = 0
    limit: int = 0


def refusal(status: int, body: bytes, model: str, retry_after_s: float | None = None) -> ModelError:
    """Return the failure for an answer that is not a 200, or for an error in one.

    `model` is named when it is unknown. `retry_after_s` is how long the server asks everybody to wait.
    """
    error = read_error(body)
    meaning = _OF_TYPE.get(error.type, "failed") if status < 400 else _of_status(status)
    return _failure(meaning, f"status {status}", error, body, f"the model {model!r}", retry_after_s)


def stream_failure(data: bytes) -> ModelError:
    """Return the failure for an error inside a stream of status 200."""
    error = read_error(data)
    meaning = _OF_TYPE.get(error.type) or _OF_TYPE.get(error.code)
    if meaning is None:  # some write the HTTP status that it is too late for
        meaning = _of_status(int(error.code)) if re.fullmatch("[45][0-9]{2}", error.code) else "failed"
    return _failure(meaning, error.type or error.code or "an error event", error, data, "the model")


def read_error(body: bytes) -> ErrorBody:
    """Return what a refusal's body says; nothing when it is no JSON object."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ErrorBody()
    if isinstance(found, list) and found:  # Google's OpenAI endpoint wraps the object in a list
        found = found[0]
    if not isinstance(found, dict):
        return ErrorBody()
    error = found.get("error", found)
    if not isinstance(error, dict):
        return ErrorBody(message=_text(error))
    return ErrorBody(
        message=_text(error.get("message") or error.get("detail") or error.get("error") or ""),
        type=_text(error.get("type") or ""),
        code=_text(error.get("code") or ""),
        tokens=_number(error.get("n_prompt_tokens")),
        limit=_number(error.get("n_ctx")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _of_status(status: int) -> str:
    return _OF_STATUS.get(status) or ("refused" if status < 500 or status == 501 else "failed")


def _failure(
    meaning: str, at: str, error: ErrorBody, body: bytes, model: str, retry_after_s: float | None = None
) -> ModelError:
    if meaning in _MAYBE_TOO_LONG and (too_long := _too_long(error)) is not None:
        return too_long
    said = quoted(error.message or body)
    if "image input is not supported" in said:  # llama.cpp without a projector says so with status 500
        return ModelError(
            "unsupported_input", f"{model} cannot see images; send text, or choose another model"
        )
    if meaning == "overloaded" and "loading" in said.lower():
        meaning = "loading"
    code, detail = _MEANINGS[meaning]
    wait_s = retry_after_s if code in ("rate_limited", "overloaded") else None
    return ModelError(code, detail.format(at=quoted(at, 80), said=said, model=model), wait_s)


def _too_long(error: ErrorBody) -> ModelError | None:
    message = error.message
    named = {error.type, error.code} & _TOO_LONG_TYPES
    if not named and (_OF_THE_ANSWER.search(message) or not _TOO_LONG.search(message)):
        return None
    tokens, limit = error.tokens, error.limit
    if not (tokens and limit):
        tokens, limit = _sizes(message)
    if tokens and limit:
        return prompt_too_long(tokens, limit)
    return ModelError("prompt_too_long", f"prompt is too long: {quoted(message)}")


def _sizes(message: str) -> tuple[int, int]:
    """Return the prompt's size and the limit out of a sentence; zeros where it names no two such numbers."""
    found = _LIMIT.search(message)
    if found is None:
        return 0, 0
    limit = int((found[1] or found[2]).replace(",", ""))
    others = [int(text.replace(",", "")) for text in _NUMBER.findall(message)]
    over = [number for number in others if number > limit]
    return (over[0], limit) if over else (0, 0)
