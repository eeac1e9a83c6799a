import json
from collections.abc import Sequence
from typing import Any

import pytest
from virtual_time import VirtualClock, run
from virtual_upstream import LIMITS, VirtualSession, upstream_over

from herdr.pool.backend import Decoder, run_stream
from herdr.pool.chunk import Chunk, End, TextDelta, ToolEnd, ToolStart
from herdr.pool.failures import ModelError
from herdr.pool.protocols.anthropic_backend.decode import MessagesDecoder
from herdr.pool.protocols.backend.decode import ChatDecoder
from herdr.pool.upstream import Answer


def chat(stop: tuple[str, ...] = ()) -> ChatDecoder:
    return ChatDecoder(
        stop=stop,
        tool_calls="buffer",
        recover=False,
        tool_names=frozenset(),
        prompt_estimate=5,
        context=None,
        new_id=lambda: "id",
    )


def sse(value: Any) -> bytes:
    return b"data: %s\n\n" % (value if isinstance(value, bytes) else json.dumps(value).encode())


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return sse({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def call(arguments: str, **more: Any) -> bytes:
    return delta(tool_calls=[{"index": 0, "function": {"name": "w", "arguments": arguments}, **more}])


DONE = delta("stop") + sse(b"[DONE]")


def refused(answer: Answer) -> ModelError:
    return ModelError("backend_refused", answer.body.decode())


class Stream:
    """One answer that was read, and when."""

    def __init__(
        self, pieces: Sequence[tuple[float, bytes]], decoder: Decoder | None = None, **session: Any
    ) -> None:
        self.clock = VirtualClock()
        self.said: list[Chunk] = []
        self.session = VirtualSession(pieces, **session)
        self.decoder = decoder or chat()
        self.headers = {"authorization": "Bearer s3cret"}

    def read(self) -> bool:
        upstream = upstream_over(self.session, headers=self.headers)
        return run(run_stream(upstream, "/x", b"{}", {}, self.decoder, self.said.extend, refused), self.clock)

    def fails(self) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.read()
        return caught.value


def test_bytes_become_chunks() -> None:
    stream = Stream([(1, delta(content="Hel")), (1, delta(content="lo") + DONE)])
    assert stream.read()
    assert [chunk.text for chunk in stream.said if isinstance(chunk, TextDelta)] == ["Hel", "lo"]
    assert isinstance(stream.said[-1], End)


def test_a_long_call_that_is_held_back_is_a_sign_of_life() -> None:
    pieces = [(1.0, delta(content="I write.")), (50.0, call('{"text":"', id="c"))]
    pieces += [(50.0, call("word "))] * 20
    stream = Stream([*pieces, (50.0, call('"}')), (1.0, DONE)])
    assert stream.read()
    assert [type(chunk) for chunk in stream.said[1:3]] == [ToolStart, type(stream.said[2])]
    assert isinstance(stream.said[-2], ToolEnd)
    assert stream.clock.now > 20 * 50 > LIMITS.between_chunks_s


def test_comments_are_none() -> None:
    stream = Stream([(1.0, delta(content="Hel")), *[(20.0, b":\n\n")] * 50])
    assert stream.fails().code == "backend_timeout"
    assert stream.clock.now == pytest.approx(1.0 + LIMITS.between_chunks_s)


def test_so_are_the_pings_of_anthropic() -> None:
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    start = b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'
    text = (
        b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}\n\n'
    )
    stream = Stream([(1.0, start + text), *[(20.0, ping)] * 50], MessagesDecoder(verbatim=True))
    assert stream.fails().code == "backend_timeout"
    assert stream.clock.now == pytest.approx(1.0 + LIMITS.between_chunks_s)


def test_a_long_prompt_speaks_seldom() -> None:
    """llama.cpp says how far it is once in 2,048 tokens: that may take longer than pieces of an answer."""
    progress = sse({"choices": [], "prompt_progress": {"total": 9, "cache": 0, "processed": 1}})
    stream = Stream([*[(200.0, progress)] * 4, (200.0, delta(content="x")), (1.0, DONE)])
    assert stream.read()
    stream = Stream([(200.0, progress), (200.0, delta(content="x")), (61.0, DONE)])
    assert stream.fails().code == "backend_timeout"


def test_an_answer_that_is_stopped_here_is_cut() -> None:
    stream = Stream([(1, delta(content="one END two")), (99999, b"")], chat(("END",)))
    assert not stream.read()
    assert stream.clock.now == 1 and stream.session.over == 1
    end = stream.said[-1]
    assert isinstance(end, End) and end.stop_sequence == "END"


def test_what_comes_after_the_end_is_not_waited_for() -> None:
    stream = Stream([(1, delta(content="x") + DONE), (99999, b"")])
    assert stream.read()
    assert stream.clock.now == 1


def test_chunks_that_stand_before_a_failure_are_passed_on() -> None:
    stream = Stream([(1, delta(content="Hel") + sse({"error": {"message": "broken", "code": 500}}))])
    assert "broken" in stream.fails().detail
    assert stream.said == [TextDelta("Hel")]


def test_an_end_too_early_is_a_failure() -> None:
    assert "middle of its answer" in Stream([(1, delta(content="Hel"))]).fails().detail


def test_a_key_that_the_backend_repeats_is_taken_out() -> None:
    stream = Stream([(1, sse({"error": {"message": "no such key: s3cret", "code": 500}}))])
    assert "s3cret" not in stream.fails().detail
    stream = Stream([(1, b"your key s3cret is wrong")], status=400)
    assert "s3cret" not in stream.fails().detail
