"""What `fake_llama` answers: pieces of text, thinking and tool calls, and everything that can go wrong."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Think:
    """A piece of `reasoning_content`."""

    text: str


@dataclass(frozen=True)
class Tool:
    """A fragment of the tool call `index`; `id` and `name` stand in a call's first fragment only."""

    index: int = 0
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class Raw:
    """These bytes, as they are."""

    data: bytes


@dataclass(frozen=True)
class Stall:
    """Nothing more, until `FakeLlama.resume` or until the client leaves."""


@dataclass(frozen=True)
class Die:
    """The connection ends here, in the midst of the answer; `reset` says it with RST instead of FIN."""

    reset: bool = False


@dataclass(frozen=True)
class Pings:
    """Comment lines and nothing else, until `FakeLlama.resume` or until the client leaves."""

    every_s: float = 0.01


@dataclass(frozen=True)
class Flood:
    """One line that never ends, until the client leaves."""


Piece = str | Think | Tool | Raw | Stall | Die | Pings | Flood

HALF_CHARACTER = Raw(b'data: {"choices":[{"index":0,"delta":{"content":"\xe6\xb8')
INVALID_JSON = Raw(b'data: {"choices":[{"index":0,"delta":{"content":}}]}\n\n')
ERROR_INSIDE = Raw(b'data: {"error":{"code":500,"message":"context shift failed","type":"server_error"}}\n\n')


@dataclass(frozen=True)
class Refusal:
    """An answer with a status of its own instead of a stream."""

    status: int
    body: Mapping[str, Any] | bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def error(status: int, kind: str, message: str, **more: Any) -> Refusal:
    """Return an error in llama.cpp's form."""
    return Refusal(status, {"error": {"code": status, "message": message, "type": kind, **more}})


def rate_limited(retry_after: str | None = "2") -> Refusal:
    """Return a cloud's 429."""
    body = {"error": {"message": "Rate limit reached", "type": "rate_limit_exceeded"}}
    return Refusal(429, body, {} if retry_after is None else {"retry-after": retry_after})


LOADING = error(503, "unavailable_error", "Loading model")
TOOLS_REFUSED = error(400, "invalid_request_error", "Failed to initialize samplers: failed to parse grammar")


@dataclass(frozen=True)
class Script:
    """One answer: its pieces in order, one token each, and how it departs from a good one."""

    chunks: Sequence[Piece] = ()
    pace_s: float = 0.0
    """Before each piece."""
    before: Stall | Die | None = None
    """In its slot, but before any header is sent."""
    refuse: Refusal | None = None
    """Instead of an answer, before it gets a slot."""
    content_type: str = "text/event-stream"
    finish: bool = True
    """Whether the chunk with `finish_reason` comes."""
    finish_reason: str = ""
    """Instead of what the pieces amount to."""
    usage: bool = True
    timings: bool = True
    progress: bool = True
    """Whether `return_progress` is obeyed; other servers do not know it."""
    done: bool = True
    """Whether `[DONE]` comes."""
    trickle_s: float | None = None
    """A pause after each single byte."""


def pieces(text: str) -> list[str]:
    """Cut a text as a tokenizer might; special tokens keep what comes after them from changing the rest."""
    return re.findall(r"<\|\w+\|>|\w{1,4}|\s+|[^\w\s]", text)


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common prefix."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def render(body: Json) -> str:
    """Return the prompt of a chat as a ChatML template writes it; no key is sorted, no text is trimmed."""
    turns = [_turn(message) for message in body["messages"]]
    if body.get("tools"):
        turns.insert(0, f"<|im_start|>tools\n{json.dumps(body['tools'], ensure_ascii=False)}<|im_end|>\n")
    return "".join(turns) + "<|im_start|>assistant\n"


def _turn(message: Json) -> str:
    text = message_text(message)
    if message.get("reasoning_content"):
        text = thinking(message["reasoning_content"]) + text
    calls = (call["function"] for call in message.get("tool_calls") or ())
    text += "".join(tool_call(call["name"], call["arguments"]) for call in calls)
    return f"<|im_start|>{message['role']}\n{text}<|im_end|>\n"


def message_text(message: Json) -> str:
    """Return the text of a message whose content is a string, parts, or nothing."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else "<|image|>" for part in content)


def thinking(text: str) -> str:
    """Return how the template writes reasoning."""
    return f"<think>{text}</think>"


def tool_call(name: str, arguments: str) -> str:
    """Return how the template writes a tool call."""
    return f'<tool_call>{{"name":"{name}","arguments":{arguments}}}</tool_call>'


def written(chunks: Sequence[Piece]) -> str:
    """Return what the model has written, as its template will write it in the next turn."""
    thought = "".join(chunk.text for chunk in chunks if isinstance(chunk, Think))
    text = "".join(chunk for chunk in chunks if isinstance(chunk, str))
    calls: dict[int, tuple[str, str]] = {}
    for chunk in chunks:
        if isinstance(chunk, Tool):
            name, arguments = calls.get(chunk.index, ("", ""))
            calls[chunk.index] = (name or chunk.name, arguments + chunk.arguments)
    return (
        (thinking(thought) if thought else "") + text + "".join(tool_call(*call) for call in calls.values())
    )


def delta(chunk: str | Think | Tool) -> Json:
    """Return one piece as the `delta` of a chunk."""
    if isinstance(chunk, str):
        return {"content": chunk}
    if isinstance(chunk, Think):
        return {"reasoning_content": chunk.text}
    function = {"name": chunk.name} if chunk.name else {}
    call: Json = {"index": chunk.index, "function": {**function, "arguments": chunk.arguments}}
    return {"tool_calls": [{**call, "id": chunk.id, "type": "function"} if chunk.id else call]}


def echo(body: Json) -> Script:
    """Return the answer when nothing was scripted: a short text about the last user message."""
    asked = [message_text(message) for message in body["messages"] if message["role"] == "user"]
    return Script(pieces(f"You said: {asked[-1][:60] if asked else 'nothing'}"))
