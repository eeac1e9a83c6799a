"""The blocking facade says the same as the asynchronous one: same names, same arguments, same answers."""

import asyncio
import inspect
from typing import Any

import pytest
from aiohttp import web

from herdr_sdk import (
    ConnectionFailed,
    NotFound,
    artifacts,
    blocking_context,
    blocking_tasks,
    context,
    sessions,
    snapshots,
    task_work,
    tasks,
)
from herdr_sdk.blocking import Hub

PAIRS = [
    (blocking_context.Context, context.Context),
    (blocking_context.Session, sessions.Session),
    (blocking_context.Artifacts, artifacts.Artifacts),
    (blocking_context.Snapshots, snapshots.Snapshots),
    (blocking_tasks.Tasks, tasks.Tasks),
    (blocking_tasks.Work, task_work.Work),
]
BY_END = {
    "map": {"text": "m"},
    "a.py": {"path": "a.py", "text": "f"},
    "symbols": {"symbols": [], "more": 1},
    "callers": {"definitions": [], "callers": [], "more": 2},
    "callees": {"definitions": [], "callees": [], "more": 3},
    "dependents": {"path": "a.py", "dependents": [], "more": 4},
    "skipped": {"skipped": [], "more": 5},
    "shop": {"workspace": "shop", "graph": {"state": "ready"}},
    "index": {"graph": {"state": "indexing"}},
    "s1": {"session": "s1", "text": "w"},
    "messages": {"messages": [{"seq": 1, "id": "m1", "status": "accepted"}], "more": 6},
    "sessions": {"sessions": [], "more": 7},
    "digest": {"name": "digest"},
    "artifacts": {"artifacts": [], "more": 8},
}


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_every_method_has_its_counterpart(blocking, asynchronous) -> None:
    def named(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert named(blocking) == named(asynchronous)
    for name in named(blocking):
        ours = inspect.signature(getattr(blocking, name)).parameters
        theirs = inspect.signature(getattr(asynchronous, name)).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in ours.values()):
            assert [(p.name, p.kind, p.default) for p in ours.values()] == [
                (p.name, p.kind, p.default) for p in theirs.values()
            ], name


def test_keyword_arguments_are_those_of_the_counterpart() -> None:
    for fields, method in (
        (artifacts.ArtifactFields, artifacts.Artifacts.put),
        (artifacts.ArtifactFilters, artifacts.Artifacts.list),
    ):
        keywords = {p.name for p in inspect.signature(method).parameters.values() if p.kind is p.KEYWORD_ONLY}
        assert set(fields.__annotations__) == keywords


async def test_all_of_it_blocks_and_answers(faulty, tmp_path) -> None:
    def answer(asked: Any) -> Any:
        name = asked.address.partition("?")[0].rpartition("/")[2]
        if asked.method == "DELETE":
            return web.Response(status=204)
        if "snapshots" in asked.address:
            return {"files": 9} if asked.method == "POST" else web.Response(body=b"packed")
        if name == "digest" and asked.method == "GET" and "meta" not in asked.address:
            return web.Response(body=b"content")
        return BY_END[name]

    def script() -> list[object]:
        with Hub(name="script") as hub:
            shop, session = hub.context("shop"), hub.session("s1", "shop")
            hub.artifacts.delete("digest", workspace="w")
            session.delete()
            return [
                *(shop.workspace, session.session, shop.map(100, "a.py", ["b"]).text, shop.file("a.py").text),
                *(
                    shop.symbols("x", kind="class").more,
                    shop.callers("x").more,
                    shop.callees("x", limit=1).more,
                ),
                *(shop.dependents("a.py", depth=2).more, shop.skipped(limit=1).more),
                *(shop.manifest().graph.state, shop.index(True).state),
                *(session.window(100).text, session.say("user", "hello", id="m1").stored),
                *(len(session.record({"role": "user", "content": "x"} for _ in range(1))),),
                *(session.messages(1, 2).more, hub.sessions(limit=3).more),
                *(
                    hub.artifacts.put("digest", "x", kind="patch").name,
                    hub.artifacts.get("digest", workspace="w"),
                ),
                *(
                    hub.artifacts.describe("digest", workspace="w").name,
                    hub.artifacts.list(kind="patch").more,
                ),
                *(
                    hub.snapshots.export("shop", tmp_path / "x"),
                    hub.snapshots.import_("shop", tmp_path / "x").files,
                ),
            ]

    faulty.answer = answer
    assert await asyncio.to_thread(script) == [
        *("shop", "s1", "m", "f", 1, 2, 3, 4, 5, "ready", "indexing", "w", True, 1, 6, 7),
        *("digest", b"content", "digest", 8, 6, 9),
    ]
    assert sum("workspace=w" in asked.address for asked in faulty.asked) == 3
    assert "/v1/context/shop/graph/map?tokens=100&focus=a.py&name=b" in [
        asked.address for asked in faulty.asked
    ]


async def test_errors_and_a_hub_that_is_closed(faulty) -> None:
    faulty.answer = lambda asked: web.json_response({"code": "unknown_blob", "detail": "gone"}, status=404)

    def script() -> None:
        with Hub() as hub, pytest.raises(NotFound, match="gone"):
            hub.blob("ab")
        for ask in (hub.context().map, hub.sessions, lambda: hub.artifacts.get("a")):
            with pytest.raises(ConnectionFailed, match="The hub is closed"):
                ask()

    await asyncio.to_thread(script)
