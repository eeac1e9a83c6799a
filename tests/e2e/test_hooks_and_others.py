"""Hooks beside all that goes on: writes past them, tokens, the project's graph, tools that hear little."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import all_events, call, wait_until

SESSION = "11112222-3333-4444-5555-666677778888"
NAME = "claude-code/77778888"
TOKENS = {
    "all": ["locks", "events:publish", "events:follow"],
    "locker": ["locks"],
    "teller": ["events:publish"],
    "reader": ["context"],
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def total(cart):\n    return 0\n")
    (folder / "bill.py").write_text("from cart import total\n\n\ndef bill(cart):\n    return total(cart)\n")
    return folder


@pytest.fixture
def gateway(tmp_path: Path, shop: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data", "--workspace", str(shop)) as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]


def hook(
    gateway: GatewayProcess, event: str, folder: Path, token: str | None = None, **more: Any
) -> dict[str, Any]:
    payload = {"session_id": SESSION, "cwd": str(folder), "hook_event_name": event, **more}
    headers = {"authorization": f"Bearer secret-{token}"} if token else {}
    answer = call(gateway, "POST", "/hooks/claude-code", payload, headers)
    assert answer.status == 200, answer
    return dict(answer.json())


def edit(gateway: GatewayProcess, event: str, path: Path, **more: Any) -> dict[str, Any]:
    written = {"tool_name": "Edit", "tool_input": {"file_path": str(path)}, "tool_use_id": "toolu_1"}
    return hook(gateway, event, path.parent, **(written | more))


def told(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def owners(gateway: GatewayProcess, **headers: str) -> list[str]:
    return [lock["owner"] for lock in call(gateway, "GET", "/v1/locks", headers=headers).json()["locks"]]


def wait_for_graph(gateway: GatewayProcess) -> None:
    def known() -> bool:
        answer = call(gateway, "GET", "/v1/context/shop/graph/symbols?name=bill")
        return answer.status == 200 and bool(answer.json()["symbols"])

    wait_until(known, "the graph")


def test_a_shells_write_under_a_hooks_lock_is_seen_and_told_to_its_holder(
    gateway: GatewayProcess, shop: Path
) -> None:
    hook(gateway, "UserPromptSubmit", shop, prompt="Add VAT")
    assert edit(gateway, "PreToolUse", shop / "cart.py") == {}
    with (shop / "cart.py").open("a") as file:
        file.write("\n# by sed\n")
    wait_until(lambda: all_events(gateway, "type=conflict.detected"), "the conflict")
    (found,) = all_events(gateway, "type=conflict.detected")
    assert (found["data"]["status"], found["data"]["by"]) == ("unlocked", "unknown")
    assert found["data"]["holder"]["owner"] == NAME
    assert "Conflict on cart.py: unlocked, written by unknown." in told(
        edit(gateway, "PostToolUse", shop / "cart.py")
    )


def test_a_tools_own_edit_is_no_conflict_and_no_news_to_it(gateway: GatewayProcess, shop: Path) -> None:
    wait_for_graph(gateway)
    hook(gateway, "UserPromptSubmit", shop, prompt="Add VAT")
    edit(gateway, "PreToolUse", shop / "cart.py")
    (shop / "cart.py").write_text("def total(cart, vat):\n    return 1\n")
    assert edit(gateway, "PostToolUse", shop / "cart.py") == {}
    wait_until(lambda: all_events(gateway, "source=watcher&type=file.changed"), "what the watcher saw")
    wait_until(lambda: all_events(gateway, "type=context.changed"), "the change")
    assert hook(gateway, "UserPromptSubmit", shop, prompt="Go on") == {}
    assert all_events(gateway, "type=conflict.detected") == []


def test_anothers_signature_comes_with_who_calls_it(gateway: GatewayProcess, shop: Path) -> None:
    wait_for_graph(gateway)
    hook(gateway, "UserPromptSubmit", shop, prompt="Use it")
    (shop / "cart.py").write_text("def total(cart, vat):\n    return 1\n")
    wait_until(lambda: all_events(gateway, "type=context.changed"), "the change")
    said: list[str] = []
    wait_until(
        lambda: said.append(told(hook(gateway, "UserPromptSubmit", shop, prompt="x"))) or any(said), "it"
    )
    heard = "\n".join(said)
    assert "cart.py::total is now `" in heard and "vat" in heard and "called in bill.py" in heard


def test_a_turn_that_was_cut_short_holds_nothing_in_the_next(gateway: GatewayProcess, shop: Path) -> None:
    edit(gateway, "PreToolUse", shop / "cart.py")
    assert owners(gateway) == [NAME]
    hook(gateway, "UserPromptSubmit", shop, prompt="No, not like that")
    assert owners(gateway) == []


def test_the_end_of_a_session_ends_what_its_sub_agents_hold(gateway: GatewayProcess, shop: Path) -> None:
    edit(gateway, "PreToolUse", shop / "cart.py", agent_id="agent-00000001")
    assert owners(gateway) == [f"{NAME}/00000001"]
    hook(gateway, "Stop", shop)
    assert owners(gateway) == [f"{NAME}/00000001"]
    hook(gateway, "SessionEnd", shop)
    assert owners(gateway) == []


def test_what_cursor_cannot_hear_before_a_prompt_comes_after_its_next_edit(
    gateway: GatewayProcess, shop: Path
) -> None:
    about = {"conversation_id": "conversation-1", "workspace_roots": [str(shop)]}

    def cursor(event: str, **more: Any) -> Any:
        return call(gateway, "POST", "/hooks/cursor", {**about, "hook_event_name": event, **more}).json()

    other = {"type": "file.changed", "source": "ci", "workspace": "shop", "subject": "b.py", "priority": "P0"}
    assert cursor("beforeSubmitPrompt", prompt="go") == {}
    call(gateway, "POST", "/v1/events", other)
    assert cursor("beforeSubmitPrompt", prompt="on") == {}
    assert cursor("afterFileEdit", file_path=str(shop / "cart.py"), edits=[]) == {}
    written = {"tool_name": "Write", "tool_input": {"file_path": str(shop / "cart.py")}, "tool_use_id": "1"}
    said = cursor("postToolUse", **written)["additional_context"]
    assert "`cursor/sation-1`" in said and "b.py (by ci)" in said


def test_a_token_does_what_it_may_and_says_what_it_lacks(tmp_path: Path, shop: Path) -> None:
    tokens = [{"name": name, "token": f"secret-{name}", "scopes": scopes} for name, scopes in TOKENS.items()]
    (tmp_path / "herdr.yaml").write_text(json.dumps({"auth": {"tokens": tokens}}))
    at = ("--config", str(tmp_path / "herdr.yaml"), "--workspace", str(shop))
    mine = {"authorization": "Bearer secret-all"}
    with running_gateway(tmp_path / "data", *at) as gateway:
        assert call(gateway, "POST", "/hooks/claude-code", {}).status == 401
        for token in ("teller", "reader"):
            answer = edit(gateway, "PreToolUse", shop / "cart.py", token=token)
            assert set(answer) == {"systemMessage"} and "lacks locks;" in answer["systemMessage"]
        assert owners(gateway, **mine) == []
        assert edit(gateway, "PreToolUse", shop / "cart.py", token="locker") == {}
        assert owners(gateway, **mine) == [NAME]
        assert (
            "lacks events:publish;"
            in hook(gateway, "UserPromptSubmit", shop, "reader", prompt="x")["systemMessage"]
        )
        answer = edit(gateway, "PostToolUse", shop / "cart.py", token="locker")
        assert "lacks events:publish;" in answer["systemMessage"]
        assert owners(gateway, **mine) == []
        assert "systemMessage" not in hook(gateway, "UserPromptSubmit", shop, "all", prompt="x")
        said = call(gateway, "GET", "/v1/events?after=0&type=user.message", headers=mine).json()["events"]
        assert [event["source"] for event in said] == [NAME]
