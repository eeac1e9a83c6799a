"""The web-platform tests for event streams, each fed whole, split at every point, and by bytes."""

from pathlib import Path

import pytest

from herdr_sdk.sse import EVENT_BYTES_MAX, SSEEvent, SSEParser

Case = tuple[bytes, list[tuple[str, str, str]]]


def messages(*data: str) -> list[tuple[str, str, str]]:
    return [("message", one, "") for one in data]


# Names are those of the files in web-platform-tests/eventsource.
CASES: dict[str, Case] = {
    "format-field-parsing": (
        b"data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\n"
        b"da-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
        messages("\0\n 2\n1\n3\n\n4"),
    ),
    "format-newlines": (b"data:test\r\ndata\ndata:test\r\n\r", messages("test\n\ntest")),
    "format-comments": (
        b"data:1\r:\0\n:\r\ndata:2\n:"
        + b"x" * 2048
        + b"\rdata:3\n:data:fail\r:"
        + b"y" * 2048
        + b"\ndata:4\n\n",
        messages("1\n2\n3\n4"),
    ),
    "format-leading-space": (b"data:\ttest\rdata: \ndata:test\n\n", messages("\ttest\n\ntest")),
    "format-field-data": (b"data:\n\ndata\ndata\n\ndata:test\n\n", messages("", "\n", "test")),
    "event-data": (
        b"data:msg\ndata:msg\n\n:\nfalsefield:msg\n\nfalsefield:msg\nData:data\n\ndata\n\ndata:end\n\n",
        messages("msg\nmsg", "", "end"),
    ),
    "format-field-unknown": (
        b"data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
        messages("test\n\ntest"),
    ),
    "format-bom": (b"\xef\xbb\xbfdata:1\n\n\xef\xbb\xbfdata:2\n\ndata:3\n\n", messages("1", "3")),
    "format-bom-2": (b"\xef\xbb\xbf\xef\xbb\xbfdata:1\n\ndata:2\n\ndata:3\n\n", messages("2", "3")),
    "format-data-before-final-empty-line": (
        b"retry:1000\ndata:test1\n\nid:test\ndata:test2",
        messages("test1"),
    ),
    "format-null-character": (b"data:\0\n\n", messages("\0")),
    "format-field-id-null": (
        b"id:\0\0\ndata:1\n\nid:x\0\ndata:2\n\nid:\0x\ndata:3\n\nid:x\0x\ndata:4\n\nid: \0\ndata:5\n\n",
        messages("1", "2", "3", "4", "5"),
    ),
    "format-field-id": ("id: …\ndata:hello\n\n".encode(), [("message", "hello", "…")]),
    "format-field-id-3": (
        b"id:1\ndata:a\n\ndata:b\n\nid:\ndata:c\n\nid:2\ndata:d\n\nid\ndata:e\n\n",
        [
            ("message", "a", "1"),
            ("message", "b", "1"),
            ("message", "c", ""),
            ("message", "d", "2"),
            ("message", "e", ""),
        ],
    ),
    "format-field-event": (b"event:test\ndata:x\n\ndata:x\n\n", [("test", "x", ""), ("message", "x", "")]),
    "format-field-event-empty": (b"event: \ndata:data\n\n", messages("data")),
    "event without data": (b"event:test\nid:7\n\ndata:x\n\n", [("message", "x", "7")]),
    "format-utf-8": ("data:ok…\n\n".encode(), messages("ok…")),
    "broken UTF-8 is replaced": (b"data:a\xffb\n\n", messages("a\ufffdb")),
    "only one space goes": (b"data:  two\n\n", messages(" two")),
    "U+2028, U+0085, VT, FF and FS end no line": (
        'data: {"t":"a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"}\n\n'.encode(),
        messages('{"t":"a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"}'),
    ),
    "CRLF between chunks": (b"data: A\r\ndata: B\r\ndata: C\r\n\r\n", messages("A\nB\nC")),
    "lone CR": (b"data: A\r\rdata: B\r\r", messages("A", "B")),
    "CR then LF as two line ends is one": (b"data: A\r\n\ndata: B\n\n", messages("A", "B")),
    "half a BOM is text": (b"\xef\xbbdata:1\n\ndata:2\n\n", messages("2")),
    "nothing": (b"", []),
    "keep-alive with id": (b": keep-alive\nid: e:1-2-3\n\ndata:x\n\n", [("message", "x", "e:1-2-3")]),
}


def parse(*chunks: bytes) -> list[tuple[str, str, str]]:
    parser = SSEParser()
    return [(e.event, e.data, e.id) for chunk in chunks for e in parser.feed(chunk)]


@pytest.mark.parametrize("name", CASES)
def test_whole(name: str) -> None:
    stream, expected = CASES[name]
    assert parse(stream) == expected


@pytest.mark.parametrize("name", CASES)
def test_byte_by_byte(name: str) -> None:
    stream, expected = CASES[name]
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == expected


@pytest.mark.parametrize("name", CASES)
def test_split_at_every_point(name: str) -> None:
    stream, expected = CASES[name]
    for at in range(len(stream) + 1):
        assert parse(stream[:at], stream[at:]) == expected, at
        assert parse(stream[:at], b"", stream[at:]) == expected, at


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"retry:3000", 3000),
        (b"retry: 2143", 2143),
        (b"retry:1000x", None),
        (b"retry", None),
        (b"retry:", None),
        (b"retry:-1", None),
        (b"retry:+5", None),
        (b"retry:1.5", None),
        ("retry:\u0661\u0662".encode(), None),
        (b"retry:" + b"9" * 5000, None),
        (b"Retry:5", None),
    ],
)
def test_retry(line: bytes, expected: int | None) -> None:
    parser = SSEParser()
    parser.feed(line + b"\n\n")
    assert parser.retry_ms == expected


def test_id_counts_only_once_its_block_is_complete() -> None:
    parser = SSEParser("before")
    parser.feed(b"id:1\ndata:x\n")
    assert parser.last_event_id == "before"
    parser.feed(b"\n")
    assert parser.last_event_id == "1"
    parser.feed(b"id:2\n\n")
    assert parser.last_event_id == "2"


def test_event_is_dispatched_at_a_lone_cr_without_waiting_for_more() -> None:
    assert parse(b"data: A\n\r") == messages("A")


def test_an_event_without_end_is_an_error() -> None:
    parser = SSEParser()
    with pytest.raises(ValueError, match="does not end"):
        for _ in range(EVENT_BYTES_MAX // (1 << 20) + 1):
            parser.feed(b"x" * (1 << 20))


def test_data_lines_without_end_are_an_error() -> None:
    parser = SSEParser()
    with pytest.raises(ValueError, match="does not end"):
        for _ in range(EVENT_BYTES_MAX // (1 << 20) + 2):
            parser.feed(b"data:" + b"x" * (1 << 20) + b"\n")


def test_transcript_of_a_gateway() -> None:
    stream = (Path(__file__).parents[2] / "spec" / "examples" / "sse-follow.txt").read_bytes()
    parser = SSEParser()
    events = [event for i in range(len(stream)) for event in parser.feed(stream[i : i + 1])]
    assert [event.event for event in events] == [
        "user.message", "tool.result", "file.changed", "herdr.gap", "herdr.bye"
    ]  # fmt: skip
    assert "line two\\u2028" in events[0].data or "line two\u2028" in events[0].data
    assert events[3] == SSEEvent(
        "herdr.gap", '{"reason":"retention","from":60,"to":1200}', "9f3c21ab:1200-1200-1200"
    )
    assert parser.last_event_id == "9f3c21ab:1200-1200-1200"
