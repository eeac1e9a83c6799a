"""`/v1/locks` and `/v1/waits` over a desk that does what a test says, asked over plain ASGI."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from buses import until
from fake_desk import FakeDesk
from starlette.applications import Starlette

from herdr.clock import SystemClock
from herdr.errors import HerdrError, LogUnavailable, NotFound
from herdr.locks.refusals import Deadlock, Fenced, Locked, TooMany
from herdr.web.asgi import Message
from herdr.web.auth import Access, make_token
from herdr.web.guard import Guard
from herdr.web.lock_routes import lock_endpoints
from herdr.web.openapi import describe
from herdr.web.streams import Streams
from herdr.web.surface import Front, build_methods, starlette_routes

TOKENS = {"worker": ["locks"], "boss": ["admin"], "reader": ["events:follow"]}
LATER = {"paths": ["a"], "wait_s": 30}


class Asked:
    """One request, of which the test is the client."""

    def __init__(self, front: Front, scope: dict[str, Any], body: bytes) -> None:
        self.gone = asyncio.Event()
        self.messages: list[Message] = []
        self._body: list[bytes] = [body]
        self.task = asyncio.create_task(front(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        if self._body:
            return {"type": "http.request", "body": self._body.pop(), "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])

    def json(self) -> Any:
        return json.loads(self.messages[1]["body"])


class World:
    """The lock endpoints, without a server and without a lock table."""

    def __init__(self, tokens: Mapping[str, list[str]]) -> None:
        self.desk = FakeDesk()
        self.names_owner = not tokens
        """Whether `begin` adds an owner where the test names none; without tokens one is required."""
        self.streams = Streams(10, 30.0, SystemClock(), lambda: 0.0)
        access = Access([make_token(name, name, scopes) for name, scopes in tokens.items()])
        methods = build_methods(lock_endpoints(self.desk, self.desk, self.streams), access, self.desk.carried)
        fixed = {path: app for path, app in methods.items() if "{" not in path}
        self.front = Front(fixed, Starlette(routes=starlette_routes(methods, {})), Guard(["localhost"]))

    def begin(
        self, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None
    ) -> Asked:
        path, _, query = path.partition("?")
        if (
            method == "POST"
            and path in ("/v1/locks", "/v1/waits")
            and isinstance(body, dict)
            and self.names_owner
        ):
            body = {"owner": "o", **body}
        sent = {"host": "localhost", **(headers or {})}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        }
        return Asked(self.front, scope, body if isinstance(body, bytes) else json.dumps(body).encode())

    async def ask(
        self, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None
    ) -> Asked:
        asked = self.begin(method, path, body, headers)
        await asked.task
        return asked


@pytest.fixture
async def world() -> World:
    return World({})


@pytest.fixture
async def closed() -> World:
    return World(TOKENS)


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


async def test_a_lock_is_asked_for_as_it_is_said(world: World) -> None:
    body = {"paths": ["src/a.py", "b/"], "owner": "cursor", "workspace": "shop", "ttl_s": 5, "mode": "intent"}
    asked = await world.ask("POST", "/v1/locks", {**body, "purpose": "rename it", "session": "s-1"})
    assert asked.status == 201
    assert world.desk.said == [
        ("lock", "shop", ["src/a.py", "b/"], "cursor", "intent", 5, 0, "rename it", "s-1")
    ]
    assert asked.json() == {
        **body,
        "lock": "L7",
        "token": 7,
        "purpose": "rename it",
        "session": "s-1",
        "since": "2026-03-02T09:15:04.120Z",
        "expires": "2026-03-02T09:16:04.120Z",
    }


async def test_without_an_owner_it_is_the_caller_s(world: World, closed: World) -> None:
    world.names_owner = False
    assert (await world.ask("POST", "/v1/locks", {"paths": ["a"]})).json()["owner"] == "anonymous-L7"
    refused = (await world.ask("POST", "/v1/waits", {"on": "b"})).json()
    assert [error["field"] for error in refused["errors"]] == ["owner"]
    await closed.ask("POST", "/v1/locks", {"paths": ["a"]}, bearer("worker"))
    await closed.ask("POST", "/v1/waits", {"on": "b"}, bearer("worker"))
    assert [said[3] for said in world.desk.said] == [None]  # the desk makes a name up
    assert closed.desk.said[0][3] == "worker" and closed.desk.said[1][:3] == ("declare", "worker", "b")


async def test_the_rest_is_passed_on(world: World) -> None:
    rows: list[tuple[str, str, Any, int, tuple[Any, ...]]] = [
        ("GET", "/v1/locks", b"", 200, ("listed", None, None, None)),
        ("GET", "/v1/locks?workspace=w&path=a/&owner=o", b"", 200, ("listed", "w", "a/", "o")),
        ("GET", "/v1/locks/L7", b"", 200, ("one", "L7")),
        ("PUT", "/v1/locks/L7?token=7", b"", 200, ("renew", "L7", 7, None)),
        ("PUT", "/v1/locks/L7", {"token": 7, "ttl_s": 5}, 200, ("renew", "L7", 7, 5)),
        (
            "DELETE",
            "/v1/locks/L7?force=true&reason=it+hangs",
            b"",
            204,
            ("force", "L7", "it hangs", "anonymous"),
        ),
        ("DELETE", "/v1/locks/L7", {"force": True, "reason": "r"}, 204, ("force", "L7", "r", "anonymous")),
        ("POST", "/v1/locks/check", {"paths": ["a"]}, 200, ("check", "default", ["a"], None, "write")),
        ("POST", "/v1/waits", {"owner": "a", "on": "b", "ttl_s": 9}, 201, ("declare", "a", "b", None, 9)),
        ("GET", "/v1/waits", b"", 200, ("waits",)),
        ("DELETE", "/v1/waits/W1", b"", 204, ("end_wait", "W1")),
        ("DELETE", "/v1/waits?owner=a&on=b", b"", 204, ("end_wait_of", "a", "b")),
        ("DELETE", "/v1/waits", {"owner": "a", "on": "b"}, 204, ("end_wait_of", "a", "b")),
    ]
    for method, path, body, status, said in rows:
        asked = await world.ask(method, path, body)
        assert (asked.status, world.desk.said.pop()) == (status, said), (method, path)
        assert (asked.messages[1]["body"] == b"") is (status == 204)
    world.desk.held = {8, 9}
    assert (await world.ask("DELETE", "/v1/locks/L8?token=8")).status == 204
    assert (await world.ask("DELETE", "/v1/locks/L9", {"token": 9, "force": False})).status == 204
    assert world.desk.said == [("release", "L8", 8, "released"), ("release", "L9", 9, "released")]


REFUSALS: list[tuple[HerdrError, int, str | None]] = [
    (Locked("held", [{"path": "a", "owner": "b"}], 17), 409, "17"),
    (Locked("held", [], 1), 409, "1"),
    (Deadlock("a waits for b", ["a", "b", "a"]), 409, None),
    (Fenced("another token"), 409, None),
    (TooMany("full"), 503, "1"),
    (TooMany("full", "too_many_waiters"), 503, "1"),
    (NotFound("none", "unknown_lock"), 404, None),
    (LogUnavailable("full disk"), 503, "1"),
]


@pytest.mark.parametrize(("error", "status", "retry"), REFUSALS, ids=[str(e.code) for e, _, _ in REFUSALS])
async def test_refusals_say_what_is_in_the_way(
    world: World, error: HerdrError, status: int, retry: str | None
) -> None:
    world.desk.refuses = error
    for body in ({"paths": ["a"]}, LATER):
        asked = await world.ask("POST", "/v1/locks", body)
        problem = asked.json()
        assert (asked.status, problem["code"], problem["status"]) == (status, error.code, status)
        assert asked.headers.get(b"retry-after") == (None if retry is None else retry.encode())
        assert problem.get("conflicts") == getattr(error, "conflicts", None)
        assert problem.get("cycle") == getattr(error, "cycle", None)


WRONG: list[tuple[str, str, Any, str]] = [
    ("POST", "/v1/locks", b"", "paths"),
    ("POST", "/v1/locks", {"paths": ["a"], "ttl_s": True}, "ttl_s"),
    ("POST", "/v1/locks/check", {"paths": ["a"], "ttl_s": 1}, "ttl_s"),
    ("GET", "/v1/locks?colour=red", b"", "colour"),
    ("PUT", "/v1/locks/L7", b"", "token"),
    ("PUT", "/v1/locks/L7?token=7", {"token": 8}, "token"),
    ("PUT", "/v1/locks/L7?token=7&ttl_s=nan", b"", "ttl_s"),
    ("DELETE", "/v1/locks/L7", b"", "token"),
    ("DELETE", "/v1/locks/L7?force=false", b"", "token"),
    ("DELETE", "/v1/locks/L7?token=7&reason=r", b"", "reason"),
    ("DELETE", "/v1/locks/L7?force=true", b"", "reason"),
    ("DELETE", "/v1/locks/L7?force=true&reason=r&token=7", b"", "token"),
    ("POST", "/v1/waits", {"owner": "a"}, "on"),
    ("DELETE", "/v1/waits?owner=a", b"", "on"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "field"), WRONG, ids=[f"{r[0]} {r[1]} {r[3]}" for r in WRONG]
)
async def test_what_is_wrong_is_named_and_nothing_done(
    world: World, method: str, path: str, body: Any, field: str
) -> None:
    asked = await world.ask(method, path, body)
    assert (asked.status, asked.json()["code"]) == (400, "invalid_request")
    assert [error["field"] for error in asked.json()["errors"]] == [field]
    assert world.desk.said == []


async def test_a_body_has_a_bound(world: World) -> None:
    asked = await world.ask("POST", "/v1/locks", {"paths": ["a" * 3_000_000]})
    assert (asked.status, asked.json()["code"]) == (413, "too_large")
    assert "folders" in asked.json()["detail"]


async def test_force_is_for_admins(closed: World) -> None:
    path = "/v1/locks/L7?force=true&reason=r"
    refused = await closed.ask("DELETE", path, b"", bearer("worker"))
    assert (refused.status, refused.json()["code"]) == (403, "missing_scope")
    assert closed.desk.said == []
    assert (await closed.ask("DELETE", path, b"", bearer("boss"))).status == 204
    assert closed.desk.said == [("force", "L7", "r", "boss")]


async def test_one_stands_in_line_for_as_long_as_one_is_there(world: World) -> None:
    asked = world.begin("POST", "/v1/locks", LATER)
    await until(lambda: world.desk.waiting)
    assert asked.messages == []
    world.desk.gate.set()
    await asked.task
    assert (asked.status, asked.json()["token"]) == (201, 7)
    assert ("withdrawn", ["a"]) not in world.desk.said


async def test_a_client_that_goes_leaves_the_line(world: World) -> None:
    asked = world.begin("POST", "/v1/locks", LATER)
    await until(lambda: world.desk.waiting)
    asked.gone.set()
    await asked.task
    assert world.desk.said[-1] == ("withdrawn", ["a"]) and world.desk.waiting == 0
    assert asked.messages == []


async def test_a_lock_that_comes_when_the_client_goes_is_given_back(world: World) -> None:
    asked = world.begin("POST", "/v1/locks", LATER)
    await until(lambda: world.desk.waiting)
    world.desk.gate.set()
    asked.gone.set()
    await asked.task
    assert world.desk.said[-1] == ("give_back", "L7")
    assert world.desk.held == set() and asked.messages == []


async def test_what_the_owner_had_before_is_not_given_back(world: World) -> None:
    world.desk.held = {7}
    world.desk.extends = True
    asked = world.begin("POST", "/v1/locks", LATER)
    await until(lambda: world.desk.waiting)
    world.desk.gate.set()
    asked.gone.set()
    await asked.task
    assert world.desk.held == {7} and world.desk.said[-1][0] == "lock"


async def test_a_request_that_is_cut_off_gives_its_lock_back(world: World) -> None:
    """uvicorn cancels what has not ended in time when it stops."""
    asked = world.begin("POST", "/v1/locks", LATER)
    await until(lambda: world.desk.waiting)
    world.desk.gate.set()
    asked.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked.task
    assert world.desk.held == set() and world.desk.waiting == 0


async def test_the_line_is_left_for_good_before_the_request_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(paths: list[str]) -> None:
        world.desk.waiting = 1
        try:
            await world.desk.gate.wait()
        except asyncio.CancelledError:
            for _ in range(10):
                await asyncio.sleep(0)  # a grant came first, and the desk lets it stand

    monkeypatch.setattr(world.desk, "_stand_in_line", slowly)
    asked = world.begin("POST", "/v1/locks", LATER)
    await until(lambda: world.desk.waiting)
    asked.gone.set()
    await asked.task
    assert world.desk.said[-1] == ("give_back", "L7")


async def test_a_stop_ends_the_line_with_an_answer(world: World) -> None:
    asked = world.begin("POST", "/v1/locks", LATER)
    await until(lambda: world.desk.waiting)
    await world.streams.say_goodbye()
    await asked.task
    assert (asked.status, asked.json()["code"], asked.headers[b"retry-after"]) == (503, "overloaded", b"2")
    assert world.desk.said[-1] == ("withdrawn", ["a"])
    late = await world.ask("POST", "/v1/locks", LATER)
    assert late.status == 503
    assert (await world.ask("POST", "/v1/locks", {"paths": ["a"]})).status == 201


def test_the_description_shows_what_is_answered() -> None:
    world = World({})
    document = json.loads(json.dumps(describe(lock_endpoints(world.desk, world.desk, world.streams), "1")))
    schemas = document["components"]["schemas"]
    assert set(schemas["Leased"]["properties"]) == set(FakeDesk().leased("L", 1).__struct_fields__)
    assert {"conflicts", "cycle"} <= set(schemas["Problem"]["properties"])
    paths = document["paths"]
    assert set(paths["/v1/locks"]["post"]["responses"]) >= {"201", "400", "404", "409", "503"}
    assert "200" not in paths["/v1/locks"]["post"]["responses"]
    assert paths["/v1/locks"]["post"]["requestBody"]["required"] is True
    for method in ("put", "delete"):
        operation = paths["/v1/locks/{lock}"][method]
        assert operation["requestBody"]["required"] is False
        assert "token" in [parameter["name"] for parameter in operation["parameters"]]
    assert "X-Herdr-Lock-Token" in document["info"]["description"]
