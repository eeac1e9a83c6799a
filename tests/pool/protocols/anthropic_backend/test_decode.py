"""What an Anthropic backend's stream is read as, however its bytes are cut."""

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.pool.chunk import (
    Chunk,
    End,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCalls,
    ToolDelta,
    ToolEnd,
    ToolStart,
    Usage,
    Verbatim,
)
from herdr.pool.failures import ModelError
from herdr.pool.protocols.anthropic_backend.decode import MessagesDecoder
from herdr.pool.protocols.stream_reader import HELD_MAX

Event = dict[str, Any]
USAGE = {
    "input_tokens": 7,
    "cache_read_input_tokens": 20,
    "cache_creation_input_tokens": 3,
    "output_tokens": 1,
}
START: Event = {"type": "message_start", "message": {"id": "msg_1", "model": "claude", "usage": USAGE}}
STOP: Event = {"type": "message_stop"}
PING: Event = {"type": "ping"}
PROGRESS = Progress(30, 20, 30)


def block(index: int, type_: str, **fields: Any) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type_, **fields}}


def call(index: int, id_: str, name: str = "look", **fields: Any) -> Event:
    return block(index, "tool_use", id=id_, name=name, **{"input": {}, **fields})


def delta(index: int, type_: str, **fields: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type_, **fields}}


def text(index: int, piece: str) -> Event:
    return delta(index, "text_delta", text=piece)


def arguments(index: int, piece: str) -> Event:
    return delta(index, "input_json_delta", partial_json=piece)


def close(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: str | None, sequence: str | None = None, **usage: Any) -> Event:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": sequence},
        "usage": {"output_tokens": 9, **usage},
    }


def sse(events: Iterable[Event]) -> bytes:
    return b"".join(
        f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False)}\n\n".encode() for e in events
    )


def read(
    pieces: Sequence[bytes], *, verbatim: bool = False, tool_calls: ToolCalls = "buffer"
) -> tuple[list[Chunk], tuple[str, str] | None]:
    """Return the chunks, and how it failed."""
    decoder = MessagesDecoder(verbatim=verbatim, tool_calls=tool_calls)
    chunks: list[Chunk] = []
    try:
        for piece in pieces:
            chunks += decoder.feed(piece)
        chunks += decoder.finish()
    except ModelError as error:
        return chunks, (error.code, error.detail)
    assert decoder.ended
    return chunks, None


def chunks_of(*events: Event, tool_calls: ToolCalls = "buffer") -> list[Chunk]:
    chunks, failure = read([sse(events)], tool_calls=tool_calls)
    assert failure is None, failure
    return chunks


def failure_of(*events: Event | bytes, **options: Any) -> tuple[str, str]:
    data = b"".join(event if isinstance(event, bytes) else sse([event]) for event in events)
    _, failure = read([data], **options)
    assert failure is not None
    return failure


ANSWER = [
    START,
    PING,
    block(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Let me see: 渐"),
    delta(0, "signature_delta", signature="c2ln"),
    close(0),
    block(1, "text", text=""),
    text(1, "I look 🙂.\n"),
    PING,
    close(1),
    call(2, "toolu_1"),
    arguments(2, ""),
    arguments(2, '{"path":"a \\"b\\" | 渐'),
    arguments(2, '"}'),
    close(2),
    call(3, "toolu_2", "now"),
    close(3),
    stopped("tool_use"),
    STOP,
]
CHUNKS = [
    PROGRESS,
    ThinkingDelta("Let me see: 渐"),
    TextDelta("I look 🙂.\n"),
    ToolStart("toolu_1", "look"),
    ToolDelta('{"path":"a \\"b\\" | 渐"}'),
    ToolEnd(),
    ToolStart("toolu_2", "now"),
    ToolEnd(),
    End("tool_use", Usage(30, 20, 9)),
]


def test_a_whole_answer() -> None:
    assert chunks_of(*ANSWER) == CHUNKS


def test_calls_can_be_passed_on_in_pieces() -> None:
    pieces = [ToolDelta('{"path":"a \\"b\\" | 渐'), ToolDelta('"}')]
    assert chunks_of(*ANSWER, tool_calls="stream") == [*CHUNKS[:4], *pieces, *CHUNKS[5:]]


@pytest.mark.parametrize("verbatim", [False, True])
@pytest.mark.parametrize("tool_calls", ["buffer", "stream"])
def test_every_split_gives_the_same(verbatim: bool, tool_calls: ToolCalls) -> None:
    data = sse(ANSWER)
    whole = read([data], verbatim=verbatim, tool_calls=tool_calls)
    assert whole[1] is None
    single = [data[n : n + 1] for n in range(len(data))]
    assert read(single, verbatim=verbatim, tool_calls=tool_calls) == whole
    for at in range(len(data)):
        assert read([data[:at], data[at:]], verbatim=verbatim, tool_calls=tool_calls) == whole


@given(st.lists(st.integers(0, 2000), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_random_splits_and_line_ends_give_the_same(cuts: list[int], line_end: str) -> None:
    data = sse(ANSWER).replace(b"\n", line_end.encode())
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    assert read(pieces) == (CHUNKS, None)


def test_verbatim_events_come_directly_before_their_chunks() -> None:
    odd = {"type": "new_event", "index": "x"}
    events = [
        START,
        PING,
        odd,
        block(0, "web_search_tool_result", id=5),
        block(1, "text", text=""),
        text(1, "a"),
        STOP,
    ]
    chunks, failure = read([sse(events)], verbatim=True)
    assert failure is None
    whole = [Verbatim(e["type"], json.dumps(e).encode()) for e in events if e is not PING]
    assert chunks == [
        *(whole[0], PROGRESS),
        *whole[1:4],
        *(whole[4], TextDelta("a")),
        *(whole[5], End("end_turn", Usage(30, 20, 1))),
    ]


def test_verbatim_data_is_one_line_of_the_backends_own_bytes() -> None:
    data = b'event: message_start\ndata: {"type" :"message_start",\ndata:  "x": 1.50 }\n\n'
    chunks, _ = read([data], verbatim=True)
    assert chunks == [Verbatim("message_start", b'{"type" :"message_start",  "x": 1.50 }')]


def test_events_without_a_name_have_their_type() -> None:
    data = sse(ANSWER).replace(b"event: ", b"x: ")
    assert read([data]) == (CHUNKS, None)
    chunks, _ = read([data], verbatim=True)
    assert next(c.event for c in chunks if isinstance(c, Verbatim)) == "message_start"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("stop_sequence", "stop_sequence"),
        ("tool_use", "tool_use"),
        ("refusal", "refusal"),
        ("pause_turn", "end_turn"),
        ("model_context_window_exceeded", "context_full"),
        ("something_new", "end_turn"),
        (None, "end_turn"),
    ],
)
def test_stop_reasons(reason: str | None, expected: str) -> None:
    end = chunks_of(START, stopped(reason, "END"), STOP)[-1]
    assert isinstance(end, End)
    assert (end.stop_reason, end.stop_sequence) == (expected, "END")


def test_a_stop_reason_is_not_forgotten() -> None:
    end = chunks_of(START, stopped("max_tokens"), stopped(None, output_tokens=11), STOP)[-1]
    assert end == End("max_tokens", Usage(30, 20, 11))


def test_calls_win_over_a_wrong_end_turn() -> None:
    end = chunks_of(START, call(0, "a"), close(0), stopped("end_turn"), STOP)[-1]
    assert isinstance(end, End)
    assert end.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ({}, Usage(30, 20, 9)),
        ({"input_tokens": 0, "cache_read_input_tokens": 0}, Usage(30, 20, 9)),
        ({"input_tokens": None, "cache_read_input_tokens": None}, Usage(30, 20, 9)),
        (
            {"input_tokens": 30, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
            Usage(30, 0, 9),
        ),
        ({"input_tokens": 8}, Usage(31, 20, 9)),
        ({"output_tokens_details": {"thinking_tokens": 4}}, Usage(30, 20, 9, 4)),
        ({"output_tokens": None}, Usage(30, 20, 1)),
    ],
)
def test_later_counts_replace_earlier_ones_where_they_say_something(later: Event, expected: Usage) -> None:
    end = chunks_of(START, stopped("end_turn", **later), STOP)[-1]
    assert isinstance(end, End)
    assert end.usage == expected


def test_without_counts_there_is_no_progress() -> None:
    assert chunks_of({"type": "message_start", "message": {}}, STOP) == [End("end_turn", Usage())]
    assert chunks_of({"type": "message_start"}, STOP) == [End("end_turn", Usage())]


def test_blocks_that_start_filled() -> None:
    events = [
        START,
        block(0, "text", text="a"),
        close(0),
        block(1, "thinking", thinking="b"),
        close(1),
        call(2, "id", input={"x": 1.5}),
        close(2),
        STOP,
    ]
    for mode in ("buffer", "stream"):
        assert chunks_of(*events, tool_calls=mode) == [
            PROGRESS,
            TextDelta("a"),
            ThinkingDelta("b"),
            ToolStart("id", "look"),
            ToolDelta('{"x": 1.5}'),
            ToolEnd(),
            End("tool_use", Usage(30, 20, 1)),
        ]


def test_blocks_that_nobody_knows_are_left_out() -> None:
    events = [
        START,
        block(0, "server_tool_use", id="srv", name="web_search", input={}),
        arguments(0, '{"q":1}'),
        close(0),
        block(1, "redacted_thinking", data="xxxx"),
        close(1),
        delta(2, "citations_delta", citation={}, text="no", thinking="no"),
        delta(2, "text_delta", text=""),
        delta(2, "thinking_delta", thinking=""),
        delta(2, "new_delta", text=5),
        STOP,
    ]
    assert chunks_of(*events) == [PROGRESS, End("end_turn", Usage(30, 20, 1))]


ALL_CLOSED_AT_THE_END = [
    START,
    block(0, "text", text=""),
    text(0, "a"),
    call(1, "one"),
    arguments(1, '{"a":1}'),
    call(2, "two"),
    arguments(2, '{"b":2}'),
    close(0),
    close(1),
    close(2),
    stopped("tool_use"),
    STOP,
]


@pytest.mark.parametrize("tool_calls", ["buffer", "stream"])
def test_blocks_that_are_all_closed_at_the_end(tool_calls: ToolCalls) -> None:
    assert chunks_of(*ALL_CLOSED_AT_THE_END, tool_calls=tool_calls) == [
        PROGRESS,
        TextDelta("a"),
        *(ToolStart("one", "look"), ToolDelta('{"a":1}'), ToolEnd()),
        *(ToolStart("two", "look"), ToolDelta('{"b":2}'), ToolEnd()),
        End("tool_use", Usage(30, 20, 9)),
    ]


def test_calls_that_interleave_or_never_close() -> None:
    events = [
        *(START, call(0, "one"), arguments(0, '{"a"'), call(1, "two"), arguments(1, '{"b":'), text(2, "x")),
        *(arguments(0, ":1}"), arguments(1, "2}"), stopped("tool_use"), STOP),
    ]
    assert chunks_of(*events) == [
        PROGRESS,
        TextDelta("x"),
        *(ToolStart("one", "look"), ToolDelta('{"a":1}'), ToolEnd()),
        *(ToolStart("two", "look"), ToolDelta('{"b":2}'), ToolEnd()),
        End("tool_use", Usage(30, 20, 9)),
    ]


def test_a_call_in_pieces_ends_before_anything_else() -> None:
    events = [START, call(0, "one"), arguments(0, "{}"), text(1, "x"), close(0), stopped("tool_use"), STOP]
    assert chunks_of(*events, tool_calls="stream") == [
        PROGRESS,
        *(ToolStart("one", "look"), ToolDelta("{}"), ToolEnd()),
        TextDelta("x"),
        End("tool_use", Usage(30, 20, 9)),
    ]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_call_that_was_cut_off_is_left_out(reason: str) -> None:
    chunks = chunks_of(START, call(0, "one"), arguments(0, '{"a":'), close(0), stopped(reason), STOP)
    assert [type(chunk) for chunk in chunks] == [Progress, End]


def test_broken_arguments_are_a_failure_but_not_for_a_client_that_sees_them_as_they_are() -> None:
    events = [START, call(0, "one"), arguments(0, '{"a":'), close(0), stopped("tool_use"), STOP]
    code, detail = failure_of(*events)
    assert code == "backend_failed"
    assert "'look'" in detail
    chunks, failure = read([sse(events)], verbatim=True)
    assert failure is None
    assert isinstance(chunks[-1], End)


def test_arguments_are_bounded() -> None:
    piece = "x" * (HELD_MAX // 2)
    too_many = (call(0, "one", input={"x": 1}), arguments(0, piece), arguments(0, piece))
    code, detail = failure_of(START, *too_many)
    assert code == "backend_failed"
    assert f"more than {HELD_MAX} characters" in detail
    enough = (call(0, "one"), *too_many[1:], stopped("max_tokens"), STOP)
    assert isinstance(chunks_of(START, *enough)[-1], End)


@pytest.mark.parametrize("at", range(len(ANSWER)))
def test_a_stream_that_ends_early_is_a_failure(at: int) -> None:
    chunks, failure = read([sse(ANSWER[:at])])
    assert chunks == CHUNKS[: len(chunks)]
    assert failure is not None
    assert failure[0] == "backend_failed"
    assert ("before its answer" if at == 0 else "in the middle") in failure[1]


@pytest.mark.parametrize("begun", [b"", b":", b"event: message_st", b"event: message_start\ndata: {"])
def test_half_of_the_first_event_is_still_a_stream(begun: bytes) -> None:
    assert read([begun]) == (
        [],
        ("backend_failed", "the backend closed the connection before its answer began"),
    )


@pytest.mark.parametrize("size", [1, 5000])
def test_an_error_that_is_no_stream_is_told(size: int) -> None:
    body = b'\n{"type":"error","error":{"type":"overloaded_error","message":"come later"}}'
    assert read([body])[1] == read([body[n : n + size] for n in range(0, len(body), size)])[1]
    failure = read([body])[1]
    assert failure is not None
    assert failure[0] == "overloaded"
    assert "come later" in failure[1]


def test_half_an_event_at_the_end_is_a_failure() -> None:
    assert read([sse(ANSWER)[:-1]])[1] is not None


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded", "Overloaded"),
        ({"type": "rate_limit_error", "message": "slow down"}, "rate_limited", "slow down"),
        ({"type": "api_error", "message": "oh"}, "backend_failed", "oh"),
        ("plain words", "backend_failed", "plain words"),
        (None, "backend_failed", "null"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_an_error_event_is_a_failure(error: object, code: str, words: str, named: bool) -> None:
    data = sse([{"type": "error", "error": error}])
    failure = failure_of(START, text(0, "a"), data if named else data.replace(b"event: error\n", b""))
    assert failure[0] == code
    assert words in failure[1]


def test_other_forms_of_an_error_event() -> None:
    unnamed = b'data: {"error":{"code":500,"message":"oh dear","type":"server_error"}}\n\n'
    assert "oh dear" in failure_of(START, unnamed)[1]
    assert "oh dear" in failure_of(START, b'data: {"type":"error","message":"oh dear"}\n\n')[1]
    assert "oh dear" in failure_of(START, b"event: error\ndata: oh dear\n\n")[1]


@pytest.mark.parametrize("verbatim", [False, True])
def test_what_came_before_an_error_is_kept_at_every_split(verbatim: bool) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
    data = sse([START, text(0, "a"), error, STOP])
    whole = read([data], verbatim=verbatim)
    assert whole[0][-1] == TextDelta("a")
    assert whole[1] is not None
    for at in range(len(data)):
        assert read([data[:at], data[at:]], verbatim=verbatim) == whole
    decoder = MessagesDecoder(verbatim=verbatim)
    assert decoder.feed(data) == whole[0]
    for _ in range(2):
        with pytest.raises(ModelError, match="overloaded"):
            decoder.feed(sse([STOP]))


@pytest.mark.parametrize(
    "event",
    [
        b"event: message_stop\ndata: {\n\n",
        b"data: nonsense\n\n",
        b'data: {"type":"content_block_delta","index":"x","delta":{"type":"text_delta","text":"a"}}\n\n',
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}\n\n',
        b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":5}}\n\n',
        b'data: {"type":"message_delta","usage":{"output_tokens":"many"}}\n\n',
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\xe6\xb8"}}\n\n',
        b'data: {"type":"new","x":' + b"[" * 5000 + b"\n\n",
    ],
)
@pytest.mark.parametrize("verbatim", [False, True])
def test_what_cannot_be_read_is_a_failure(event: bytes, verbatim: bool) -> None:
    code, detail = failure_of(START, event, verbatim=verbatim)
    assert code == "backend_failed"
    assert "cannot be read" in detail


def test_unknown_events_that_are_not_utf_8_do_not_reach_the_client() -> None:
    event = b'event: new\ndata: {"type":"new","x":"\xe6\xb8"}\n\n'
    assert "UTF-8" in failure_of(START, event, verbatim=True)[1]


@pytest.mark.parametrize(
    "event", [b'{"type":7}', b'{"type":"new","delta":"x"}', b'{"type":"new","message":"x"}']
)
def test_unknown_events_of_any_shape_are_left_out(event: bytes) -> None:
    chunks, failure = read([sse([START]) + b"data: " + event + b"\n\n" + sse([STOP])])
    assert failure is None
    assert [type(chunk) for chunk in chunks] == [Progress, End]


@pytest.mark.parametrize("event", [ev for ev in ANSWER if ev not in (START, PING)])
def test_nothing_comes_before_message_start(event: Event) -> None:
    assert "before message_start" in failure_of(event)[1]


def test_a_call_without_an_id_or_a_name_is_a_failure() -> None:
    for broken in (call(0, ""), call(0, "a", "")):
        assert "without an id or a name" in failure_of(START, broken)[1]


def test_nothing_is_read_after_the_end() -> None:
    data = sse([*ANSWER, text(1, "late")]) + b"data: [DONE]\n\n"
    assert read([data, b"data: nonsense\n\n"]) == (CHUNKS, None)


names = st.sampled_from(["text", "thinking", "call", "add", "close"])


@given(st.lists(st.tuples(names, st.integers(0, 3)), max_size=20), st.sampled_from(["buffer", "stream"]))
def test_calls_are_never_interrupted(steps: list[tuple[str, int]], tool_calls: ToolCalls) -> None:
    made = {
        "text": lambda n: text(n, "t"),
        "thinking": lambda n: delta(n, "thinking_delta", thinking="h"),
        "call": lambda n: call(n, f"id{n}"),
        "add": lambda n: arguments(n, "{}"),
        "close": close,
    }
    events = [START, *(made[name](n) for name, n in steps), stopped("max_tokens"), STOP]
    chunks = chunks_of(*events, tool_calls=tool_calls)
    inside = False
    for chunk in chunks:
        if isinstance(chunk, ToolStart):
            assert not inside
            inside = True
        elif isinstance(chunk, ToolDelta):
            assert inside
        elif isinstance(chunk, ToolEnd):
            assert inside
            inside = False
        else:
            assert not inside
    assert not inside
    assert isinstance(chunks[-1], End)
