"""Bug rows in names and comments: public reports of gateways that got the same thing wrong."""

from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdr.pool.chunk import (
    Chunk,
    End,
    Progress,
    TextDelta,
    ThinkingDelta,
    Timings,
    ToolDelta,
    ToolEnd,
    ToolStart,
    Usage,
)
from herdr.pool.failures import ModelError
from herdr.pool.protocols.backend.decode import ChatDecoder

STREAMS = Path(__file__).parent / "streams"


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"call_{next(numbers)}"


def decoder(**given: Any) -> ChatDecoder:
    settings: dict[str, Any] = {
        "stop": (),
        "tool_calls": "buffer",
        "recover": False,
        "tool_names": frozenset(),
        "prompt_estimate": 7,
        "context": None,
        "new_id": ids(),
    }
    return ChatDecoder(**{**settings, **given})


def read(pieces: list[bytes], **given: Any) -> tuple[list[Chunk], str | None]:
    """Return the chunks, and the failure that came after them."""
    reader, out = decoder(**given), []
    try:
        for piece in pieces:
            out += reader.feed(piece)
        out += reader.finish()
    except ModelError as error:
        return out, f"{error.code}: {error.detail}"
    return out, None


def sse(*deltas: Any, finish: str | None = "stop", done: bool = True) -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return raw(*chunks) + (b"data: [DONE]\n\n" if done else b"")


def raw(*objects: Any) -> bytes:
    return b"".join([b"data: %s\n\n" % msgspec.json.encode(o) for o in objects])


def tool(
    index: int | None, arguments: Any = None, name: str | None = None, id: str | None = None
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": id, "function": function}]}


def one(stream: bytes, **given: Any) -> list[Chunk]:
    """Read a stream whole, split in two at every byte, and byte by byte: all must be equal."""
    out, failure = read([stream], **given)
    assert failure is None, failure
    assert read([stream[i : i + 1] for i in range(len(stream))], **given) == (out, None)
    for at in range(len(stream)):
        assert read([stream[:at], stream[at:]], **given) == (out, None), at
    return out


def failed(stream: bytes, **given: Any) -> tuple[list[Chunk], str]:
    out, failure = read([stream], **given)
    assert failure is not None
    assert read([stream[i : i + 1] for i in range(len(stream))], **given) == (out, failure)
    return out, failure


def calls(chunks: list[Chunk]) -> list[tuple[str, str, str]]:
    """Return the calls, and check that nothing stands inside one that does not belong there."""
    found: list[tuple[str, str, str]] = []
    open_ = False
    for chunk in chunks:
        if isinstance(chunk, ToolStart):
            assert not open_
            open_ = True
            found.append((chunk.id, chunk.name, ""))
        elif isinstance(chunk, ToolDelta):
            assert open_ and chunk.text
            found[-1] = (*found[-1][:2], found[-1][2] + chunk.text)
        elif isinstance(chunk, ToolEnd):
            assert open_
            open_ = False
        else:
            assert not open_, chunk
    assert not open_
    return found


def text(chunks: list[Chunk]) -> str:
    return "".join([c.text for c in chunks if isinstance(c, TextDelta)])


def thinking(chunks: list[Chunk]) -> str:
    return "".join([c.text for c in chunks if isinstance(c, ThinkingDelta)])


def end(chunks: list[Chunk]) -> End:
    assert [isinstance(c, End) for c in chunks].index(True) == len(chunks) - 1
    last = chunks[-1]
    assert isinstance(last, End)
    return last


def test_llamacpp_text() -> None:
    assert one((STREAMS / "llamacpp_text.sse").read_bytes()) == [
        Progress(32, 0, 0),
        Progress(32, 0, 32),
        TextDelta("I"),
        TextDelta("'m"),
        TextDelta(" 渐🙂"),
        End("max_tokens", Usage(32, 0, 4), None, Timings(77.919, 18.497)),
    ]


@pytest.mark.parametrize("mode", ["buffer", "stream"])
def test_llamacpp_tool_call(mode: str) -> None:
    chunks = one((STREAMS / "llamacpp_tool.sse").read_bytes(), tool_calls=mode)
    assert thinking(chunks) == "The user asks"
    assert calls(chunks) == [("tR1xQ", "get_weather", '{"city":"Zürich"}')]
    assert sum(isinstance(c, ToolDelta) for c in chunks) == (1 if mode == "buffer" else 4)
    assert end(chunks) == End("tool_use", Usage(600, 590, 21), None, Timings(77.919, 18.497))


@pytest.mark.parametrize("mode", ["buffer", "stream"])
def test_interleaved_parallel_calls_come_one_after_the_other(mode: str) -> None:  # row 1
    chunks = one((STREAMS / "parallel.sse").read_bytes(), tool_calls=mode)
    assert calls(chunks) == [("a", "read", '{"p":1}'), ("b", "grep", '{"q":"x"}')]
    assert text(chunks) == "done"
    assert end(chunks).stop_reason == "tool_use"


def test_a_stop_sequence_ends_the_answer_and_says_which() -> None:
    chunks = one((STREAMS / "llamacpp_stop.sse").read_bytes(), stop=("STOP", "END"))
    assert chunks[1:] == [
        TextDelta("one "),
        End("stop_sequence", Usage(32, 31, 3), "END", Timings(77.919, 18.497)),
    ]
    reader = decoder(stop=("END",))
    reader.feed((STREAMS / "llamacpp_stop.sse").read_bytes())
    assert reader.ended
    assert reader.feed(b"data: what comes later is not read\n\n") == reader.finish() == []


def test_a_stop_sequence_held_to_the_end_is_text() -> None:
    chunks = one(sse({"content": "a E"}, {"content": "N"}), stop=("END",))
    assert (text(chunks), end(chunks).stop_reason) == ("a EN", "end_turn")


def test_reasoning_is_no_place_for_stop_sequences() -> None:
    chunks = one(sse({"reasoning_content": "END"}, {"content": "x"}), stop=("END",))
    assert (thinking(chunks), text(chunks), end(chunks).stop_reason) == ("END", "x", "end_turn")


@pytest.mark.parametrize("mode", ["buffer", "stream"])
def test_reasoning_then_call_then_text(mode: str) -> None:  # row 4
    stream = sse(
        {"reasoning": "hm"},
        tool(0, "", "f", "a"),
        {"content": "so"},
        tool(0, '{"x":'),
        {"reasoning": "!"},
        tool(0, "1}"),
        finish="tool_calls",
    )
    chunks = one(stream, tool_calls=mode)
    assert [type(c) for c in chunks if not isinstance(c, ToolDelta)] == [
        *(ThinkingDelta, ToolStart, ToolEnd, TextDelta, ThinkingDelta, End)
    ]
    assert calls(chunks) == [("a", "f", '{"x":1}')]


@given(st.lists(st.integers(0, 70), max_size=6), st.sampled_from(["buffer", "stream"]))
@settings(max_examples=60)
def test_arguments_arrive_as_the_model_wrote_them(cuts: list[int], mode: str) -> None:  # rows 6 and 11
    arguments = msgspec.json.encode({"command": 'echo "a | b" \\\n && 渐🙂 > "x\\"y"'}).decode()
    at = [0, *sorted(min(cut, len(arguments)) for cut in cuts), len(arguments)]
    fragments = [tool(0, arguments[a:b]) for a, b in pairwise(at)]
    chunks, failure = read([sse(tool(0, "", "Bash", "a"), *fragments, finish="tool_calls")], tool_calls=mode)
    assert failure is None
    assert calls(chunks) == [("a", "Bash", arguments)]


def test_every_split_of_utf8_in_text_and_arguments() -> None:  # row 11
    chunks = one(sse({"content": "渐🙂"}, tool(0, '{"渐":"🙂"}', "f", "a"), finish="tool_calls"))
    assert (text(chunks), calls(chunks)) == ("渐🙂", [("a", "f", '{"渐":"🙂"}')])


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b": ping\n\n",
        sse({"role": "assistant", "content": None}, finish=None, done=False),
        b"data: [DONE]\n\n",
        b"data: {",
    ],
)
def test_a_stream_that_never_began_is_a_failure(stream: bytes) -> None:  # row 9
    out, failure = failed(stream)
    assert out == []
    assert failure in (
        "backend_failed: the backend closed the connection before its answer began",
        "backend_failed: the backend ended its answer before it began",
    )


def test_a_stream_that_breaks_off_is_never_a_clean_end() -> None:
    stream = sse({"content": "Hel"}, {"content": "lo"}, finish=None, done=False)
    assert failed(stream) == (
        [TextDelta("Hel"), TextDelta("lo")],
        "backend_failed: the backend broke off in the middle of its answer",
    )
    whole = sse({"content": "Hello"})
    for at in range(whole.index(b'"stop"')):
        assert read([whole[:at]])[1] is not None, at


def test_a_finish_reason_without_done_is_an_end() -> None:
    assert end(one(sse({"content": "x"}, done=False))).stop_reason == "end_turn"


def test_done_without_a_finish_reason_is_an_end_too() -> None:
    assert end(one(sse({"content": "x"}, finish=None))).stop_reason == "end_turn"


def test_text_and_reasoning_both_arrive() -> None:  # rows 10 and 13
    chunks = one(sse({"reasoning_content": "a", "content": "b"}, {"content": "c", "tool_calls": []}))
    assert chunks[:-1] == [ThinkingDelta("a"), TextDelta("b"), TextDelta("c")]


def test_empty_pieces_are_no_chunks() -> None:  # row 35
    nothing = {"content": "", "reasoning_content": "", "tool_calls": None}
    assert one(sse({"role": "assistant", "content": ""}, nothing, {"content": []}))[:-1] == []


def test_content_as_a_list() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
        {"type": "reference", "reference_ids": [1]},
    ]
    assert one(sse({"content": parts}))[:-1] == [ThinkingDelta("hm"), TextDelta("yes")]


@pytest.mark.parametrize(
    ("finish", "context", "reason"),
    [
        ("stop", None, "end_turn"),
        ("length", None, "max_tokens"),
        ("length", 31, "max_tokens"),
        ("length", 30, "context_full"),
        ("stop", 30, "end_turn"),
        ("content_filter", None, "refusal"),
        ("tool_calls", None, "end_turn"),
        ("eos", None, "end_turn"),
    ],
)
def test_finish_reasons(finish: str, context: int | None, reason: str) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10}}
    stream = sse({"content": "x"}, finish=finish, done=False) + raw(usage) + b"data: [DONE]\n\n"
    assert end(one(stream, context=context)) == End(reason, Usage(20, 0, 10))  # type: ignore[arg-type]


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "length"])
def test_a_whole_call_outweighs_the_finish_reason(finish: str) -> None:
    chunks = one(sse({"content": "I look."}, tool(0, "{}", "f", "a"), finish=finish))
    assert end(chunks).stop_reason == "tool_use"


@pytest.mark.parametrize("finish", ["error", "abort"])
def test_a_finish_reason_that_means_failure(finish: str) -> None:
    out, failure = failed(sse({"content": "x"}, finish=finish))
    assert (out, failure) == ([TextDelta("x")], f"backend_failed: the backend gave up its answer: {finish}")


def test_openai_usage_with_details() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    stream = raw({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": None})
    stream += raw({"choices": [], "usage": usage}) + b"data: [DONE]\n\n"
    assert end(one(stream)).usage == Usage(100, 64, 30, 12)


def test_without_any_count_the_estimate_stands() -> None:
    assert end(one(sse({"content": "a"}, {"content": "b"}), prompt_estimate=55)).usage == Usage(55, 0, 2)


def test_progress_counts_when_a_stop_sequence_cuts_the_answer() -> None:
    stream = raw({"prompt_progress": {"total": 40, "cache": 8, "processed": 8}}) + sse({"content": "aXb"})
    assert one(stream, stop=("X",)) == [
        Progress(40, 8, 8),
        TextDelta("a"),
        End("stop_sequence", Usage(40, 8, 1), "X"),
    ]


@pytest.mark.parametrize("mode", ["buffer", "stream"])
def test_ids_are_made_where_a_server_sends_none(mode: str) -> None:
    stream = sse(
        tool(0, "{}", "f"), tool(1, "{}", "g", ""), tool(2, "{}", "h", "same"), tool(3, "{}", "i", "same")
    )
    assert [c[0] for c in calls(one(stream, tool_calls=mode))] == ["call_1", "call_2", "same", "call_3"]


def test_calls_without_an_index_or_all_with_the_same() -> None:
    for index in (None, 0):
        stream = sse(tool(index, '{"a":1}', "f", "x"), tool(index, '{"b":2}', "g", "y"), finish="tool_calls")
        assert calls(one(stream)) == [("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')]
    stream = sse(tool(None, '{"a":', "f", "x"), tool(None, "1}"), tool(None, "{}", "g"), finish="tool_calls")
    assert calls(one(stream)) == [("x", "f", '{"a":1}'), ("call_1", "g", "{}")]


def test_a_name_that_is_repeated_begins_no_new_call() -> None:
    stream = sse(tool(0, '{"a":', "f", "x"), tool(0, "1}", "f", "x"), tool(0, " ", "f"), finish="tool_calls")
    assert next(c[1:] for c in calls(one(stream))) == ("f", '{"a":1}')


def test_arguments_as_an_object() -> None:
    assert calls(one(sse(tool(0, {"a": [1]}, "f", "x")))) == [("x", "f", '{"a":[1]}')]


@pytest.mark.parametrize("mode", ["buffer", "stream"])
def test_no_arguments_are_an_empty_object(mode: str) -> None:
    for arguments in ("", None, " \n"):
        chunks = one(sse(tool(0, arguments, "f", "x"), {"content": "after"}), tool_calls=mode)
        assert calls(chunks) == [("x", "f", "")]
        assert text(chunks) == "after"


@pytest.mark.parametrize("mode", ["buffer", "stream"])
def test_a_call_cut_by_max_tokens_is_dropped(mode: str) -> None:
    stream = sse({"content": "ok"}, tool(0, "{}", "f", "x"), tool(1, '{"a', "g", "y"), finish="length")
    chunks = one(stream, tool_calls=mode)
    whole = [("x", "f", "{}")]
    assert calls(chunks) == (whole if mode == "buffer" else [*whole, ("y", "g", '{"a')])
    assert end(chunks).stop_reason == "max_tokens"


@pytest.mark.parametrize("arguments", ['{"a', "[1]", "nonsense", '{"a":1}}', '{"a":1}{"a":1}', '"x"'])
@pytest.mark.parametrize("mode", ["buffer", "stream"])
def test_a_call_whose_arguments_are_no_object_fails(arguments: str, mode: str) -> None:
    out, failure = failed(sse({"content": "ok"}, tool(0, arguments, "f", "x")), tool_calls=mode)
    assert "f, but its arguments are no JSON object" in failure
    assert not any(isinstance(c, End) for c in out)
    if mode == "buffer":
        assert out == [TextDelta("ok")]


def test_a_call_without_a_name_fails() -> None:
    assert "without a name" in failed(sse(tool(0, "{}", None, "x")))[1]
    assert end(one(sse({"content": "x"}, tool(0)))).stop_reason == "end_turn"  # it said nothing at all


def test_more_arguments_for_a_call_that_is_over_fail() -> None:
    stream = sse(tool(0, "{}", "f", "x"), tool(1, "", "g", "y"), tool(0, " "), tool(0, '{"late":1}'))
    assert failed(stream)[1].endswith('{}{"late":1}')


@pytest.mark.parametrize(
    ("payload", "wording"),
    [
        (b"nonsense", "nonsense"),
        (b"[1,2]", "Expected `object`"),
        (b'{"choices":[{"delta":{"content":7}}]}', "choices"),
        (b'{"choices":{}}', "choices"),
        (b'{"choices":[{"delta":{"content":"\xff"}}]}', "UTF-8"),
        (b'{"choices":[{"delta":{"content":"\xe6\xb8"}}]}', "UTF-8"),
        (b'{"x":' + b"[" * 100_000, "nested too deep"),
        (b'{"choices":[{"delta":{"tool_calls":[{"index":"a"}]}}]}', "tool_calls"),
        (b'{"token":"Bearer abcdefghijkl", "choices": 1}', "Bearer ***"),
    ],
)
def test_what_cannot_be_read_fails_and_is_named(payload: bytes, wording: str) -> None:
    stream = sse({"content": "x"}, finish=None, done=False) + b"data: " + payload + b"\n\n"
    out, failure = read([stream])
    assert out == [TextDelta("x")]
    assert failure is not None and failure.startswith("backend_failed: ") and wording in failure
    assert len(failure) < 400 and "abcdefghijkl" not in failure


@pytest.mark.parametrize(
    ("stream", "code", "wording"),
    [
        (
            raw({"error": {"code": 500, "message": "CUDA out of memory"}}),
            "backend_failed",
            "CUDA out of memory",
        ),
        (b'event: error\ndata: {"message":"boom"}\n\n', "backend_failed", "boom"),
        (b"event: error\ndata: boom\n\n", "backend_failed", "boom"),
        (raw({"error": "boom"}), "backend_failed", "boom"),
        (raw({"object": "error", "message": "boom", "code": 400}), "backend_refused", "boom"),
        (raw({"error": {"code": 503, "message": "full"}}), "overloaded", "full"),
        (raw({"error": {"type": "overloaded_error", "message": "busy"}}), "overloaded", "busy"),
        (raw({"error": {"code": 401, "message": "bad key sk-verysecret1"}}), "backend_failed", "api_key_env"),
        (
            raw(
                {
                    "error": {
                        "type": "exceed_context_size_error",
                        "n_prompt_tokens": 9,
                        "n_ctx": 8,
                        "message": "x",
                    }
                }
            ),
            "prompt_too_long",
            "prompt is too long: 9 tokens > 8 maximum",
        ),
    ],
)
def test_an_error_inside_the_stream(stream: bytes, code: str, wording: str) -> None:  # row 42
    for before in (b"", sse({"content": "x"}, finish=None, done=False)):
        out, failure = failed(before + stream)
        assert len(out) == bool(before)
        assert failure.startswith(code + ": ") and wording in failure and "verysecret" not in failure


@pytest.mark.parametrize(
    ("body", "wording"),
    [
        (
            b'{"error":{"message":"request (9 tokens) exceeds the available context size (8 tokens)"}}',
            "9 tokens > 8",
        ),
        (b'{"error":{"message":"no"}}', "the backend failed (an error event): no"),
        (b"<html><body>Welcome</body></html>", "something else than a stream: (an HTML page)"),
    ],
)
def test_a_body_of_status_200_that_is_no_stream(body: bytes, wording: str) -> None:  # row 42
    out, failure = failed(body)
    assert out == [] and wording in failure


def test_null_errors_and_unknown_fields_are_no_failure() -> None:
    stream = raw({"error": None, "choices": [], "prompt_filter_results": [{}]}, {}) + sse(
        {"content": "x", "foo": 1}
    )
    assert text(one(stream)) == "x"


def test_only_the_first_of_several_answers_counts() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    assert text(one(raw(other) + sse({"content": "yes"}))) == "yes"


def test_a_refusal_is_text_and_a_reason() -> None:
    chunks = one(sse({"refusal": "I will not."}))
    assert (text(chunks), end(chunks).stop_reason) == ("I will not.", "refusal")


TOOLS = frozenset({"read", "grep"})
CALL = '<tool_call>\n{"name": "read", "arguments": {"p": "a</b>"}}\n</tool_call>'


def test_a_call_in_text_is_recovered_behind_the_switch() -> None:
    stream = sse(*[{"content": c} for c in "I look.\n" + CALL])
    chunks = one(stream, recover=True, tool_names=TOOLS)
    assert text(chunks) == "I look.\n"
    assert calls(chunks) == [("call_1", "read", '{"p":"a</b>"}')]
    assert end(chunks).stop_reason == "tool_use"
    assert text(one(stream, tool_names=TOOLS)) == "I look.\n" + CALL


def test_a_call_in_reasoning_counts_only_if_nothing_followed() -> None:
    trapped = one(sse({"reasoning": "hm " + CALL}, {"content": "\n"}), recover=True, tool_names=TOOLS)
    assert (thinking(trapped), calls(trapped)) == ("hm ", [("call_1", "read", '{"p":"a</b>"}')])
    told = one(sse({"reasoning": f"hm {CALL} x"}, {"content": "No."}), recover=True, tool_names=TOOLS)
    assert (thinking(told), text(told), calls(told)) == (f"hm {CALL} x", "No.", [])
    real = one(sse({"reasoning": CALL}, tool(0, "{}", "grep", "a")), recover=True, tool_names=TOOLS)
    assert (thinking(real), calls(real)) == (CALL, [("a", "grep", "{}")])


def test_stop_sequences_and_recovery_together() -> None:
    stream = sse({"content": f"a EN{CALL}b END c"})
    chunks = one(stream, recover=True, tool_names=TOOLS, stop=("END",))
    assert (text(chunks), len(calls(chunks)), end(chunks).stop_reason) == ("a ENb ", 1, "tool_use")
    chunks = one(sse({"content": "a END b"}), recover=True, tool_names=TOOLS, stop=("END",))
    assert (text(chunks), end(chunks).stop_reason) == ("a ", "stop_sequence")


def test_text_held_back_goes_out_before_what_follows_it() -> None:
    stream = sse({"content": "a EN"}, tool(0, "{}", "f", "x"), finish="tool_calls")
    for how in ({"stop": ("END",)}, {"stop": ("END",), "recover": True, "tool_names": TOOLS}):
        chunks = one(stream, **how)
        assert "".join([c.text for c in chunks[:2] if isinstance(c, TextDelta)]) == "a EN"
        assert isinstance(chunks[2], ToolStart)
    met = one(sse({"content": "abc"}, tool(0, "{}", "f", "x")), stop=("abcd", "bc"))
    assert (text(met), calls(met), end(met).stop_sequence) == ("a", [], "bc")


def test_progress_ends_where_the_answer_begins() -> None:
    late = raw({"prompt_progress": {"total": 4, "cache": 0, "processed": 4}})
    chunks = one(late + sse({"content": "a"}, finish=None, done=False) + late + sse({"content": "b"}))
    assert [type(c) for c in chunks] == [Progress, TextDelta, TextDelta, End]


def test_a_stop_sequence_drops_the_call_that_it_cuts() -> None:
    stream = sse(tool(0, '{"a"', "f", "x"), {"content": "aXb"})
    chunks = one(stream, stop=("X",))
    assert (text(chunks), calls(chunks), end(chunks).stop_sequence) == ("a", [], "X")


DELTAS = st.one_of(
    st.builds(lambda s: {"content": s}, st.text(max_size=3)),
    st.builds(lambda s: {"reasoning_content": s}, st.text(max_size=3)),
    st.builds(
        lambda i, n, a: tool(i, a, n, f"id{i}" if n else None),
        st.integers(0, 2),
        st.sampled_from([None, "f"]),
        st.sampled_from(["", "{", '"a":1', "}", "{}"]),
    ),
)


@given(
    st.lists(DELTAS, max_size=12),
    st.sampled_from(["stop", "length", "tool_calls"]),
    st.sampled_from(["buffer", "stream"]),
    st.booleans(),
)
@settings(max_examples=200)
def test_whatever_comes_the_order_holds(deltas: list[Any], finish: str, mode: str, recover: bool) -> None:
    stream = sse(*deltas, finish=finish)
    given: dict[str, Any] = {"tool_calls": mode, "recover": recover, "tool_names": TOOLS}
    out, failure = read([stream], **given)
    assert read([stream[i : i + 1] for i in range(len(stream))], **given) == (out, failure)
    if failure is None:
        end(out)
        made = calls(out)
        said = "".join([d.get("content") or "" for d in deltas])
        assert text(out) == said
        assert thinking(out) == "".join([d.get("reasoning_content") or "" for d in deltas])
        if finish != "length":
            assert all(
                arguments == "" or msgspec.json.decode(arguments) is not None for *_, arguments in made
            )


def test_one_event_may_be_16_mib_and_no_more() -> None:
    big = sse({"content": "x" * (15 * 1024 * 1024)})
    assert len(text(read([big])[0])) == 15 * 1024 * 1024
    out, failure = read([sse({"content": "x" * (17 * 1024 * 1024)})])
    assert out == [] and failure is not None and "16777216 bytes" in failure


def test_held_arguments_have_a_bound() -> None:
    piece = sse(tool(0, "x" * (4 * 1024 * 1024), "f", "a"), finish=None, done=False)
    reader = decoder()
    with pytest.raises(ModelError, match="16777216 characters"):
        for _ in range(5):
            reader.feed(piece)


def test_the_number_of_calls_has_a_bound() -> None:
    out, failure = read([sse(*[tool(i, "{}", "f", f"id{i}") for i in range(1100)])])
    assert failure is not None and "more than 1024 tool calls" in failure
    assert len(calls(out)) == 1023  # the last one was not over yet
