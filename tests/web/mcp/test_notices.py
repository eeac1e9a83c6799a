import asyncio
import contextlib

import pytest
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from herdr.event import Event
from herdr.web.mcp import notices as module
from herdr.web.mcp.notices import Notices, uris_of


def event(type_: str, workspace: str = "default", session: str | None = None) -> Event:
    return Event(1, "id", type_, "herdr", workspace, "tool", b"{}", session=session)


@pytest.mark.parametrize(
    ("told", "uris"),
    [
        (event("lock.granted"), ["herdr://locks"]),
        (event("lock.expired"), ["herdr://locks"]),
        (event("handoff.claimed"), ["herdr://tasks"]),
        (event("context.changed", "my shop/1"), ["herdr://my%20shop%2F1/map"]),
        (event("session.message", session="a/b"), ["herdr://sessions", "herdr://sessions/a%2Fb"]),
        (event("user.message", session="s"), ["herdr://sessions", "herdr://sessions/s"]),
        (event("user.message"), []),
        (event("file.changed", session="s"), []),
        (event("context.artifact.stored"), []),
    ],
)
def test_what_an_event_changes(told: Event, uris: list[str]) -> None:
    assert list(uris_of(told)) == uris


async def heard_of(notices: Notices, count: int) -> list[ServerEvent]:
    heard: list[ServerEvent] = []
    enough = asyncio.Event()

    def listen(told: ServerEvent) -> None:
        heard.append(told)
        if len(heard) >= count:
            enough.set()

    notices.bus.subscribe(listen)
    running = asyncio.create_task(notices.run())
    async with asyncio.timeout(10):
        await enough.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return heard


async def test_many_changes_of_one_thing_are_one_notice() -> None:
    notices = Notices(list)
    notices.committed([event("lock.granted")] * 100)

    async def later() -> None:
        notices.committed([event("lock.released"), event("handoff.created")])

    asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(later()))
    assert await heard_of(notices, 2) == [
        ResourceUpdated(uri="herdr://locks"),
        ResourceUpdated(uri="herdr://tasks"),
    ]


async def test_a_workspace_that_comes_or_goes_changes_the_list() -> None:
    watched = ["shop"]
    notices = Notices(lambda: list(watched))
    watched.append("later")
    notices.committed([event("context.indexed", "later")])
    assert await heard_of(notices, 2) == [ResourceUpdated(uri="herdr://later/map"), ResourcesListChanged()]


async def test_a_flood_of_sessions_leaves_their_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHERED_MAX", 3)
    notices = Notices(list)
    notices.committed([event("user.message", session=str(n)) for n in range(100)])
    notices.committed([event("lock.granted")])
    told = await heard_of(notices, 4)
    uris = [one.uri for one in told if isinstance(one, ResourceUpdated)]
    assert uris == ["herdr://sessions", "herdr://sessions/0", "herdr://sessions/1", "herdr://locks"]
