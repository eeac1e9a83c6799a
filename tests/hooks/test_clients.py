"""Each tool's payloads, written by hand from its documents, and the answers in its own form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.hooks.call import PATHS_MAX, TEXT_MAX, Call, Reply, short
from herdr.hooks.clients import CLIENTS

ID = "11112222-3333-4444-5555-666677778888"
PATCH = """*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@
-x
+y
*** Add File: new.py
+z
*** Delete File: src/a.py
*** End Patch"""
PATCHED = ("src/a.py", "src/b.py", "new.py")


def claude(event: str, **more: Any) -> dict[str, Any]:
    return {"session_id": ID, "cwd": "/shop", "hook_event_name": event, **more}


def tool(event: str, name: str, **arguments: Any) -> dict[str, Any]:
    return claude(event, tool_name=name, tool_input=arguments, tool_use_id="toolu_1")


def read(client: str, payload: dict[str, Any]) -> Call:
    return CLIENTS[client].decode(payload)


def written(client: str, reply: Reply, payload: dict[str, Any]) -> dict[str, Any]:
    return CLIENTS[client].encode(read(client, payload), reply)


CURSOR = {"conversation_id": ID, "generation_id": "g", "workspace_roots": ["/shop", "/other"]}
OPENCODE = {"session": "ses_0123456789", "directory": "/shop"}
BEFORE: dict[str, dict[str, Any]] = {
    "claude-code": tool("PreToolUse", "Edit", file_path="/shop/a.py", old_string="x"),
    "codex": tool("PreToolUse", "apply_patch", command=PATCH),
    "cursor": {
        **CURSOR,
        "hook_event_name": "preToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": "/shop/a.py"},
        "tool_use_id": "toolu_1",
    },
    "gemini": tool("BeforeTool", "replace", file_path="/shop/a.py"),
    "opencode": {
        **OPENCODE,
        "event": "tool.execute.before",
        "tool": "edit",
        "call": "toolu_1",
        "args": {"filePath": "/shop/a.py"},
    },
    "vscode": tool("PreToolUse", "replaceString", filePath="/shop/a.py"),
}
AFTER: dict[str, dict[str, Any]] = {
    "claude-code": tool("PostToolUse", "Edit", file_path="/shop/a.py"),
    "codex": tool("PostToolUse", "apply_patch", command=PATCH),
    "cursor": {**BEFORE["cursor"], "hook_event_name": "postToolUse"},
    "gemini": tool("AfterTool", "replace", file_path="/shop/a.py"),
    "opencode": {**BEFORE["opencode"], "event": "tool.execute.after"},
    "vscode": tool("PostToolUse", "replaceString", filePath="/shop/a.py"),
}
PROMPT: dict[str, dict[str, Any]] = {
    "claude-code": claude("UserPromptSubmit", prompt="do it"),
    "codex": claude("UserPromptSubmit", prompt="do it"),
    "cursor": {**CURSOR, "hook_event_name": "beforeSubmitPrompt", "prompt": "do it"},
    "gemini": claude("BeforeAgent", prompt="do it"),
    "opencode": {**OPENCODE, "event": "chat.message", "text": "do it"},
    "vscode": claude("UserPromptSubmit", prompt="do it"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_before_an_edit_the_file_is_known(client: str) -> None:
    call = read(client, BEFORE[client])
    assert (call.client, call.kind, call.cwd, call.use) == (client, "before", "/shop", "toolu_1")
    assert call.paths == (PATCHED if client == "codex" else ("/shop/a.py",))
    assert call.name == f"{client}/{'23456789' if client == 'opencode' else '77778888'}"


@pytest.mark.parametrize("client", CLIENTS)
def test_after_an_edit_it_is_known_as_well(client: str) -> None:
    before, after = read(client, BEFORE[client]), read(client, AFTER[client])
    assert after.kind == "after"
    assert (after.paths, after.use, after.name) == (before.paths, before.use, before.name)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_prompt_is_read_and_bounded(client: str) -> None:
    assert (read(client, PROMPT[client]).kind, read(client, PROMPT[client]).text) == ("prompt", "do it")
    name = "text" if client == "opencode" else "prompt"
    assert len(read(client, {**PROMPT[client], name: "x" * (TEXT_MAX + 1)}).text) == TEXT_MAX


@pytest.mark.parametrize(
    ("client", "payload", "kind", "text"),
    [
        ("claude-code", claude("SessionStart", source="startup"), "start", ""),
        ("claude-code", claude("SubagentStop", agent_id="agent-123456789"), "answer", ""),
        ("claude-code", claude("Stop", last_assistant_message="done"), "answer", "done"),
        ("claude-code", claude("PostToolUseFailure", tool_name="Edit"), "undone", ""),
        ("claude-code", claude("PermissionDenied", tool_name="Edit"), "undone", ""),
        ("claude-code", claude("PostCompact", compact_summary="so far"), "compacted", "so far"),
        ("claude-code", claude("PreCompact", trigger="auto"), "other", ""),
        ("claude-code", claude("SessionEnd", reason="exit"), "end", ""),
        ("codex", claude("Stop", last_assistant_message="done"), "answer", "done"),
        ("cursor", {**CURSOR, "hook_event_name": "afterAgentResponse", "text": "done"}, "answer", "done"),
        ("cursor", {**CURSOR, "hook_event_name": "stop", "status": "completed"}, "answer", ""),
        ("cursor", {**CURSOR, "hook_event_name": "sessionEnd"}, "end", ""),
        ("gemini", claude("AfterAgent", prompt="do it", prompt_response="done"), "answer", "done"),
        (
            "gemini",
            claude("BeforeAgent", prompt="<hook_context>Herdr: news\nof two lines</hook_context>\n\ndo it"),
            "prompt",
            "do it",
        ),
        ("gemini", claude("SessionEnd"), "end", ""),
        ("opencode", {**OPENCODE, "event": "session.created"}, "start", ""),
        ("opencode", {**OPENCODE, "event": "session.idle", "text": "done"}, "answer", "done"),
        ("opencode", {**OPENCODE, "event": "session.deleted"}, "end", ""),
        ("vscode", {"hookEventName": "SessionStart", "sessionId": ID, "cwd": "/shop"}, "start", ""),
        ("vscode", claude("Stop", last_assistant_message="done"), "answer", "done"),
    ],
)
def test_what_else_happens_in_a_session(client: str, payload: dict[str, Any], kind: str, text: str) -> None:
    call = read(client, payload)
    assert (call.kind, call.text, call.cwd) == (kind, text, "/shop")
    assert call.session


@pytest.mark.parametrize(
    ("client", "payload"),
    [
        ("claude-code", tool("PreToolUse", "Read", file_path="/shop/a.py")),
        ("claude-code", tool("PreToolUse", "Bash", command="sed -i s/a/b/ /shop/a.py")),
        ("codex", tool("PreToolUse", "shell", command=PATCH)),
        ("cursor", {**BEFORE["cursor"], "tool_name": "Read"}),
        ("gemini", tool("BeforeTool", "read_file", file_path="/shop/a.py")),
        ("opencode", {**BEFORE["opencode"], "tool": "read"}),
        ("vscode", tool("PreToolUse", "readFile", filePath="/shop/a.py")),
    ],
)
def test_who_reads_or_runs_a_command_writes_no_file_that_is_known(
    client: str, payload: dict[str, Any]
) -> None:
    assert read(client, payload).paths == ()


@pytest.mark.parametrize(
    ("client", "payload", "paths"),
    [
        (
            "claude-code",
            tool("PreToolUse", "NotebookEdit", notebook_path="/shop/n.ipynb"),
            ("/shop/n.ipynb",),
        ),
        (
            "cursor",
            {**CURSOR, "hook_event_name": "afterFileEdit", "file_path": "/shop/t.py"},
            ("/shop/t.py",),
        ),
        ("opencode", {**BEFORE["opencode"], "tool": "patch", "args": {"patchText": PATCH}}, PATCHED),
        ("vscode", tool("PreToolUse", "editFiles", files=["/a", "/b", "/a"]), ("/a", "/b")),
        (
            "vscode",
            tool(
                "PreToolUse",
                "multi_replace_string_in_file",
                replacements=[{"filePath": "/a"}, {"filePath": "/b"}, 5],
            ),
            ("/a", "/b"),
        ),
        ("codex", tool("PreToolUse", "apply_patch", input=["apply_patch", PATCH]), PATCHED),
        (
            "claude-code",
            tool("PreToolUse", "MultiEdit", file_path="/a", edits=[{"old_string": "x"}]),
            ("/a",),
        ),
    ],
)
def test_every_way_to_name_files(client: str, payload: dict[str, Any], paths: tuple[str, ...]) -> None:
    assert read(client, payload).paths == paths


def test_so_many_files_as_one_lock_covers() -> None:
    named = [f"/f{n}" for n in range(PATHS_MAX + 5)]
    assert len(read("vscode", tool("PreToolUse", "editFiles", files=named)).paths) == PATHS_MAX
    patch = "\n".join(f"*** Add File: {name}" for name in named)
    assert len(read("codex", tool("PreToolUse", "apply_patch", command=patch)).paths) == PATHS_MAX


def test_a_sub_agent_has_a_name_of_its_own() -> None:
    call = read("claude-code", {**BEFORE["claude-code"], "agent_id": "agent-123456789"})
    assert call.name == "claude-code/77778888/23456789"
    assert call.conversation == f"claude-code/{ID}"


@pytest.mark.parametrize("odd", ["a b/c\nd\u202e", "x" * 500])
def test_an_odd_id_makes_a_name_that_can_be_one(odd: str) -> None:
    call = read("claude-code", claude("Stop", session_id=odd))
    assert call.name.count("/") == 1 and call.name.isprintable() and " " not in call.name
    assert len(call.conversation) <= 128 and short(odd)


ALIKE = ("claude-code", "codex", "vscode")
DENIAL = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
DENIED = {
    **{client: {"hookSpecificOutput": DENIAL} for client in ALIKE},
    "cursor": {"permission": "deny", "user_message": "no", "agent_message": "no"},
    "gemini": {"decision": "deny", "reason": "no"},
    "opencode": {"deny": "no"},
}
TOLD = {
    **{
        client: {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "news"}}
        for client in ALIKE
    },
    "cursor": {"additional_context": "news"},
    "gemini": {"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "news"}},
    "opencode": {"context": "news"},
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_denial_is_said_in_the_tools_own_form(client: str) -> None:
    assert written(client, Reply(deny="no"), BEFORE[client]) == DENIED[client]


@pytest.mark.parametrize("client", CLIENTS)
def test_news_for_the_model_are_too(client: str) -> None:
    assert written(client, Reply(context="news"), AFTER[client]) == TOLD[client]


@pytest.mark.parametrize("client", CLIENTS)
def test_so_are_notices_for_the_user(client: str) -> None:
    named = {"cursor": "additional_context", "opencode": "notice"}.get(client, "systemMessage")
    assert written(client, Reply(notice="look"), AFTER[client]) == {named: "look"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("payloads", [BEFORE, AFTER, PROMPT])
def test_nothing_to_say_is_an_empty_object_and_never_allow(
    client: str, payloads: dict[str, dict[str, Any]]
) -> None:
    assert written(client, Reply(), payloads[client]) == {}


@pytest.mark.parametrize("client", ["claude-code", "codex", "vscode", "gemini", "cursor"])
def test_where_a_tool_takes_none_there_is_no_denial_and_no_context(client: str) -> None:
    end = {"hook_event_name": "sessionEnd" if client == "cursor" else "SessionEnd", "session_id": ID}
    assert written(client, Reply(deny="no", context="news"), end) == {}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("client", CLIENTS)
@given(data=st.data())
def test_what_is_odd_counts_as_absent(client: str, data: st.DataObject) -> None:
    payload = data.draw(st.fixed_dictionaries({}, optional={name: _JSON for name in BEFORE[client]}))
    call = read(client, {**BEFORE[client], **payload})
    assert all(isinstance(getattr(call, name), str) for name in ("session", "cwd", "tool", "use", "text"))
    assert all(isinstance(path, str) for path in call.paths)
    assert isinstance(CLIENTS[client].encode(call, Reply("no", "news", "look")), dict)
