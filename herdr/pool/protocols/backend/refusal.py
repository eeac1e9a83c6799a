"""Pure: why a backend gave no answer, or stopped giving one, in the gateway's own words."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from herdr.pool.failures import ModelError, prompt_too_long
from herdr.pool.protocols.backend.messages import Kind
from herdr.pool.protocols.backend.quote import quoted

LOADING_RETRY_S = 5.0  # a model of a few GB is read from a warm disk cache in about that time
_BODY_MAX = 64 * 1024  # what is read of a refusal; llama.cpp's longest, about a schema, have a few kB

_TOO_LONG_CODES = {"exceed_context_size_error", "context_length_exceeded"}
# llama.cpp, OpenAI and vLLM, SGLang, Ollama, LM Studio, TGI, Anthropic: each has its own wording.
_TOO_LONG = re.compile(
    r"(?i)exceeds? (the )?(available |model'?s? |maximum |allowed )*(maximum )?(context|input|model) "
    r"?(size|length|window|limit)|maximum context length|longer than the (maximum model|model'?s? context) length"
    r"|context length is only|prompt is too long|greater than the context length|tokens` must be <="
    r"|when context the overflows"
)
_OF_THE_ANSWER = re.compile(r"(?i)max(_completion)?_tokens\S* (or \S+ )?(is|are) too (large|high)")
_LIMIT = re.compile(
    r"(?i)(?:context (?:length|size|window)|model length|maximum|must be <=)[^\d,.]{0,40}(\d[\d,]*)"
    r"|(\d[\d,]*) maximum"
)
_NUMBER = re.compile(r"\d[\d,]*")


class Complaint(msgspec.Struct, frozen=True):
    """What the body of a refusal says, whichever server wrote it."""

    message: str = ""
    type: str = ""
    code: str = ""
    tokens: int = 0
    limit: int = 0


def refusal(status: int, body: bytes, kind: Kind, model: str, retry_after: float | None = None) -> ModelError:
    """Return what a backend's answer other than 200 means; `retry_after` is its header, in seconds."""
    complaint = read_complaint(body)
    too_long = _too_long(complaint)
    if too_long is not None:
        return too_long
    said = quoted(complaint.message or body)
    if "image input is not supported" in said:  # llama.cpp without a projector says so with status 500
        return ModelError(
            "unsupported_input", f"{model} cannot see images; send text, or choose another model"
        )
    if status in _FIXED:
        code, detail = _FIXED[status]
        return ModelError(code, detail.format(kind=kind, model=model, said=said), retry_after)
    if status in (429, 503, 529):
        return _busy(status, said, retry_after)
    if 400 <= status < 500 or status == 501:
        return ModelError("backend_refused", f"the backend refused the request with status {status}: {said}")
    return ModelError(
        "backend_failed", f"the backend answered status {status}: {said}; its own log says more", retry_after
    )


_FIXED: Mapping[int, tuple[str, str]] = {  # the body of a 401 may repeat the key, so it is not quoted
    401: (
        "backend_failed",
        "the backend refused the gateway's key (status 401); check the variable that `api_key_env` names",
    ),
    403: (
        "backend_failed",
        "the backend forbids this to the gateway's key (status 403); check what the key may do",
    ),
    402: ("backend_failed", "the backend wants to be paid first (status 402): {said}"),
    404: (
        "unknown_model",
        "the backend does not know model {model} or its url is wrong (status 404): {said}",
    ),
    405: ("backend_failed", "the backend's url does not lead to chat completions (status 405)"),
    408: ("backend_timeout", "the backend gave up waiting (status 408): {said}"),
    504: ("backend_timeout", "what stands before the backend gave up waiting (status 504): {said}"),
}


def stream_failure(data: bytes) -> ModelError:
    """Return what an error object inside a stream of status 200 means."""
    complaint = read_complaint(data)
    too_long = _too_long(complaint)
    if too_long is not None:
        return too_long
    said = quoted(complaint.message or data)
    if complaint.code in ("401", "403") or complaint.type == "authentication_error":
        return ModelError("backend_failed", _FIXED[401][1].replace(" (status 401)", ""))
    if complaint.code in ("429", "503", "529") or complaint.type in _BUSY_TYPES:
        return ModelError("overloaded", f"the backend is too busy to go on: {said}")
    return ModelError("backend_failed", f"the backend broke off its answer: {said}")


_BUSY_TYPES = {"overloaded_error", "rate_limit_error", "rate_limit_exceeded", "unavailable_error"}


def _busy(status: int, said: str, retry_after: float | None) -> ModelError:
    if status == 429:
        return ModelError("rate_limited", f"the backend limits how often it is asked: {said}", retry_after)
    wait = LOADING_RETRY_S if retry_after is None else retry_after
    if "loading" in said.lower():
        return ModelError("overloaded", "the backend is still loading its model; ask again soon", wait)
    return ModelError("overloaded", f"the backend has no room now (status {status}): {said}", wait)


def read_complaint(body: bytes) -> Complaint:
    """Return what a refusal's body says; nothing when it is no JSON object."""
    try:
        found = msgspec.json.decode(body[:_BODY_MAX])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Complaint()
    if isinstance(found, list) and found:  # Google's OpenAI endpoint wraps the object in a list
        found = found[0]
    if not isinstance(found, dict):
        return Complaint()
    error = found.get("error", found)
    if not isinstance(error, dict):
        return Complaint(message=_text(error))
    return Complaint(
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


def _too_long(complaint: Complaint) -> ModelError | None:
    message = complaint.message
    named = {complaint.type, complaint.code} & _TOO_LONG_CODES
    if not named and (_OF_THE_ANSWER.search(message) or not _TOO_LONG.search(message)):
        return None
    tokens, limit = complaint.tokens, complaint.limit
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
