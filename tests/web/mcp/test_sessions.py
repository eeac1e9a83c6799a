import asyncio
from collections.abc import MutableMapping
from typing import Any
from unittest.mock import MagicMock

import pytest
from mcp.server.subscriptions import ResourceUpdated
from mcp.types import SubscribeRequestParams, UnsubscribeRequestParams

from herdr.web.asgi import Reply
from herdr.web.mcp import sessions as module
from herdr.web.mcp.notices import Notices
from herdr.web.mcp.sessions import NoticeStream, Sessions

LOCKS, TASKS = "herdr://locks", "herdr://tasks"


def sessions() -> Sessions:
    numbers = iter(range(10_000))
    return Sessions(lambda: f"s{next(numbers)}")


def of(session: str | None) -> Any:
    ctx = MagicMock()
    ctx.request.headers = {} if session is None else {"mcp-session-id": session}
    return ctx


async def subscribe(all_: Sessions, session: str | None, uri: str) -> None:
    assert await all_.subscribe(of(session), SubscribeRequestParams(uri=uri)) == {}


async def test_a_session_hears_of_what_it_wants_and_a_strange_one_of_everything() -> None:
    all_ = sessions()
    session = all_.begin()
    assert not all_.wants(session, LOCKS)
    await subscribe(all_, session, LOCKS)
    assert all_.wants(session, LOCKS) and not all_.wants(session, TASKS)
    await all_.unsubscribe(of(session), UnsubscribeRequestParams(uri=LOCKS))
    assert not all_.wants(session, LOCKS)
    for strange in ("of-before", None):
        await subscribe(all_, strange, LOCKS)
        assert all_.wants(strange, TASKS)


async def test_an_ended_session_is_remembered_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENDED_MAX", 2)
    all_ = sessions()
    ids = [all_.begin() for _ in range(3)]
    assert not any(map(all_.is_ended, [*ids, "of-before", None]))
    for session in ids:
        all_.end(session)
    assert [all_.is_ended(session) for session in ids] == [False, True, True]


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SESSIONS_MAX", 2)
    monkeypatch.setattr(module, "URIS_MAX", 2)
    all_ = sessions()
    first, second = all_.begin(), all_.begin()
    await subscribe(all_, first, LOCKS)  # the one that was used last stays
    third = all_.begin()
    assert not all_.wants(first, TASKS) and not all_.wants(third, TASKS)
    assert all_.wants(second, TASKS)
    for n in range(3):
        await subscribe(all_, first, f"herdr://sessions/{n}")
    assert all_.wants(first, TASKS)


class Written:
    """Takes what a stream writes; `held` keeps it from going on."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.ended = False
        self.free = asyncio.Event()
        self.free.set()

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        await self.free.wait()
        if message["type"] == "http.response.body":
            self.blocks.append(message["body"])
            self.ended = not message.get("more_body", False)


async def stays() -> MutableMapping[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


def stream_to(written: Written) -> NoticeStream:
    streams = MagicMock(stopping=False, now=lambda: 0.0)
    return NoticeStream(streams, Reply({}, written), {}, lambda uri: uri == LOCKS)


async def until(true: Any) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what is looked at is a list
            await asyncio.sleep(0)


async def test_a_stream_writes_what_is_wanted_and_keeps_alive() -> None:
    written, notices = Written(), Notices(list)
    stream = stream_to(written)
    running = asyncio.create_task(stream.run(notices.bus, stays))
    await until(lambda: written.blocks)
    await notices.bus.publish(ResourceUpdated(uri=TASKS))
    await notices.bus.publish(ResourceUpdated(uri=LOCKS))
    stream.poke()
    await until(lambda: len(written.blocks) == 3)
    assert b'"uri":"herdr://locks"' in written.blocks[1] and written.blocks[2] == b": keep-alive\n\n"
    running.cancel()
    await asyncio.wait([running])


async def test_a_client_that_cannot_follow_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NOTICES_MAX", 3)
    written, notices = Written(), Notices(list)
    running = asyncio.create_task(stream_to(written).run(notices.bus, stays))
    await until(lambda: written.blocks)
    written.free.clear()
    for _ in range(10):
        await notices.bus.publish(ResourceUpdated(uri=LOCKS))
    written.free.set()
    await until(running.done)
    assert written.ended and len(written.blocks) < 7
