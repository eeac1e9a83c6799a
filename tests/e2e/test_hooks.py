"""Tools' hooks against a real gateway; what they send is written by hand from the tools' documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import all_events, call, wait_until

CLAUDE = "11112222-3333-4444-5555-666677778888"
NAME = "claude-code/77778888"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.py").write_text("def total(cart):\n    return 0\n")
    return folder


@pytest.fixture
def gateway(tmp_path: Path, shop: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data", "--workspace", str(shop)) as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]


def hook(gateway: GatewayProcess, client: str, **payload: Any) -> dict[str, Any]:
    answer = call(gateway, "POST", f"/hooks/{client}", payload)
    assert answer.status == 200, answer
    return dict(answer.json())


def claude(gateway: GatewayProcess, event: str, folder: Path, **more: Any) -> dict[str, Any]:
    about = {"session_id": CLAUDE, "cwd": str(folder), "hook_event_name": event}
    return hook(gateway, "claude-code", **(about | more))


def edit(
    event: str, gateway: GatewayProcess, path: Path, use: str = "toolu_1", **more: Any
) -> dict[str, Any]:
    written = {"tool_name": "Edit", "tool_input": {"file_path": str(path)}, "tool_use_id": use}
    return claude(gateway, event, path.parent, **(written | more))


def locks(gateway: GatewayProcess) -> list[dict[str, Any]]:
    return list(call(gateway, "GET", "/v1/locks").json()["locks"])


def hold(gateway: GatewayProcess, owner: str, path: str = "a.py", **more: Any) -> dict[str, Any]:
    body = {"paths": [path], "owner": owner, "workspace": "shop", "purpose": "renames total()", **more}
    answer = call(gateway, "POST", "/v1/locks", body)
    assert answer.status == 201, answer
    return dict(answer.json())


def test_an_edit_holds_the_file_and_is_told_with_its_session_and_version(
    gateway: GatewayProcess, shop: Path
) -> None:
    assert edit("PreToolUse", gateway, shop / "a.py") == {}
    (held,) = locks(gateway)
    assert (held["owner"], held["paths"], held["ttl_s"]) == (NAME, ["a.py"], 600)
    (shop / "a.py").write_text("def total(cart):\n    return 1\n")
    assert "permissionDecision" not in str(edit("PostToolUse", gateway, shop / "a.py"))
    assert locks(gateway) == []
    wait_until(lambda: any(e["source"] == NAME for e in all_events(gateway, "type=file.changed")), "the edit")
    (told,) = (e for e in all_events(gateway, "type=file.changed") if e["source"] == NAME)
    assert (told["subject"], told["workspace"]) == ("a.py", "shop")
    assert told["session"] == f"claude-code/{CLAUDE}"
    assert told["data"]["hash"].startswith("sha256:") and told["data"]["tool_use_id"] == "toolu_1"
    late = {
        "type": "x.y",
        "source": "late",
        "workspace": "shop",
        "subject": "a.py",
        "based_on": told["seq"] - 1,
    }
    assert call(gateway, "POST", "/v1/events", late).json()["conflict"]["source"] == NAME


def test_a_file_that_another_holds_is_denied_with_who_and_why_until_it_is_released(
    gateway: GatewayProcess, shop: Path
) -> None:
    lock = hold(gateway, "cursor/refactor")
    denied = edit("PreToolUse", gateway, shop / "a.py")["hookSpecificOutput"]
    assert (denied["hookEventName"], denied["permissionDecision"]) == ("PreToolUse", "deny")
    for said in ("cursor/refactor", "renames total()", lock["expires"][:10]):
        assert said in denied["permissionDecisionReason"]
    call(gateway, "DELETE", f"/v1/locks/{lock['lock']}", {"token": lock["token"]})
    assert edit("PreToolUse", gateway, shop / "a.py") == {}


@pytest.mark.parametrize("event", ["PostToolUseFailure", "PermissionDenied", "Stop", "SessionEnd"])
def test_whatever_ends_a_tool_call_lets_go_of_the_file(
    gateway: GatewayProcess, shop: Path, event: str
) -> None:
    edit("PreToolUse", gateway, shop / "a.py")
    assert len(locks(gateway)) == 1
    edit(event, gateway, shop / "a.py")
    assert locks(gateway) == []


def test_two_calls_of_one_agent_hold_a_file_until_both_are_over(gateway: GatewayProcess, shop: Path) -> None:
    edit("PreToolUse", gateway, shop / "a.py", "toolu_1")
    edit("PreToolUse", gateway, shop / "a.py", "toolu_2")
    edit("PostToolUse", gateway, shop / "a.py", "toolu_1")
    assert len(locks(gateway)) == 1
    edit("PostToolUse", gateway, shop / "a.py", "toolu_2")
    assert locks(gateway) == []


def test_without_ids_each_call_lets_go_of_its_own_file(gateway: GatewayProcess, shop: Path) -> None:
    def gemini(event: str, name: str) -> None:
        written = {"tool_name": "replace", "tool_input": {"file_path": str(shop / name)}}
        hook(gateway, "gemini", session_id="s1", cwd=str(shop), hook_event_name=event, **written)

    for event, name in (("BeforeTool", "a.py"), ("BeforeTool", "b.py"), ("AfterTool", "b.py")):
        gemini(event, name)
    assert [lock["paths"] for lock in locks(gateway)] == [["a.py"]]
    gemini("AfterTool", "a.py")
    assert locks(gateway) == []


def test_what_an_agent_has_locked_itself_stays_its_own(gateway: GatewayProcess, shop: Path) -> None:
    hold(gateway, NAME)
    assert edit("PreToolUse", gateway, shop / "a.py") == {}
    edit("PostToolUse", gateway, shop / "a.py")
    edit("Stop", gateway, shop / "a.py")
    assert [lock["purpose"] for lock in locks(gateway)] == ["renames total()"]


def test_a_sub_agent_is_another_owner(gateway: GatewayProcess, shop: Path) -> None:
    assert edit("PreToolUse", gateway, shop / "a.py") == {}
    denied = edit("PreToolUse", gateway, shop / "a.py", "toolu_9", agent_id="ab12cd34ef")
    assert NAME in denied["hookSpecificOutput"]["permissionDecisionReason"]


def test_a_prompt_is_p0_and_belongs_to_the_session_with_the_answer(
    gateway: GatewayProcess, shop: Path
) -> None:
    told = claude(gateway, "UserPromptSubmit", shop, prompt="Rename total to sum")
    assert NAME in told["hookSpecificOutput"]["additionalContext"]
    claude(gateway, "Stop", shop, last_assistant_message="Renamed it.")
    claude(gateway, "PostCompact", shop, compact_summary="We renamed total.")
    said = [e for e in all_events(gateway) if e["type"].endswith(".message")]
    assert [(e["type"], e["priority"]) for e in said[:2]] == [
        ("user.message", "P0"),
        ("assistant.message", "P1"),
    ]
    session = f"claude-code/{CLAUDE}"
    kept = call(gateway, "GET", f"/v1/sessions/{session}/messages").json()["messages"]
    assert [m["content"] for m in kept] == ["Rename total to sum", "Renamed it.", "We renamed total."]


def test_what_others_changed_is_told_once(gateway: GatewayProcess, shop: Path) -> None:
    claude(gateway, "UserPromptSubmit", shop, prompt="one")
    body = {
        "type": "file.changed",
        "source": "cursor",
        "workspace": "shop",
        "subject": "b.py",
        "priority": "P0",
    }
    call(gateway, "POST", "/v1/events", body)
    told = claude(gateway, "UserPromptSubmit", shop, prompt="two")
    assert "b.py (by cursor)" in told["hookSpecificOutput"]["additionalContext"]
    assert claude(gateway, "UserPromptSubmit", shop, prompt="three") == {}


def test_what_is_addressed_to_an_agent_rides_along(gateway: GatewayProcess, shop: Path) -> None:
    claude(gateway, "UserPromptSubmit", shop, prompt="one")
    edit("PreToolUse", gateway, shop / "a.py")
    (held,) = locks(gateway)
    gone = call(gateway, "DELETE", f"/v1/locks/{held['lock']}?force=true&reason=the+user+asked")
    assert gone.status == 204
    told = edit("PostToolUse", gateway, shop / "a.py")
    assert "lock.released" in told["hookSpecificOutput"]["additionalContext"]
    assert "the user asked" in told["hookSpecificOutput"]["additionalContext"]


def test_a_folder_that_is_not_watched_is_told_once_with_what_to_do(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    told = claude(gateway, "SessionStart", tmp_path / "other", source="startup")
    assert f"herdr workspace add {tmp_path / 'other'}" in told["systemMessage"]
    assert claude(gateway, "UserPromptSubmit", tmp_path / "other", prompt="x") == {}
    assert edit("PreToolUse", gateway, tmp_path / "other" / "a.py") == {}
    assert locks(gateway) == []


def test_a_restart_in_the_midst_of_a_call_leaves_no_lock_behind(gateway: GatewayProcess, shop: Path) -> None:
    edit("PreToolUse", gateway, shop / "a.py")
    gateway.kill()
    gateway.start()
    assert len(locks(gateway)) == 1
    edit("PostToolUse", gateway, shop / "a.py")
    assert locks(gateway) == []


OTHERS = {
    "codex": (
        {
            "session_id": "s1",
            "hook_event_name": "PreToolUse",
            "tool_name": "apply_patch",
            "tool_use_id": "c1",
        },
        lambda folder: {
            "tool_input": {"command": "*** Begin Patch\n*** Update File: a.py\n@@\n*** End Patch"}
        },
        ("hookSpecificOutput", "permissionDecision", "deny"),
    ),
    "gemini": (
        {"session_id": "s1", "hook_event_name": "BeforeTool", "tool_name": "replace"},
        lambda folder: {"tool_input": {"file_path": str(folder / "a.py")}},
        ("decision", "deny"),
    ),
    "vscode": (
        {"sessionId": "s1", "hookEventName": "PreToolUse", "tool_name": "editFiles", "tool_use_id": "v1"},
        lambda folder: {"tool_input": {"files": [str(folder / "a.py")]}},
        ("hookSpecificOutput", "permissionDecision", "deny"),
    ),
    "cursor": (
        {"conversation_id": "s1", "hook_event_name": "preToolUse", "tool_name": "Write"},
        lambda folder: {"tool_input": {"file_path": str(folder / "a.py")}, "workspace_roots": [str(folder)]},
        ("permission", "deny"),
    ),
    "opencode": (
        {"session": "s1", "event": "tool.execute.before", "tool": "edit", "call": "c1"},
        lambda folder: {"args": {"filePath": "a.py"}, "directory": str(folder)},
        ("deny", "opencode: "),
    ),
}


@pytest.mark.parametrize("client", sorted(OTHERS))
def test_every_client_is_held_back_in_its_own_words(gateway: GatewayProcess, shop: Path, client: str) -> None:
    about, where, expected = OTHERS[client]
    lock = hold(gateway, "someone/else")
    denied: Any = hook(gateway, client, cwd=str(shop), **about, **where(shop))
    assert "someone/else" in str(denied)
    for key in expected[:-1]:
        denied = denied[key]
    assert denied == expected[-1] or client == "opencode"
    call(gateway, "DELETE", f"/v1/locks/{lock['lock']}", {"token": lock["token"]})
    assert hook(gateway, client, cwd=str(shop), **about, **where(shop)) == {}
    assert [lock["owner"] for lock in locks(gateway)] == [f"{client}/s1"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"[]", "invalid_request"),
        (b"{" * 9000, "invalid_json"),
        (b"\xff{}", "invalid_json"),
    ],
)
def test_what_is_no_payload_is_refused_in_words(gateway: GatewayProcess, body: bytes, code: str) -> None:
    answer = call(gateway, "POST", "/hooks/claude-code", body)
    assert answer.status == 400 and answer.json()["code"] == code, answer


def test_odd_payloads_change_nothing(gateway: GatewayProcess, shop: Path) -> None:
    for payload in (
        {},
        {"hook_event_name": 7, "session_id": [1]},
        {"hook_event_name": "NoSuchEvent", "session_id": "x"},
        {"hook_event_name": "PreToolUse", "session_id": "x", "tool_name": "Edit", "tool_input": "text"},
        {
            "hook_event_name": "PreToolUse",
            "session_id": "x",
            "tool_name": "Edit",
            "tool_input": {"file_path": 1},
        },
    ):
        assert hook(gateway, "claude-code", **payload) == {}
    assert locks(gateway) == []
    assert call(gateway, "POST", "/hooks/nobody", {}).json()["code"] == "unknown_client"


@pytest.mark.parametrize("name", ["a\nb.py", "\x1b[31m.py", "x" * 5000, "../outside.py", "a\0b"])
def test_a_path_that_no_event_can_name_is_left_out(gateway: GatewayProcess, shop: Path, name: str) -> None:
    for event in ("PreToolUse", "PostToolUse"):
        payload = {
            "tool_name": "Edit",
            "tool_input": {"file_path": f"{shop}/{name}"},
            "tool_use_id": "toolu_1",
        }
        assert "deny" not in str(claude(gateway, event, shop, **payload))
    assert locks(gateway) == []
    assert [e for e in all_events(gateway) if e["source"] == NAME and e["type"] == "file.changed"] == []
