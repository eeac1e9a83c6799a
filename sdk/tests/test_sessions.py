"""Conversations: what is recorded, in which requests, and what comes back."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from herdr_sdk import ConnectionFailed, Hub, InvalidEvent, NotFound, OutcomeUnknown, ServerError
from herdr_sdk import sessions as sessions_module

WINDOW = {
    **{"session": "s1", "messages": 40, "tokens": 900, "full_tokens": 3000, "saved_tokens": 2100},
    **{"tokenizer": "bytes/2.7", "summariser": "rules", "text": "Decisions\n- use Decimal", "ref": "aa"},
    "summary": {
        "decisions": [
            {
                "text": "use Decimal",
                "reason": "rounding",
                "files": ["a.py"],
                "seq": 3,
                "time": "t",
                "source": "cursor",
            }
        ],
        "files": [{"path": "a.py", "actions": ["edit"], "seq": 9}],
        "questions": [{"text": "and tax?", "seq": 10}],
        "outcomes": [],
        "errors": [{"text": "test_total fails", "seq": 12, "later": 1}],
        "more": {"outcomes": 2},
    },
    "newest": [{"seq": 40, "role": "user", "source": "claude", "time": "t", "text": "go on"}],
}


def receipts(asked: Any) -> Any:
    """Answer as the gateway does to messages."""
    names = [message["id"] for message in asked.json["messages"]]
    results = [{"seq": n, "id": name, "status": "accepted"} for n, name in enumerate(names, 1)]
    return web.json_response({"session": "s1", "messages": results}, status=201)


async def test_a_window(faulty) -> None:
    faulty.answer = lambda asked: web.json_response(WINDOW, headers={"ETag": '"aa"'})
    session = Hub().session("fix cart/1")
    window = await session.window(tokens=1000)
    assert (window.messages, window.tokens, window.full_tokens, window.saved_tokens) == (40, 900, 3000, 2100)
    assert (window.text, window.unchanged, window.summariser) == (WINDOW["text"], False, "rules")
    summary = window.summary
    assert (summary.decisions[0].text, summary.decisions[0].reason, summary.decisions[0].files) == (
        "use Decimal", "rounding", ("a.py",)
    )  # fmt: skip
    assert (summary.files[0].actions, summary.questions[0].text) == (("edit",), "and tax?")
    assert (summary.outcomes, summary.errors[0].seq, summary.more) == ((), 12, {"outcomes": 2})
    assert (window.newest[0].source, window.newest[0].text) == ("claude", "go on")
    faulty.answer = lambda asked: web.Response(status=304)
    kept = await session.window(tokens=1000)
    assert (kept.unchanged, kept.summary) == (True, summary)
    assert [asked.address for asked in faulty.asked] == ["/v1/sessions/fix%20cart%2F1?tokens=1000"] * 2
    assert faulty.asked[1].headers["if-none-match"] == '"aa"'


async def test_saying_something(faulty) -> None:
    faulty.answer = receipts
    session = Hub().session("s1", workspace="shop")
    blocks = [{"type": "tool_use", "name": "edit", "input": {"path": "a.py"}}]
    first = await session.say("user", "Fix the cart.")
    await session.say(
        "assistant", blocks, id="m2", time=datetime(2026, 3, 2, tzinfo=UTC), files=["a.py"], task="t1"
    )
    await session.say("tool", "3 passed", tool="pytest")
    sent = [asked.json["messages"] for asked in faulty.asked]
    assert [asked.address for asked in faulty.asked] == ["/v1/sessions/s1/messages"] * 3
    assert sent == [
        [{"role": "user", "content": "Fix the cart.", "workspace": "shop", "id": first.id}],
        [
            {"role": "assistant", "content": blocks, "workspace": "shop", "id": "m2"}
            | {"time": "2026-03-02T00:00:00Z", "files": ["a.py"], "task": "t1"}
        ],
        [
            {
                "role": "tool",
                "content": "3 passed",
                "workspace": "shop",
                "id": sent[2][0]["id"],
                "tool": "pytest",
            }
        ],
    ]
    assert (first.seq, first.stored) == (1, True)
    assert len({message["id"] for [message] in sent}) == 3


async def test_many_messages_go_in_several_requests(faulty, monkeypatch) -> None:
    faulty.answer = receipts
    session = Hub().session("s1")
    messages = ({"role": "user", "content": str(n), "id": f"m{n}"} for n in range(2500))
    got = await session.record(messages)
    assert [receipt.id for receipt in got] == [f"m{n}" for n in range(2500)]
    assert [len(asked.json["messages"]) for asked in faulty.asked] == [1000, 1000, 500]
    faulty.asked.clear()
    monkeypatch.setattr(sessions_module, "BYTES_MAX", 1000)
    sizes = (2000, 300, 300, 2000, 300)
    await session.record({"role": "user", "content": "x" * size} for size in sizes)
    assert [[len(m["content"]) for m in asked.json["messages"]] for asked in faulty.asked] == [
        [2000], [300, 300], [2000], [300]
    ]  # fmt: skip
    assert await session.record([]) == []
    assert len(faulty.asked) == 4


async def test_a_failure_on_the_way_says_how_far_it_got(faulty) -> None:
    def answer(asked: Any) -> Any:
        if len(faulty.asked) == 1:
            return receipts(asked)
        return web.json_response({"code": "log_unavailable", "detail": "the disk is full"}, status=503)

    faulty.answer = answer
    messages = [{"role": "user", "content": "x", "id": f"m{n}"} for n in range(1500)]
    with pytest.raises(ServerError, match="disk is full") as caught:
        await Hub().session("s1").record(messages)
    assert [receipt.id for receipt in caught.value.results] == [f"m{n}" for n in range(1000)]


async def test_what_is_not_answered_may_be_stored(faulty) -> None:
    def hang_up(asked: Any) -> web.Response:
        for connection in faulty._runner.server.connections:
            connection.transport.abort()
        return web.Response()

    faulty.answer = hang_up
    session = Hub().session("s1")
    with pytest.raises(OutcomeUnknown, match="may be stored or not") as caught:
        await session.say("user", "hello", id="m1")
    assert caught.value.ids == ["m1"]
    with pytest.raises(ConnectionFailed):
        await session.window()
    await faulty.stop()
    with pytest.raises(ConnectionFailed):
        await session.say("user", "hello")


async def test_what_no_json_can_say_is_refused_here(faulty) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for content in ({1, 2, object()}, [{"type": "text", "text": "\ud800"}], deep):
        with pytest.raises(InvalidEvent, match="was not recorded"):
            await Hub().session("s1").say("user", content)
    assert faulty.asked == []


async def test_messages_and_deleting(faulty) -> None:
    said = {"seq": 5, "id": "m1", "role": "tool", "source": "ci", "time": "t", "content": [{"type": "text"}]}
    said |= {"files": ["a.py"], "tool": "pytest", "later": True}
    faulty.answer = lambda asked: {"messages": [said], "total": 8, "more": True}
    session = Hub().session("s1")
    found = await session.messages(after=4, limit=1)
    assert (found.more, found.total) == (True, 8)
    assert (found.messages[0].content, found.messages[0].tool) == ([{"type": "text"}], "pytest")
    faulty.answer = lambda asked: web.Response(status=204)
    await session.delete()
    faulty.answer = lambda asked: web.json_response({"code": "unknown_session", "detail": "no"}, status=404)
    with pytest.raises(NotFound):
        await session.delete()
    assert [(asked.method, asked.address) for asked in faulty.asked] == [
        ("GET", "/v1/sessions/s1/messages?after=4&limit=1"), *[("DELETE", "/v1/sessions/s1")] * 2
    ]  # fmt: skip


async def test_sessions(faulty) -> None:
    one = {"session": "s1", "workspace": "shop", "messages": 3, "updated": "t", "sources": ["ci", "cursor"]}
    faulty.answer = lambda asked: {"sessions": [one], "more": 1}
    found = await Hub().sessions(workspace="shop", limit=1)
    await Hub().sessions()
    assert (found.more, found.sessions[0].sources) == (1, ("ci", "cursor"))
    assert [asked.address for asked in faulty.asked] == [
        "/v1/sessions?workspace=shop&limit=1", "/v1/sessions?limit=100"
    ]  # fmt: skip


async def test_cancelling_leaves_nothing_behind(faulty) -> None:
    came, go = asyncio.Event(), asyncio.Event()
    before = asyncio.all_tasks()

    async def wait(request: web.Request) -> web.Response:
        came.set()
        await go.wait()
        return web.Response()

    faulty.plain = wait
    await faulty.stop()
    await faulty.start()
    asking = asyncio.create_task(Hub(url=faulty.url).session("s1").window())
    await came.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    go.set()
    await faulty.stop()
    assert not {task for task in asyncio.all_tasks() - before if not task.done()}
