"""Pure: what is kept of a call: its row, the event `model.call`, and the turns as `session.message`.

They are records and never `user.message`: an agent that follows its own instructions would call itself for ever.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from herdr.pool.chunk import Chunk, TextDelta, ThinkingDelta, ToolDelta, ToolEnd, ToolStart
from herdr.pool.request import ChatRequest
from herdr.pool.turns import TEXT_MAX, bounded

Audit = Literal["full", "turns", "metadata"]

PROMPT_MAX = 12 * TEXT_MAX  # bytes of a recorded prompt; an event may have 1 MiB
CALLS_MAX = 3 * TEXT_MAX  # bytes of recorded calls, beside two texts of TEXT_MAX characters at 6 bytes each


class CallRecord(msgspec.Struct, frozen=True):
    """One call, as `model.call` and `GET /v1/calls` show it. Times are milliseconds."""

    call: str
    time: str
    agent: str
    session: str | None
    route: str
    priority: int
    backend: str | None
    model: str
    slot: int | None
    queue_ms: int | None
    first_token_ms: int | None
    total_ms: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    stop_reason: str | None
    changed: str | None = None
    """The first section in which the prompt differs from its conversation's last one; None: it only grew."""
    error: str | None = None
    """The code of the failure."""


class RecordEvent(msgspec.Struct, frozen=True):
    """One event that a call leaves behind."""

    type: str
    data: Any
    session: str | None
    background: bool
    """Lane P2, and not routed."""


def answer_of(chunks: Sequence[Chunk]) -> dict[str, Any]:
    """Return an answer's text, reasoning and tool calls, as far as they came."""
    text, thinking = [], []
    calls: list[dict[str, Any]] = []
    for chunk in chunks:
        match chunk:
            case TextDelta():
                text.append(chunk.text)
            case ThinkingDelta():
                thinking.append(chunk.text)
            case ToolStart():
                calls.append({"id": chunk.id, "name": chunk.name, "arguments": []})
            case ToolDelta():
                calls[-1]["arguments"].append(chunk.text)
            case ToolEnd():
                calls[-1]["arguments"] = "".join(calls[-1]["arguments"])
    whole = [call for call in calls if isinstance(call["arguments"], str)]
    return {"text": "".join(text), "thinking": "".join(thinking), "tool_calls": whole}


def events_of(
    record: CallRecord, request: ChatRequest, user_text: str, chunks: Sequence[Chunk], audit: Audit
) -> list[RecordEvent]:
    """Return the events of one call: its record, and its turns unless only metadata is kept."""
    data = msgspec.to_builtins(record)
    if audit == "full":
        prompt = msgspec.json.encode(request.messages)
        data["request"] = msgspec.Raw(prompt) if len(prompt) <= PROMPT_MAX else _too_long(prompt)
    events = [RecordEvent("model.call", data, record.session, background=False)]
    if audit == "metadata":
        return events
    session = record.session or record.agent
    about: dict[str, Any] = {"call": record.call, "agent": record.agent}
    if user_text:
        turn = {"role": "user", "content": bounded(user_text), **about}
        events.append(RecordEvent("session.message", turn, session, background=True))
    answer = answer_of(chunks)
    if answer["text"] or answer["tool_calls"]:
        turn = {"role": "assistant", "content": bounded(answer["text"]), **about}
        if answer["tool_calls"]:
            turn["tool_calls"] = [{"id": c["id"], "name": c["name"]} for c in answer["tool_calls"]]
        if audit == "full":
            turn["thinking"] = bounded(answer["thinking"])
            calls = msgspec.json.encode(answer["tool_calls"])
            turn["tool_calls"] = msgspec.Raw(calls) if len(calls) <= CALLS_MAX else _too_long(calls)
        events.append(RecordEvent("session.message", turn, session, background=True))
    return events


def _too_long(encoded: bytes) -> str:
    return f"not recorded: {len(encoded)} bytes"
