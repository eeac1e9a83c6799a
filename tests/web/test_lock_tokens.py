"""`X-Herdr-Lock-Token`: in one place, for every endpoint over HTTP."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from fake_desk import FakeDesk

from herdr.web.asgi import Message, Receive, Reply, Scope, respond_json
from herdr.web.auth import Access, Caller, make_token
from herdr.web.surface import PUBLIC, Endpoint, build_methods

TOKENS = [make_token("worker", "worker", ["locks", "a"]), make_token("other", "other", ["a"])]


class World:
    """One endpoint that needs a scope, and one that needs none."""

    def __init__(self) -> None:
        self.desk = FakeDesk()
        self.desk.held = {7, 8}
        self.served = 0
        listed = [
            Endpoint("GET", "/a", "a", self._serve, "Needs a scope"),
            Endpoint(
                "GET", "/own", "a", self._serve, "Has errors of its own", refuse=lambda e: (418, b"own", [])
            ),
            Endpoint("GET", "/public", PUBLIC, self._serve, "Needs none"),
        ]
        self._methods = build_methods(listed, Access(TOKENS), self.desk.carried)

    async def _serve(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        self.served += 1
        await respond_json(send, 200, {})

    async def ask(self, path: str, who: str, *tokens: str) -> tuple[int, Any]:
        headers = [(b"x-herdr-lock-token", token.encode()) for token in tokens]
        headers += [(b"authorization", f"Bearer {who}".encode())] if who else []
        sent: list[Message] = []

        async def receive() -> Message:
            raise AssertionError("nothing of the body is to be read")

        async def send(message: Message) -> None:
            sent.append(message)

        await self._methods[path]({"method": "GET", "path": path, "headers": headers}, receive, send)
        body = sent[1]["body"]
        return sent[0]["status"], json.loads(body) if body.startswith(b"{") else body


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("tokens", "renewed"), [((), []), (("7",), [("carried", 7)]), (("7, 8", "7"), [("carried", 7, 8, 7)])]
)
async def test_leases_are_renewed_before_the_call_is_carried_out(
    world: World, tokens: Sequence[str], renewed: list[Any]
) -> None:
    for path in ("/a", "/public"):
        assert (await world.ask(path, "worker", *tokens))[0] == 200
        assert world.desk.said == renewed
        world.desk.said.clear()
    assert world.served == 2


async def test_with_a_token_that_is_not_held_nothing_is_done(world: World) -> None:
    status, problem = await world.ask("/a", "worker", "7,9")
    assert (status, problem["code"], world.served) == (409, "fenced", 0)
    assert await world.ask("/own", "worker", "9") == (418, b"own\n")


@pytest.mark.parametrize("value", ["", "seven", "7;8", ",".join(["7"] * 17)])
async def test_a_malformed_one_is_refused(world: World, value: str) -> None:
    status, problem = await world.ask("/a", "worker", value)
    assert (status, problem["code"], world.served) == (400, "invalid_request", 0)
    assert "X-Herdr-Lock-Token" in problem["detail"] and world.desk.said == []


async def test_it_needs_the_scope_of_locks_too_also_where_nothing_else_does(world: World) -> None:
    assert (await world.ask("/a", "other"))[0] == 200
    status, problem = await world.ask("/a", "other", "7")
    assert (status, problem["code"]) == (403, "missing_scope") and "locks" in problem["detail"]
    assert (await world.ask("/public", ""))[0] == 200
    assert (await world.ask("/public", "", "7"))[0] == 401
    assert (await world.ask("/public", "other", "7"))[0] == 403
    assert world.desk.said == [] and world.served == 2
