import json
from typing import Any

import msgspec

from herdr.pool.chunk import (
    Chunk,
    End,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    ToolEnd,
    ToolStart,
    Usage,
    Verbatim,
)
from herdr.pool.inset import Report, Told
from herdr.pool.protocols import herdr as module
from herdr.pool.protocols.dialect import Dialect, Ending, Opening
from herdr.pool.protocols.herdr import encoder, error_body, parse, whole
from herdr.pool.request import ChatRequest, Message, Text, Thinking, ToolUse

OPENING = Opening("01%CALL", "m", "a", 3, 12, 1_700_000_000)
REQUEST = ChatRequest("m", (Message("user", (Text("hi"),)),))
ENDING = Ending(12, 40, 90)
CHUNKS: list[Chunk] = [
    Progress(9, 0, 9),
    ThinkingDelta("hm\n"),
    TextDelta('a "渐🙂"\r\n\n\u2028'),
    Verbatim("ping", b"{}"),
    ToolStart("c1", "f"),
    ToolDelta('{\n "x": "a\\nb",'),
    ToolDelta('\r\n "y": 1\n}'),
    ToolEnd(),
    ToolStart("c2", "g"),
    ToolEnd(),
    End("tool_use", Usage(9, 4, 7)),
]
DIALECT: Dialect = module  # the type checker sees that nothing is missing


def stream(chunks: list[Chunk]) -> bytes:
    writer = encoder(OPENING, REQUEST)
    out = writer.start() + writer.ping()
    for chunk in chunks:
        out += writer.ping()
        out += writer.end(chunk, ENDING) if isinstance(chunk, End) else writer.feed(chunk)
    return out


def plain_client(body: bytes) -> list[tuple[str, str, Any]]:
    """Read a stream in the plainest way that there is: no case for a comment or an end mark."""
    events, id_, event, data = [], "", "", []
    for line in body.decode().split("\n")[:-1]:
        if line.startswith(":"):
            continue
        if line == "":
            events.append((id_, event, json.loads("\n".join(data))))
            data = []
        elif line.startswith("id:"):
            id_ = line[3:].strip()
        elif line.startswith("event:"):
            event = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
    assert data == []
    return events


def test_a_plain_client_reads_it_all() -> None:
    events = plain_client(stream(CHUNKS))
    assert [id_ for id_, _, _ in events] == [f"01%CALL.{n}" for n in range(1, 7)]
    assert [(event, data) for _, event, data in events] == [
        ("message.start", {"call": "01%CALL", "model": "m", "agent": "a", "slot": 3, "queue_ms": 12}),
        ("message.delta", {"thinking": "hm\n"}),
        ("message.delta", {"text": 'a "渐🙂"\r\n\n\u2028'}),
        ("tool.call", {"id": "c1", "name": "f", "input": {"x": "a\nb", "y": 1}}),
        ("tool.call", {"id": "c2", "name": "g", "input": {}}),
        (
            "message.end",
            {
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 7},
                "timings": {"queue_ms": 12, "first_token_ms": 40, "total_ms": 90},
            },
        ),
    ]


def test_each_event_is_one_block_with_one_line_of_data() -> None:
    for block in stream(CHUNKS).decode().replace(": keep-alive\n", "").split("\n\n")[:-1]:
        assert [line.split(":")[0] for line in block.split("\n")] == ["id", "event", "data"]


def test_a_failure_is_the_last_event() -> None:
    writer = encoder(OPENING, REQUEST)
    body = writer.start() + writer.feed(TextDelta("x")) + writer.error(502, "backend_failed", "it broke\noff")
    assert plain_client(body)[-1] == (
        "01%CALL.3",
        "error",
        {"code": "backend_failed", "detail": "it broke\noff"},
    )


def test_a_call_that_was_cut_off_is_left_out() -> None:
    cut: list[Chunk] = [ToolStart("c1", "f"), ToolDelta('{"x'), ToolEnd(), End("max_tokens", Usage())]
    assert [event for _, event, _ in plain_client(stream(cut))] == ["message.start", "message.end"]
    assert json.loads(whole(OPENING, REQUEST, cut, ENDING))["tool_calls"] == []


def test_the_stop_sequence_is_named() -> None:
    end = End("stop_sequence", Usage(), "END")
    assert plain_client(stream([end]))[-1][2]["stop_sequence"] == "END"
    assert json.loads(whole(OPENING, REQUEST, [end], ENDING))["stop_sequence"] == "END"


def test_whole() -> None:
    assert json.loads(whole(OPENING, REQUEST, CHUNKS, ENDING)) == {
        "call": "01%CALL",
        "model": "m",
        "agent": "a",
        "slot": 3,
        "content": 'a "渐🙂"\r\n\n\u2028',
        "thinking": "hm\n",
        "tool_calls": [
            {"id": "c1", "name": "f", "input": {"x": "a\nb", "y": 1}},
            {"id": "c2", "name": "g", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 7},
        "timings": {"queue_ms": 12, "first_token_ms": 40, "total_ms": 90},
    }
    short = json.loads(whole(OPENING, REQUEST, [End("end_turn", Usage())], ENDING))
    assert short["content"] == "" and short["tool_calls"] == [] and "thinking" not in short


def test_a_whole_answer_may_be_sent_back_as_a_message() -> None:
    answer = json.loads(whole(OPENING, REQUEST, CHUNKS, ENDING))
    again = parse(json.dumps({"messages": [{"role": "assistant", **answer}]}).encode()).messages[0].parts
    assert again[:2] == (Thinking("hm\n"), Text('a "渐🙂"\r\n\n\u2028'))
    assert [(p.id, p.name, json.loads(p.arguments)) for p in again[2:] if isinstance(p, ToolUse)] == [
        ("c1", "f", {"x": "a\nb", "y": 1}),
        ("c2", "g", {}),
    ]


def test_errors_are_problems() -> None:
    assert json.loads(error_body(503, "queue_timeout", "no slot", "01X")) == {
        "type": "urn:herdr:problem:queue_timeout",
        "title": "Service Unavailable",
        "status": 503,
        "code": "queue_timeout",
        "detail": "no slot",
    }
    assert json.loads(error_body(529, "overloaded", "x", ""))["title"] == "Error"


def test_what_the_prompt_holds_of_the_context_is_said_where_it_was_asked_for() -> None:
    report = Report(
        Told(unavailable="unknown_session"),
        Told("f00d", 7),
        {"a.py": Told("beef", 9, "too_large"), "b.py": Told()},
    )
    opening = msgspec.structs.replace(OPENING, context=report)
    said = {
        "session": {"unavailable": "unknown_session"},
        "map": {"ref": "f00d", "tokens": 7},
        "files": {"a.py": {"ref": "beef", "tokens": 9, "unavailable": "too_large"}, "b.py": {}},
    }
    ((_, name, start),) = plain_client(encoder(opening, REQUEST).start())
    assert name == "message.start" and start["context"] == said
    assert json.loads(whole(opening, REQUEST, CHUNKS, ENDING))["context"] == said
    ((_, _, start),) = plain_client(encoder(OPENING, REQUEST).start())
    assert "context" not in start
    opening = msgspec.structs.replace(OPENING, context=Report())
    assert json.loads(whole(opening, REQUEST, CHUNKS, ENDING))["context"] == {}
