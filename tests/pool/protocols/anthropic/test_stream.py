import json
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from pool.protocols.anthropic.answers import (
    DONE,
    ENDING,
    HIDDEN,
    OPENING,
    REQUEST,
    answers,
    chaos,
    parts_in,
    stream_of,
)
from pool.protocols.anthropic.strict_reader import StreamError, StrictReader, read_whole, split_events

from herdr.pool.chunk import (
    Chunk,
    End,
    Progress,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    ToolEnd,
    ToolStart,
    Usage,
    Verbatim,
)
from herdr.pool.protocols import anthropic
from herdr.pool.request import ChatRequest, Part, Text, Thinking, ToolUse


def call(name: str, *pieces: str) -> list[Chunk]:
    return [ToolStart(f"toolu_{name}", name), *map(ToolDelta, pieces), ToolEnd()]


def names(stream: bytes) -> list[str]:
    return [name.removeprefix("content_block_") for name, _ in split_events(stream)]


def sent_back(content: object) -> tuple[Part, ...]:
    """Return what the parser makes of an answer that stands in the next request's history."""
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": "on"},
    ]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return anthropic.parse(body).messages[1].parts


def loosely(parts: Sequence[Part]) -> list[object]:
    """Return parts with arguments as values: clients write their JSON anew."""
    return [(p.id, p.name, json.loads(p.arguments or "{}")) if isinstance(p, ToolUse) else p for p in parts]


def test_each_block_closes_before_the_next_opens() -> None:
    chunks = [
        *(ThinkingDelta("Hm"), ThinkingDelta("m."), TextDelta("I "), TextDelta("look.")),
        *call("Read", '{"path"', ':"a.py"}'),
        *call("Bash"),
        End("tool_use", Usage(100, 40, 12)),
    ]
    stream = stream_of(chunks)
    assert names(stream) == [
        *("message_start", "start", "delta", "delta", "delta", "stop", "start", "delta", "delta", "stop"),
        *("start", "delta", "delta", "stop", "start", "stop", "message_delta", "message_stop"),
    ]
    assert read_whole(stream) == {
        "id": "msg_01J",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [
            {"type": "thinking", "thinking": "Hmm.", "signature": "herdr1:"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_Read", "name": "Read", "input": {"path": "a.py"}},
            {"type": "tool_use", "id": "toolu_Bash", "name": "Bash", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 60,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 40,
            "output_tokens": 12,
        },
    }


def test_a_finished_block_is_closed_at_once() -> None:
    encoder = anthropic.encoder(OPENING, REQUEST)
    encoder.start()
    assert names(encoder.feed(TextDelta("a"))) == ["start", "delta"]
    assert names(encoder.feed(ToolStart("t", "Bash"))) == ["stop", "start"]
    assert names(encoder.feed(ToolDelta("{}"))) == ["delta"]
    assert names(encoder.feed(ToolEnd())) == ["stop"]
    assert names(encoder.feed(ThinkingDelta("b"))) == ["start", "delta"]


def test_the_start_says_what_the_prompt_took_before_a_token_came() -> None:
    (_, start), *_ = split_events(anthropic.encoder(OPENING, REQUEST).start())
    assert start["message"]["usage"] == {
        "input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 40,
        "output_tokens": 0,
    }


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(100, 40, 7), (60, 40, 7)),
        (Usage(100, 100, 1), (0, 100, 1)),
        (Usage(100, 101, 1), (0, 101, 1)),  # a backend that counts one token twice
        (Usage(), (0, 0, 0)),
    ],
)
def test_cached_tokens_are_not_input_tokens_too(usage: Usage, expected: tuple[int, int, int]) -> None:
    got = read_whole(stream_of([TextDelta("a"), End("end_turn", usage)]))["usage"]
    assert (got["input_tokens"], got["cache_read_input_tokens"], got["output_tokens"]) == expected


@pytest.mark.parametrize(
    ("reason", "sequence", "calls", "expected"),
    [
        ("end_turn", None, False, ("end_turn", None)),
        ("max_tokens", None, False, ("max_tokens", None)),
        ("max_tokens", None, True, ("max_tokens", None)),
        ("stop_sequence", "END", False, ("stop_sequence", "END")),
        ("tool_use", None, True, ("tool_use", None)),
        ("refusal", None, False, ("refusal", None)),
        ("context_full", None, False, ("model_context_window_exceeded", None)),
        ("end_turn", None, True, ("tool_use", None)),  # else the client never runs the tool
        ("stop_sequence", "END", True, ("tool_use", None)),
        ("tool_use", None, False, ("end_turn", None)),
    ],
)
def test_stop_reasons(
    reason: StopReason, sequence: str | None, calls: bool, expected: tuple[str, str | None]
) -> None:
    chunks = [TextDelta("a"), *(call("Bash", "{}") if calls else []), End(reason, Usage(1, 0, 1), sequence)]
    message = read_whole(stream_of(chunks))
    assert (message["stop_reason"], message["stop_sequence"]) == expected


def test_an_answer_without_content_has_no_block() -> None:
    stream = stream_of([Progress(10, 0, 10), DONE])
    assert names(stream) == ["message_start", "message_delta", "message_stop"]
    assert read_whole(stream)["content"] == []


def test_parallel_calls_have_a_block_each() -> None:
    message = read_whole(stream_of([*call("A", '{"a":1}'), *call("B", '{"b":', "2}"), DONE]))
    assert [block["input"] for block in message["content"]] == [{"a": 1}, {"b": 2}]


def test_reasoning_call_and_text_each_get_their_own_kind_of_block() -> None:
    message = read_whole(stream_of([ThinkingDelta("why"), *call("A", "{}"), TextDelta("done"), DONE]))
    assert [block["type"] for block in message["content"]] == ["thinking", "tool_use", "text"]


def test_arguments_arrive_as_the_model_wrote_them_wherever_they_are_cut() -> None:
    arguments = json.dumps(
        {"command": 'grep -n "a\\"b" ä渐😀 | sort \n | uniq -c "' * 20}, ensure_ascii=False
    )
    for size in (1, 2, 3, 7, 64):
        pieces = [arguments[i : i + size] for i in range(0, len(arguments), size)]
        stream = stream_of([*call("Bash", *pieces), DONE])
        sent = [d["delta"]["partial_json"] for n, d in split_events(stream) if n == "content_block_delta"]
        assert sent == pieces
        assert read_whole(stream)["content"][0]["input"] == json.loads(arguments)


def test_line_breaks_of_any_kind_stay_inside_the_json() -> None:
    text = "a\n\nb\r\nc\x0bd\x0ce\x1cf\x85g\u2028h\u2029i"
    message = read_whole(stream_of([TextDelta(text), *call("x\u2028y", "{}"), DONE]))
    assert message["content"][0]["text"] == text
    assert message["content"][1]["name"] == "x\u2028y"


def test_a_ping_may_stand_anywhere() -> None:
    encoder = anthropic.encoder(OPENING, REQUEST)
    stream = encoder.ping() + encoder.start() + encoder.ping() + encoder.feed(TextDelta("a")) + encoder.ping()
    message = read_whole(stream + encoder.end(DONE, ENDING) + encoder.ping())
    assert message["content"] == [{"type": "text", "text": "a"}]


def test_a_failure_is_an_error_event_and_no_clean_end() -> None:
    encoder = anthropic.encoder(OPENING, REQUEST)
    reader = StrictReader()
    reader.read(encoder.start() + encoder.feed(TextDelta("a\u2028")))
    with pytest.raises(StreamError) as raised:
        reader.read(encoder.error(503, "stopping", "going down\u2028now"))
    assert raised.value.args == ("api_error", "going down\u2028now", "req_01J")
    assert reader.state == "started"


def test_hidden_thinking_is_carried_by_its_signature() -> None:
    chunks = [ThinkingDelta("Hm ä"), ThinkingDelta("😀"), TextDelta("Yes"), ThinkingDelta("more"), DONE]
    stream = stream_of(chunks, HIDDEN)
    assert "thinking_delta" not in stream.decode()
    content = read_whole(stream)["content"]
    assert [block["type"] for block in content] == ["thinking", "text", "thinking"]
    assert sent_back(content) == (Thinking("Hm ä😀"), Text("Yes"), Thinking("more"))


class TestVerbatim:
    EVENTS = (
        Verbatim("message_start", b'{"type":"message_start","message":{"id":"msg_up"}}'),
        Verbatim("ping", b'{"type": "ping"}'),
        Verbatim("message_stop", b'{"type":"message_stop"}'),
    )
    EXPECTED = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_up"}}\n\n'
        b'event: ping\ndata: {"type": "ping"}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )

    def test_events_pass_as_they_came_and_nothing_else_does(self) -> None:
        encoder = anthropic.encoder(OPENING, REQUEST)
        first, second, third = self.EVENTS
        stream = encoder.feed(Progress(1, 0, 1)) + encoder.feed(first)
        stream += encoder.feed(TextDelta("a")) + encoder.feed(second) + encoder.feed(ToolStart("t", "n"))
        stream += encoder.end(third, ENDING) + encoder.end(DONE, ENDING)
        assert stream == self.EXPECTED

    def test_after_our_own_start_events_are_not_passed(self) -> None:
        stream = stream_of([self.EVENTS[0], TextDelta("a"), *self.EVENTS[1:], DONE])
        assert read_whole(stream)["id"] == "msg_01J"

    def test_it_can_still_fail(self) -> None:
        encoder = anthropic.encoder(OPENING, REQUEST)
        with pytest.raises(StreamError):
            StrictReader().read(encoder.error(502, "backend_failed", "gone"))


@given(answers)
def test_any_answer_makes_a_stream_that_a_strict_client_accepts(chunks: list[Chunk]) -> None:
    content = read_whole(stream_of(chunks))["content"]
    assert loosely(sent_back(content)) == loosely(parts_in(chunks))


@given(answers)
def test_any_answer_survives_hidden_thinking(chunks: list[Chunk]) -> None:
    content = read_whole(stream_of(chunks, HIDDEN))["content"]
    assert loosely(sent_back(content)) == loosely(parts_in(chunks))


@given(chaos)
def test_chunks_in_any_order_still_make_a_stream(chunks: list[Chunk]) -> None:
    content = read_whole(stream_of([*chunks, DONE]), parse_arguments=False)["content"]
    for kind, delta in (("text", TextDelta), ("thinking", ThinkingDelta)):
        told = "".join(block[kind] for block in content if block["type"] == kind)
        assert told == "".join(chunk.text for chunk in chunks if isinstance(chunk, delta))


@given(answers)
def test_streamed_or_whole_it_is_the_same_answer(chunks: list[Chunk]) -> None:
    for request in (REQUEST, HIDDEN):
        whole = anthropic.whole(OPENING, request, chunks, ENDING)
        assert msgspec.json.decode(whole) == read_whole(stream_of(chunks, request))


def test_the_request_decides_on_hiding() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"a"}],"thinking":{"type":"adaptive"%s}}'
    shown = anthropic.parse(body % b"")
    hidden = anthropic.parse(body % b',"display":"omitted"')
    assert [_thinking_of(request) for request in (shown, hidden)] == ["why", ""]


def _thinking_of(request: ChatRequest) -> str:
    return str(read_whole(stream_of([ThinkingDelta("why"), DONE], request))["content"][0]["thinking"])
