"""Tokens at the MCP endpoint: who gets in, which tools each scope opens, and whose a handle is."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from mcp.shared.exceptions import MCPError
from mcp_client import ERAS, Agent, connected, post, tool_call
from wire import call

SCOPES = {
    "publisher": ["events:publish"],
    "follower": ["events:follow"],
    "locker": ["locks"],
    "reader": ["context"],
    "worker": ["tasks"],
    "urgent": ["events:publish", "events:p0"],
    "boss": ["admin"],
}
SECRETS = {name: f"secret-of-{name}-0123456789" for name in SCOPES}
NEEDS: dict[str, tuple[str | None, dict[str, Any]]] = {
    "register": (None, {"name": "x"}),
    "publish": ("events:publish", {"type": "note.x"}),
    "events": ("events:follow", {}),
    "lock": ("locks", {"paths": ["a.py"]}),
    "unlock": ("locks", {"paths": ["a.py"]}),
    "check_paths": ("locks", {"paths": ["a.py"]}),
    "project_map": ("context", {}),
    "find_symbol": ("context", {"name": "x"}),
    "callers": ("context", {"symbol": "x"}),
    "session_window": ("context", {}),
    "artifact": ("context", {"action": "list"}),
    "task": ("tasks", {"action": "list"}),
}
RESOURCES = {"herdr://locks": "locks", "herdr://tasks": "tasks", "herdr://sessions": "context"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("access")
    tokens = [{"name": name, "token": SECRETS[name], "scopes": scopes} for name, scopes in SCOPES.items()]
    (folder / "herdr.yaml").write_text(json.dumps({"auth": {"tokens": tokens}}))
    with running_gateway(folder / "data", "--config", str(folder / "herdr.yaml")) as process:
        yield process


@pytest.mark.parametrize("era", ERAS)
def test_without_a_token_nothing_is_answered(gateway: GatewayProcess, era: str) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}):
        answer = post(gateway, tool_call("events"), era, **headers)
        assert answer.status == 401 and "www-authenticate" in answer.headers
    assert call(gateway, "GET", "/mcp", headers={"accept": "text/event-stream"}).status == 401
    assert call(gateway, "DELETE", "/mcp", headers={"mcp-session-id": "x"}).status == 401


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", ["publisher", "follower", "locker", "reader", "worker"])
async def test_a_scope_opens_its_tools_and_no_other(gateway: GatewayProcess, era: str, name: str) -> None:
    async with connected(gateway, era, SECRETS[name]) as agent:
        for tool, (scope, arguments) in NEEDS.items():
            result = await agent.ask(tool, **arguments)
            said = result.content[0].text  # type: ignore[union-attr]
            lacks = said.startswith("missing_scope: ")
            assert lacks == (scope is not None and scope not in SCOPES[name]), (tool, said)
            assert not lacks or (repr(scope) in said and name in said)
        for uri, scope in RESOURCES.items():
            if scope in SCOPES[name]:
                assert (await agent.client.read_resource(uri)).contents
            else:
                with pytest.raises(MCPError, match=f"lacks the scope '{scope}'"):
                    await agent.client.read_resource(uri)


@pytest.mark.parametrize("era", ERAS)
async def test_p0_needs_its_own_scope(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era, SECRETS["publisher"]) as agent:
        said = await agent.refused("publish", type="note.x", priority="P0")
        assert said.startswith("missing_scope: ") and "events:p0" in said
    async with connected(gateway, era, SECRETS["urgent"]) as agent:
        assert (await agent.get("publish", type="note.x", priority="P0"))["status"] == "accepted"


@pytest.mark.parametrize("era", ERAS)
async def test_without_a_handle_one_goes_by_the_tokens_name(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era, SECRETS["boss"]) as agent:
        seq = (await agent.get("publish", type="note.whose"))["seq"]
        event = next(e for e in all_events_as_boss(gateway) if e["seq"] == seq)
        assert event["source"] == "boss"


async def test_a_handle_goes_with_its_token_only(gateway: GatewayProcess) -> None:
    async with connected(gateway, ERAS[1], SECRETS["boss"]) as one:
        mine = await one.register("claude-code")
        async with connected(gateway, ERAS[1], SECRETS["locker"]) as two:
            other = Agent(two.client, mine.handle)
            assert (await other.refused("lock", paths=["a.py"])).startswith("unknown_agent: ")
            assert (await two.get("register", name=mine.name))["agent"] != mine.handle


def all_events_as_boss(gateway: GatewayProcess) -> list[dict[str, Any]]:
    headers = {"authorization": f"Bearer {SECRETS['boss']}"}
    answer = call(gateway, "GET", "/v1/events?after=0&limit=1000", headers=headers)
    return list(answer.json()["events"])
