import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_backend import Desk, Scripted, desk
from virtual_time import VirtualClock, run

from herdr.errors import InvalidInput
from herdr.web.asgi import Message, Reply, Scope
from herdr.web.auth import ANYONE
from herdr.web.pool_api import CALLS_DEFAULT, CALLS_MAX, PoolApi
from herdr.web.surface import Handler


class Rows:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def rows(self, limit: int, **more: Any) -> list[dict[str, Any]]:
        self.asked.append({"limit": limit, **more})
        return [{"call": "01J"}]


async def ask(handler: Handler, query: bytes = b"", body: bytes = b"") -> tuple[int, dict[str, str], Any]:
    scope: Scope = {"headers": [], "query_string": query}
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        sent.append(message)

    await handler(scope, receive, Reply(scope, send), ANYONE)
    start, end = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, json.loads(end["body"])


def play(main: Callable[[PoolApi, Desk, Rows], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        it = desk(clock, Scripted(clock, total=2), names={"gpt-*": "local", "big": "local"})
        rows = Rows()
        await it.open_up()
        await main(PoolApi(it.pool, rows, clock, lambda: "01X"), it, rows)
        await it.pool.stop()

    run(whole(), clock)


def test_the_pool() -> None:
    async def main(api: PoolApi, it: Desk, _: Rows) -> None:
        status, _headers, body = await ask(api.pool)
        assert status == 200 and body == json.loads(json.dumps(it.pool.snapshot()))
        assert body["backends"][0]["url"] == it.backend.url

    play(main)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (b"", {"limit": CALLS_DEFAULT}),
        (b"limit=1", {"limit": 1}),
        (b"limit=1000", {"limit": CALLS_MAX}),
        (b"agent=a%20b&route=r&after=01J", {"agent": "a b", "route": "r", "after": "01J"}),
        (b"agent=", {"agent": ""}),
    ],
)
def test_calls_that_are_asked_for(query: bytes, asked: dict[str, Any]) -> None:
    async def main(api: PoolApi, _: Desk, rows: Rows) -> None:
        status, _headers, body = await ask(api.calls, query)
        assert (status, body) == (200, {"calls": [{"call": "01J"}]})
        defaults = {"limit": CALLS_DEFAULT, "agent": None, "route": None, "after": None}
        assert rows.asked == [{**defaults, **asked}]

    play(main)


@pytest.mark.parametrize(
    "query", [b"limit=0", b"limit=1001", b"limit=x", b"limit=", b"limit=-1", b"who=me", b"limit=1.5"]
)
def test_a_query_that_does_not_fit(query: bytes) -> None:
    async def main(api: PoolApi, _: Desk, rows: Rows) -> None:
        with pytest.raises(InvalidInput, match=r"limit|query"):
            await ask(api.calls, query)
        assert rows.asked == []

    play(main)


def test_the_models() -> None:
    async def main(api: PoolApi, _: Desk, _rows: Rows) -> None:
        status, _headers, body = await ask(api.models)
        assert status == 200 and [model["id"] for model in body["data"]] == ["big", "local"]

    play(main)


def test_tokens_are_counted_and_no_slot_is_taken() -> None:
    async def main(api: PoolApi, it: Desk, _: Rows) -> None:
        it.backend.to_count = 42
        body = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
        status, headers, counted = await ask(api.count_tokens, body=body)
        assert (status, counted) == (200, {"input_tokens": 42})
        assert headers["x-herdr-slot"] == "none" and headers["request-id"] == "req_01X"
        assert it.backend.jobs == [] and it.outcomes == []
        with pytest.raises(InvalidInput):
            await ask(api.count_tokens, body=b"{}")

    play(main)
