import json
from typing import Any

import pytest

from herdr.errors import InvalidInput
from herdr.web.asgi import (
    WRITE_WHOLE,
    ClientGone,
    Headers,
    Message,
    Receive,
    Reply,
    Scope,
    header,
    read_body,
    respond_json,
    respond_problem,
)
from herdr.web.problems import Refused

TEXT: Headers = [(b"content-type", b"text/plain")]


class Wire:
    """Notes what goes out, through ASGI or in one piece."""

    def __init__(self, *, has_whole: bool = True, takes_whole: bool = True) -> None:
        self.messages: list[Message] = []
        self.wholes: list[tuple[int, bytes, Headers]] = []
        self.takes_whole = takes_whole
        scope: Scope = {WRITE_WHOLE: self._write_whole} if has_whole else {}
        self.reply = Reply(scope, self._send)

    async def _send(self, message: Message) -> None:
        self.messages.append(message)

    def _write_whole(self, status: int, body: bytes, headers: Headers) -> bool:
        if self.takes_whole:
            self.wholes.append((status, body, headers))
        return self.takes_whole


def requests(*messages: dict[str, Any]) -> Receive:
    left = [{"type": "http.request", **message} for message in messages]

    async def receive() -> Message:
        return left.pop(0)

    return receive


def scope_of(**headers: str) -> Scope:
    return {"headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]}


async def test_a_whole_answer_goes_out_in_one_piece_where_the_server_can() -> None:
    wire = Wire()
    assert not wire.reply.started
    await wire.reply.whole(200, b"hello", TEXT)
    assert wire.reply.started
    assert (wire.wholes, wire.messages) == ([(200, b"hello", TEXT)], [])


@pytest.mark.parametrize("has_whole", [True, False])
async def test_else_it_goes_through_asgi_with_its_length(has_whole: bool) -> None:
    wire = Wire(has_whole=has_whole, takes_whole=False)
    await wire.reply.whole(200, b"hello", TEXT)
    assert wire.messages == [
        {"type": "http.response.start", "status": 200, "headers": [*TEXT, (b"content-length", b"5")]},
        {"type": "http.response.body", "body": b"hello"},
    ]
    assert len(TEXT) == 1


async def test_an_answer_without_content_has_no_length() -> None:
    wire = Wire(has_whole=False)
    await wire.reply.whole(204, b"", [])
    assert wire.messages[0]["headers"] == []


async def test_an_answer_that_comes_in_parts_has_begun_too() -> None:
    wire = Wire()
    message = {"type": "http.response.start", "status": 200, "headers": []}
    await wire.reply(message)
    assert (wire.reply.started, wire.messages) == (True, [message])


async def test_values_and_errors_leave_as_json() -> None:
    wire = Wire()
    await respond_json(wire.reply, 201, {"a": 1}, [(b"x", b"y")])
    await respond_problem(wire.reply, Refused("overloaded", "too much", {"retry-after": "7"}))
    await respond_problem(wire.reply, InvalidInput("no", "bad_cursor"))
    (made, overloaded, invalid) = wire.wholes
    assert made == (201, b'{"a":1}\n', [(b"content-type", b"application/json"), (b"x", b"y")])
    assert overloaded[0] == 503
    assert dict(overloaded[2]) == {b"content-type": b"application/problem+json", b"retry-after": b"7"}
    assert (invalid[0], json.loads(invalid[1])["code"]) == (400, "bad_cursor")


@pytest.mark.parametrize(
    "parts",
    [
        ({"body": b"abcde"},),
        ({},),
        ({"body": b"abc", "more_body": True}, {"body": b"de", "more_body": False}),
        ({"body": b"", "more_body": True}, {"body": b"ab", "more_body": True}, {"body": b"cde"}, {}),
    ],
)
async def test_a_body_is_read_whole(parts: tuple[dict[str, Any], ...]) -> None:
    sent = b"".join(part.get("body", b"") for part in parts)
    assert await read_body(scope_of(), requests(*parts), 5) == sent


@pytest.mark.parametrize(
    "parts",
    [
        ({"body": b"abcdef"},),
        ({"body": b"abcdef", "more_body": True},),  # not read on to its end
        ({"body": b"abc", "more_body": True}, {"body": b"def", "more_body": True}),
        ({"body": b"abc", "more_body": True}, {"body": b"def"}),
    ],
)
async def test_a_body_over_the_limit_is_refused(parts: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(Refused) as error:
        await read_body(scope_of(), requests(*parts), 5)
    assert (error.value.code, error.value.headers) == ("too_large", {"connection": "close"})


async def test_a_body_that_says_that_it_is_too_large_is_not_even_read() -> None:
    with pytest.raises(Refused):
        await read_body(scope_of(content_length="6"), requests(), 5)


@pytest.mark.parametrize("said", ["5", "-6", "six", "0x6", ""])
async def test_what_the_length_says_is_not_believed(said: str) -> None:
    assert await read_body(scope_of(content_length=said), requests({"body": b"abcde"}), 5) == b"abcde"


@pytest.mark.parametrize(
    "parts",
    [
        ({"type": "http.disconnect"},),
        ({"body": b"abc", "more_body": True}, {"type": "http.disconnect"}),
    ],
)
async def test_a_body_that_breaks_off_is_none(parts: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ClientGone):
        await read_body(scope_of(), requests(*parts), 5)


def test_a_header_is_text_whatever_its_bytes() -> None:
    scope: Scope = {"headers": [(b"a", b"x\xff"), (b"b", "ü".encode()), (b"a", b"later")]}
    assert header(scope, b"a") == "x\udcff"
    assert header(scope, b"b") == "ü"
    assert header(scope, b"c") is None
