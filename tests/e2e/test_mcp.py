"""The MCP server of a real gateway, used by the official SDK's client in both eras of the protocol."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_client import ERAS, LEGACY, MODERN, Agent, connected, texts
from wire import PATIENCE_S, all_events, call, publish, wait_until

TOOLS = [
    *(
        "register",
        "publish",
        "events",
        "lock",
        "unlock",
        "check_paths",
        "project_map",
        "find_symbol",
        "callers",
    ),
    *("session_window", "artifact", "task"),
]
CART = "class Cart:\n    def total(self, tax):\n        return 0\n"
ORDER = "from cart import Cart\n\n\ndef pay(cart: Cart):\n    return cart.total(0.2)\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text(CART)
    (folder / "order.py").write_text(ORDER)
    return folder


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, shop: Path) -> Iterator[GatewayProcess]:
    data = tmp_path_factory.mktemp("mcp-data") / "data"
    with running_gateway(data, "--workspace", str(shop)) as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def locks(gateway: GatewayProcess) -> dict[str, Any]:
    return dict(call(gateway, "GET", "/v1/locks").json())


async def soon(true: Any, what: str) -> None:
    await asyncio.to_thread(wait_until, true, what)


async def test_there_are_twelve_tools_each_described(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as agent:
        listed = (await agent.client.list_tools()).tools
        assert [tool.name for tool in listed] == TOOLS
        for tool in listed:
            assert tool.description and 40 < len(tool.description) < 400
            assert tool.input_schema["additionalProperties"] is False
            assert all(field["description"] for field in tool.input_schema["properties"].values())
        assert agent.client.protocol_version == ("2025-11-25" if era == LEGACY else era)
        assert agent.client.server_info is None or agent.client.server_info.name == "herdr"


async def test_a_name_is_ones_own_and_a_tools_name_gets_an_end(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as agent:
        first, second = [await agent.get("register", name="cursor") for _ in range(2)]
        assert first["name"] != second["name"] and first["agent"] != second["agent"]
        assert first["name"].startswith("cursor/") and first["workspace"] == "shop"
        mine = [await agent.get("register", name=f"claude-code/{era}", session="s1") for _ in range(2)]
        assert mine[0]["agent"] == mine[1]["agent"] and mine[0]["name"] == f"claude-code/{era}"


async def test_a_folder_names_the_workspace(gateway: GatewayProcess, shop: Path) -> None:
    async with connected(gateway, MODERN) as agent:
        assert (await agent.get("register", name="x", folder=f"{shop}/"))["workspace"] == "shop"
        said = await agent.refused("register", name="x", folder="/nowhere")
        assert "herdr workspace add /nowhere" in said


async def test_what_one_publishes_is_an_event_of_its_own_name(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as client:
        agent = await client.register("codex", session="s-pub")
        told = await agent.get("publish", type="test.failed", subject="cart.py", data={"n": [1]}, tags=["ci"])
        assert told["status"] == "accepted"
        event = call(gateway, "GET", f"/v1/events/{told['seq']}").json()
        assert (event["source"], event["workspace"], event["session"]) == (agent.name, "shop", "s-pub")
        assert (event["subject"], event["data"], event["tags"]) == ("cart.py", {"n": [1]}, ["failure", "ci"])


async def test_a_change_based_on_an_old_version_is_refused_with_whose_is_newer(
    gateway: GatewayProcess, era: str
) -> None:
    async with connected(gateway, era) as one, connected(gateway, era) as two:
        first, second = await one.register("a"), await two.register("b")
        about = {"type": "change.planned", "subject": f"{era}.py"}
        seen = await first.get("publish", **about)
        newer = await first.get("publish", **about, based_on=seen["seq"])
        said = await second.refused("publish", **about, based_on=seen["seq"])
        assert said.startswith("stale: ") and first.name in said and str(newer["seq"]) in said


async def test_events_are_the_newest_or_those_after_a_cursor(gateway: GatewayProcess, era: str) -> None:
    kind = f"note.{era.replace('-', '')}"
    async with connected(gateway, era) as client:
        agent = await client.register("reader")
        publish(gateway, *({"type": kind, "source": "ci", "workspace": "shop", "data": n} for n in range(5)))
        newest = await agent.get("events", type=kind, limit=2)
        assert [event.get("data") for event in newest["events"]] == [3, 4]
        assert (await agent.get("events", type=kind, after=newest["cursor"]))["events"] == []
        page = await agent.get("events", type=kind, after="0", limit=3)
        rest = await agent.get("events", type=kind, after=page["cursor"])
        assert [e.get("data") for e in page["events"] + rest["events"]] == [0, 1, 2, 3, 4]
        text = texts(await agent.ask("events", type=kind, limit=1))[0]
        assert f"{kind} by ci 4" in text


async def test_two_agents_one_file(gateway: GatewayProcess, era: str) -> None:
    """One locks, the other is refused with the holder's name, and hears of the release in its next answer."""
    async with connected(gateway, era) as one, connected(gateway, era) as two:
        holder, other = await one.register("claude-code"), await two.register("cursor")
        taken = await holder.get("lock", paths=["cart.py"], purpose="renames total()")
        assert (await holder.get("lock", paths=["cart.py"]))["lock"] == taken["lock"]
        said = await other.refused("lock", paths=["cart.py"])
        assert said.startswith("locked: ") and holder.name in said and "renames total()" in said
        (conflict,) = (await other.get("check_paths", paths=["cart.py"]))["conflicts"]
        assert conflict["owner"] == holder.name
        assert (await holder.get("check_paths", paths=["cart.py"]))["conflicts"] == []  # it is its own
        assert "waiting" not in await other.get("check_paths", paths=["order.py"])
        assert (await holder.get("unlock", paths=["cart.py"]))["released"] == ["cart.py"]
        result = await other.ask("check_paths", paths=["cart.py"])
        first, second = texts(result)
        assert first == "Free: nobody else holds them."
        assert second.startswith("Waiting for you:\n- cart.py, which you were refused, is free again")
        assert result.structured_content is not None
        (line,) = result.structured_content["waiting"]
        assert line.endswith(f"{holder.name} has released it.")
        assert "waiting" not in await other.get("check_paths", paths=["cart.py"])  # it is told once
        assert (await other.get("lock", paths=["cart.py"]))["paths"] == ["cart.py"]
        await other.get("unlock", paths=["cart.py"])


async def test_absolute_paths_are_the_workspaces(gateway: GatewayProcess, shop: Path, era: str) -> None:
    async with connected(gateway, era) as client:
        agent = await client.register("x")
        taken = await agent.get("lock", paths=[str(shop / "cart.py"), f"{shop}/docs/"])
        assert sorted(taken["paths"]) == ["cart.py", "docs/"] and taken["workspace"] == "shop"
        assert sorted((await agent.get("unlock", lock=taken["lock"]))["released"]) == ["cart.py", "docs/"]


async def test_one_waits_in_line_and_gets_the_lock(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as one, connected(gateway, era) as two:
        holder, other = await one.register("a"), await two.register("b")
        taken = await holder.get("lock", paths=["order.py"])
        asking = asyncio.create_task(other.get("lock", paths=["order.py"], wait_s=60))
        await soon(lambda: locks(gateway)["waiting"], "the second to stand in line")
        await holder.get("unlock", lock=taken["lock"])
        got = await asyncio.wait_for(asking, PATIENCE_S)
        assert got["lock"] != taken["lock"]
        await other.get("unlock", lock=got["lock"])


async def test_who_leaves_while_waiting_stands_in_line_no_more(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as one:
        holder = await one.register("a")
        taken = await holder.get("lock", paths=["order.py"])

        async def impatient() -> None:
            async with connected(gateway, era) as two:
                other = await two.register("b")
                await other.ask("lock", paths=["order.py"], wait_s=60)

        leaving = asyncio.create_task(impatient())
        await soon(lambda: locks(gateway)["waiting"], "the second to stand in line")
        leaving.cancel()
        await asyncio.wait([leaving])
        await soon(lambda: not locks(gateway)["waiting"], "the line to be empty")
        await holder.get("unlock", lock=taken["lock"])
        assert not locks(gateway)["locks"]


async def test_the_project_is_known(gateway: GatewayProcess, shop: Path, era: str) -> None:
    async with connected(gateway, era) as agent:  # reading needs no name
        await soon(
            lambda: call(gateway, "GET", "/v1/context/shop").json()["graph"]["state"] == "ready", "the index"
        )
        found = await agent.get("project_map", tokens=256, focus=[str(shop / "order.py")])
        assert "order.py" in found["map"] and found["tokens"] <= 256 and found["of_files"] == 2
        (symbol,) = (await agent.get("find_symbol", name="Cart.total"))["symbols"]
        assert symbol["symbol"] == "cart.py::Cart.total" and "tax" in symbol["signature"]
        found = await agent.get("callers", symbol="cart.py::Cart.total")
        assert [caller["by"] for caller in found["callers"]] == ["order.py::pay"]
        text = texts(await agent.ask("callers", symbol="total"))[0]
        assert "order.py::pay:5 cart.total" in text


async def test_sessions_are_listed_and_read(gateway: GatewayProcess, era: str) -> None:
    session = f"talk/{era}"
    said = {"messages": [{"role": "user", "content": "Use integer cents.", "workspace": "shop"}]}
    assert call(gateway, "POST", f"/v1/sessions/{session}/messages", said).status == 201
    async with connected(gateway, era) as agent:
        assert session in [row["session"] for row in (await agent.get("session_window"))["sessions"]]
        found = await agent.get("session_window", session=session, tokens=200)
        assert "integer cents" in found["text"] and found["messages"] == 1
        uri = f"herdr://sessions/talk%2F{era}"
        (content,) = (await agent.client.read_resource(uri)).contents
        assert "integer cents" in content.text  # type: ignore[union-attr]


async def test_an_artifact_is_saved_read_in_parts_and_listed(gateway: GatewayProcess, era: str) -> None:
    name, whole = f"logs/{era}.txt", "".join(f"line {n}\n" for n in range(10_000))
    async with connected(gateway, era) as client:
        agent = await client.register("x")
        saved = await agent.get("artifact", action="save", name=name, content=whole, kind="log_digest")
        assert saved["bytes"] == len(whole)
        read, offset = "", 0
        while offset is not None:
            part = await agent.get("artifact", action="read", name=name, offset=offset)
            read, offset = read + part["content"], part.get("offset")
        assert read == whole
        listed = await agent.get("artifact", action="list", kind="log_digest")
        assert [row["by"] for row in listed["artifacts"] if row["name"] == name] == [agent.name]


async def test_a_task_goes_from_hand_to_hand(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as one, connected(gateway, era) as two:
        architect, coder = await one.register("architect"), await two.register("coder")
        note = {"summary": "cents, not floats", "decisions": ["integers"], "open_questions": ["rounding?"]}
        made = await architect.get("task", action="create", title="Cents", role=f"coder-{era}", note=note)
        claimed = await coder.get("task", action="claim", role=f"coder-{era}")
        assert claimed["task"] == made["task"] and claimed["state"] == "working"
        assert claimed["steps"][0]["note"] == note
        refused = await architect.ask("task", action="finish", task=made["task"])
        said, news = texts(refused)  # what waits comes along with a refusal, too
        assert refused.is_error and f"{coder.name} does" in said
        assert f"Task {made['task']} (Cents): claimed" in news
        await coder.get("task", action="ask", task=made["task"], question="Which rounding?")
        told = await architect.ask("task", action="list", task=made["task"])
        assert "Which rounding?" in texts(told)[0]
        news = "\n".join(texts(told)[1:])
        assert f"Task {made['task']} (Cents): asked" in news
        await architect.get("task", action="answer", task=made["task"], answer="half up")
        whole = await coder.ask("task", action="list", task=made["task"])
        assert "half up" in texts(whole)[0] and "answered" in texts(whole)[1]
        review = f"reviewer-{era}"
        handed = await coder.get(
            "task", action="hand_over", task=made["task"], role=review, note={"files": ["cart.py"]}
        )
        assert handed["state"] == "submitted" and "holder" not in handed
        said = await coder.refused("task", action="finish", task=made["task"])
        assert "do not hold" in said
        await architect.get("task", action="claim", task=made["task"])
        await architect.get("task", action="release", task=made["task"], reason="no time")
        await coder.get("task", action="claim", task=made["task"])
        done = await coder.get("task", action="finish", task=made["task"], note={"summary": "done"})
        assert done["state"] == "completed"
        other = await architect.get("task", action="create", title="Never", role="nobody")
        await architect.get("task", action="claim", task=other["task"])
        failed = await architect.get("task", action="fail", task=other["task"], reason="not worth it")
        assert failed["state"] == "failed"
        assert (await coder.get("task", action="list", role=review))["tasks"] == []
        assert (await coder.get("task", action="claim", role=review))["task"] is None


async def test_resources_are_listed_and_read(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as client:
        agent = await client.register("x")
        taken = await agent.get("lock", paths=["cart.py"])
        listed = {str(resource.uri) for resource in (await agent.client.list_resources()).resources}
        assert listed == {"herdr://locks", "herdr://tasks", "herdr://sessions", "herdr://shop/map"}
        found = {uri: (await agent.client.read_resource(uri)).contents[0] for uri in sorted(listed)}
        held = json.loads(found["herdr://locks"].text)["locks"]  # type: ignore[union-attr]
        assert [lock["owner"] for lock in held] == [agent.name]
        assert "tasks" in json.loads(found["herdr://tasks"].text)  # type: ignore[union-attr]
        assert "cart.py" in found["herdr://shop/map"].text  # type: ignore[union-attr]
        templates = (await agent.client.list_resource_templates()).resource_templates
        assert [t.uri_template for t in templates] == [
            "herdr://sessions/{session}",
            "herdr://{workspace}/map",
        ]
        for uri in ("herdr://nothing", "file:///etc/passwd", "herdr://sessions/none", "herdr://nowhere/map"):
            with pytest.raises(MCPError) as caught:
                await agent.client.read_resource(uri)
            assert caught.value.error.code == -32602 and caught.value.error.data == {"uri": uri}
        await agent.get("unlock", lock=taken["lock"])


async def test_a_change_of_a_resource_is_told_in_the_newer_era(gateway: GatewayProcess) -> None:
    async with connected(gateway, MODERN) as client:
        agent = await client.register("x")
        async with agent.client.listen(resource_subscriptions=["herdr://tasks"]) as heard:
            await agent.get("lock", paths=["cart.py"], ttl_s=5)
            await agent.get("task", action="create", title="Tell", role="nobody")
            told = await asyncio.wait_for(anext(aiter(heard)), PATIENCE_S)
        assert told == ResourceUpdated(uri="herdr://tasks")
        await agent.get("unlock", paths=["cart.py"])


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_a_change_of_a_resource_is_told_in_the_older_era(gateway: GatewayProcess) -> None:
    async with connected(gateway, LEGACY) as client:
        agent = await client.register("x")
        await agent.client.subscribe_resource("herdr://locks")
        await soon(lambda: health_sse(gateway), "the client to open its stream")
        await agent.get("task", action="create", title="Not this", role="nobody")
        taken = await agent.get("lock", paths=["cart.py"])
        assert await asyncio.wait_for(agent.updated.get(), PATIENCE_S) == "herdr://locks"
        await agent.get("unlock", lock=taken["lock"])


def health_sse(gateway: GatewayProcess) -> int:
    return int(call(gateway, "GET", "/healthz").json()["connections"]["sse"])


async def test_a_restart_in_the_middle(tmp_path: Path, shop: Path, era: str) -> None:
    """The client's own session is gone; its handle, its name, its lock and what waits for it are not."""
    with running_gateway(tmp_path / "data", "--workspace", str(shop)) as gateway:
        async with connected(gateway, era) as one:
            agent = await one.register("claude-code", session="s-restart")
            taken = await agent.get("lock", paths=["cart.py"])
            await agent.get("events", mine=True)
            publish(
                gateway, {"type": "user.message", "source": "human", "workspace": "shop", "data": "hello"}
            )
            gateway.kill()
            gateway.args = (*gateway.args, "--port", str(gateway.port))
            gateway.start()
            force = {"force": True, "reason": "needed elsewhere"}
            assert call(gateway, "DELETE", f"/v1/locks/{taken['lock']}", force).status == 204
            result = await agent.ask("publish", type="note.after", data=1)
            assert not result.is_error, texts(result)
            assert "needed elsewhere" in texts(result)[1]
            event = next(e for e in all_events(gateway) if e["type"] == "note.after")
            assert (event["source"], event["session"]) == (agent.name, "s-restart")
            again = await agent.get("register", name=agent.name)
            assert again["agent"] == agent.handle


async def test_a_stop_ends_streams_and_waits_at_once(tmp_path: Path, shop: Path, era: str) -> None:
    with running_gateway(tmp_path / "data", "--workspace", str(shop)) as gateway:
        async with connected(gateway, era) as one, connected(gateway, era) as two:
            holder, other = await one.register("a"), await two.register("b")
            await holder.get("lock", paths=["cart.py"])
            asking = asyncio.create_task(other.ask("lock", paths=["cart.py"], wait_s=60))
            await soon(lambda: locks(gateway)["waiting"], "the second to stand in line")
            assert await asyncio.to_thread(gateway.stop) == 0
            said = texts(await asyncio.wait_for(asking, PATIENCE_S))[0]
            assert said.startswith("overloaded: ") and "stops" in said


async def test_without_a_name_one_may_read_and_no_more(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as agent:
        assert (await agent.get("check_paths", paths=["cart.py"]))["conflicts"] == []
        assert "events" in await agent.get("events")
        for tool, arguments in {
            "lock": {"paths": ["cart.py"]},
            "unlock": {"paths": ["cart.py"]},
            "publish": {"type": "note.x"},
            "task": {"action": "claim", "role": "coder"},
            "events": {"mine": True},
            "artifact": {"action": "save", "name": "x", "content": "y"},
        }.items():
            said = await agent.refused(tool, **arguments)
            assert said.startswith("no_agent: ") and "register" in said


async def test_a_handle_that_is_not_known(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as client:
        agent = Agent(client.client, "nonsense")
        said = await agent.refused("check_paths", paths=["cart.py"])
        assert said.startswith("unknown_agent: ") and "register" in said


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("register", {}, "name"),
    ("register", {"name": ""}, "name"),
    ("register", {"name": "x", "colour": "red"}, "colour: unknown field"),
    ("publish", {"type": "Not A Type"}, "type: expected dotted lower case"),
    ("publish", {"type": "lock.granted"}, "lock.* is the gateway's own"),
    ("publish", {"type": "note.x", "priority": "P9"}, "priority"),
    ("publish", {"type": "note.x", "data": "x" * 1_100_000}, "the most is"),
    ("events", {"limit": 0}, "limit"),
    ("events", {"after": "yesterday"}, "is not a cursor"),
    ("lock", {}, "paths"),
    ("lock", {"paths": []}, "paths"),
    ("lock", {"paths": "cart.py"}, "paths"),
    ("lock", {"paths": ["../secret"]}, "../secret"),
    ("lock", {"paths": ["/etc/passwd"]}, "/etc/passwd"),
    ("lock", {"paths": ["a.py"], "ttl_s": 1e9}, "ttl_s"),
    ("lock", {"paths": ["a.py"], "wait_s": 61}, "wait_s"),
    ("lock", {"paths": ["a.py"], "workspace": "nowhere"}, "nowhere"),
    ("unlock", {}, "paths"),
    ("unlock", {"paths": ["never.py"]}, "You hold: nothing"),
    ("unlock", {"lock": "none"}, "You hold: nothing"),
    ("check_paths", {"paths": ["a\u0000b"]}, "control character"),
    ("project_map", {"tokens": 1}, "tokens"),
    ("project_map", {"workspace": "nowhere"}, "nowhere"),
    ("find_symbol", {}, "name"),
    ("find_symbol", {"name": "x", "limit": 10_000}, "limit"),
    ("callers", {"symbol": "no_such_function"}, "no_such_function"),
    ("session_window", {"session": "none"}, "none"),
    ("artifact", {"action": "burn"}, "action"),
    ("artifact", {"action": "read"}, "name: required here"),
    ("artifact", {"action": "save", "name": "x"}, "content: required here"),
    ("artifact", {"action": "read", "name": "none"}, "none"),
    ("artifact", {"action": "save", "name": "x", "content": "y", "kind": "Bad Kind"}, "kind"),
    ("task", {"action": "create", "title": "x"}, "role: required here"),
    ("task", {"action": "claim"}, "role: required here"),
    ("task", {"action": "claim", "task": "none"}, "none"),
    ("task", {"action": "finish"}, "task: required here"),
    ("task", {"action": "finish", "task": "none"}, "none"),
    ("task", {"action": "ask", "task": "none"}, "question: required here"),
    ("task", {"action": "answer", "task": "none"}, "answer: required here"),
    ("task", {"action": "hand_over", "task": "none"}, "role: required here"),
    ("task", {"action": "create", "title": "x", "role": "y", "note": {"mood": "good"}}, "mood"),
    ("task", {"action": "create", "title": "x", "role": "y", "note": {"files": ["ü" * 2000] * 50}}, "note"),
]


async def test_bad_arguments_are_answers_that_say_what_is_wrong(gateway: GatewayProcess) -> None:
    assert {tool for tool, _, _ in BAD} == set(TOOLS)
    async with connected(gateway, MODERN) as client:
        agent = await client.register("x")
        for tool, arguments, words in BAD:
            said = await agent.refused(tool, **arguments)
            assert words in said, (tool, arguments, said)
            assert len(said) < 600, said
        with pytest.raises(MCPError, match="there is no tool 'nonsense'; there are register, publish"):
            await agent.ask("nonsense")


async def test_numbers_as_texts_and_nulls_are_understood(gateway: GatewayProcess, era: str) -> None:
    async with connected(gateway, era) as agent:
        found = await agent.get("events", limit="3", type=None, mine=None)
        assert "cursor" in found
