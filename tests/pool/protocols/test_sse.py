from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.pool.failures import ModelError
from herdr.pool.protocols.sse import SseDecoder

STREAMS = {
    b"data: a\n\ndata: b\n\n": [("", b"a"), ("", b"b")],
    b"data: a\r\n\r\ndata: b\r\rdata: c\n\n": [("", b"a"), ("", b"b"), ("", b"c")],
    b"event: e\r\ndata: a\r\ndata: b\r\n\r\n": [("e", b"a\nb")],
    b"event: error\ndata: x\n\ndata: y\n\n": [("error", b"x"), ("", b"y")],
    b"data: one\ndata:two\ndata:  three\n\n": [("", b"one\ntwo\n three")],
    b": comment\n\n:\n\ndata: a\n: in between\n\n": [("", b"a")],
    b"\xef\xbb\xbfdata: a\n\n": [("", b"a")],
    b"id: 7\nretry: 10\nnonsense: 1\ndata: a\n\n": [("", b"a")],
    b"event: lost\n\ndata: a\n\n": [("", b"a")],
    b"data\n\ndata\ndata\n\ndata:": [("", b""), ("", b"\n")],
    b"data: whole\n\ndata: cut": [("", b"whole")],
    "data: 渐🙂\n\n".encode(): [("", "渐🙂".encode())],
}


def fed(*pieces: bytes) -> list[tuple[str, bytes]]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_reads_the_same_however_it_is_split(stream: bytes) -> None:
    expected = STREAMS[stream]
    assert fed(stream) == expected
    assert fed(*(stream[i : i + 1] for i in range(len(stream)))) == expected
    for at in range(len(stream)):
        assert fed(stream[:at], b"", stream[at:]) == expected, at


@given(
    st.lists(
        st.sampled_from([b"data: x", b"data", b"event: e", b":c", b"\r", b"\n", b"\r\n", b"\xe6"]),
        max_size=14,
    ),
    st.lists(st.integers(0, 60), max_size=5),
)
def test_any_bytes_split_anywhere_are_the_same_events(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert fed(*(stream[a:b] for a, b in pairwise(at))) == fed(stream)


@pytest.mark.parametrize("long", [b"data: " + b"x" * 200, b"data: xxxxxxxxx\n" * 20, b":" + b"x" * 200])
def test_an_endless_event_is_refused_after_what_came_before_it(long: bytes) -> None:
    decoder = SseDecoder(max_bytes=100)
    assert decoder.feed(b"data: a\n\n" + long) == [("", b"a")]
    with pytest.raises(ModelError, match="more than 100 bytes") as caught:
        decoder.feed(b"\n\n")
    assert caught.value.code == "backend_failed"


def test_many_events_together_may_be_longer_than_one() -> None:
    assert len(SseDecoder(max_bytes=100).feed(b"data: xxxxxxxxx\n\n" * 50)) == 50
