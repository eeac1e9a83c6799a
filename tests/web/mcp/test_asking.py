"""The border between the protocol and the tools."""

from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import MagicMock

import pytest
from mcp.types import CallToolRequestParams

from herdr.bus.inbox import Waiting
from herdr.errors import LogUnavailable
from herdr.event import Event
from herdr.web.auth import Caller
from herdr.web.mcp.agents import Agents, Who
from herdr.web.mcp.arguments import CheckPaths
from herdr.web.mcp.around import Said, Tool
from herdr.web.mcp.asking import CALLER, Asking
from herdr.web.mcp.freed import Freed
from herdr.web.mcp.words import CHECK_PATHS

TOKEN = Caller("laptop", None)


class FakeInbox:
    def __init__(self) -> None:
        self.waiting: Waiting = Waiting()
        self.fails = False
        self.asked: list[str] = []

    async def take(self, name: str, limit: int = 10) -> Waiting:
        self.asked.append(name)
        if self.fails:
            raise LogUnavailable("the disk is full")
        return self.waiting


async def fine(who: Who, asked: CheckPaths) -> Said:
    return Said("fine", {"ok": True})


async def broken(who: Who, asked: CheckPaths) -> Said:
    raise RuntimeError("/secret/path of the server")


async def ask(run: Callable[..., Awaitable[Said]], inbox: FakeInbox) -> dict[str, Any]:
    tool = Tool("check_paths", CheckPaths, CHECK_PATHS, "locks", True, run)
    agents = Agents({}, MagicMock(), MagicMock(), MagicMock())
    asking = Asking([tool], agents, inbox, Freed())  # type: ignore[arg-type]
    ctx = MagicMock()
    ctx.request.scope = {CALLER: TOKEN}
    return await asking.call(ctx, CallToolRequestParams(name="check_paths", arguments={"paths": ["a.py"]}))


async def test_a_mistake_of_the_gateways_is_told_without_its_inside(caplog: pytest.LogCaptureFixture) -> None:
    answer = await ask(broken, FakeInbox())
    assert answer["isError"] and "structuredContent" not in answer
    assert answer["content"] == [
        {"type": "text", "text": "internal: the gateway made a mistake; its log says which"}
    ]
    assert "/secret/path" in caplog.text


async def test_an_answer_is_worth_more_than_what_waits() -> None:
    inbox = FakeInbox()
    inbox.fails = True
    answer = await ask(fine, inbox)
    assert answer["content"] == [{"type": "text", "text": "fine"}] and answer["structuredContent"] == {
        "ok": True
    }
    assert inbox.asked == ["laptop"]


async def test_what_waits_comes_along_in_clean_lines_of_bounded_length() -> None:
    inbox = FakeInbox()
    reason = "\\u001b[31m" + "x" * 5000
    body = b'{"type":"lock.released","subject":"a.py","data":{"reason":"%s"}}' % reason.encode()
    inbox.waiting = Waiting([Event(1, "i", "lock.released", "herdr", "default", "tool", body)], 3, 2)
    for run in (fine, broken):
        answer = await ask(run, inbox)
        text = answer["content"][1]["text"]
        assert text.startswith("Waiting for you:\n- lock.released a.py") and "\x1b" not in text
        assert "3 more events are waiting" in text and "2 older events were too many" in text
        assert len(text) < 1000
    assert answer.get("structuredContent") is None
    assert len((await ask(fine, inbox))["structuredContent"]["waiting"]) == 3
