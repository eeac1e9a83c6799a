"""Which of a tool's hooks can say something to its model: what it cannot hear must not be used up on it."""

from typing import Any

import pytest

from herdr.hooks.call import Reply
from herdr.hooks.clients import CLIENTS

HEARS = {
    "claude-code": {"SessionStart", "SubagentStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"},
    "codex": {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"},
    "cursor": {"sessionStart", "postToolUse"},
    "gemini": {"SessionStart", "BeforeAgent", "AfterTool"},
    "opencode": {"chat.message", "tool.execute.after"},
    "vscode": {"SessionStart", "SubagentStart", "PreToolUse", "PostToolUse"},
}
DEAF = {
    "claude-code": {"Stop", "SubagentStop", "PostCompact", "SessionEnd", "PostToolUseFailure", "NoSuchEvent"},
    "codex": {"Stop", "PostCompact", "SessionEnd"},
    "cursor": {"beforeSubmitPrompt", "preToolUse", "afterFileEdit", "afterAgentResponse", "stop"},
    "gemini": {"BeforeTool", "AfterAgent", "SessionEnd"},
    "opencode": {"session.created", "tool.execute.before", "session.idle", "session.compacted"},
    "vscode": {"UserPromptSubmit", "SubagentStop", "Stop"},
}


def payload(client: str, event: str) -> dict[str, Any]:
    name = {"opencode": "event", "vscode": "hookEventName"}.get(client, "hook_event_name")
    return {name: event, "session_id": "s", "conversation_id": "s", "session": "s"}


@pytest.mark.parametrize(("client", "event"), [(c, e) for c, events in HEARS.items() for e in sorted(events)])
def test_a_model_hears_what_its_tool_takes(client: str, event: str) -> None:
    call = CLIENTS[client].decode(payload(client, event))
    assert call.hears and "news" in str(CLIENTS[client].encode(call, Reply(context="news")))


@pytest.mark.parametrize(("client", "event"), [(c, e) for c, events in DEAF.items() for e in sorted(events)])
def test_elsewhere_nothing_is_said_to_it(client: str, event: str) -> None:
    call = CLIENTS[client].decode(payload(client, event))
    assert not call.hears
    if client != "opencode":  # whose form is our own: the plugin does not look at it there
        assert CLIENTS[client].encode(call, Reply(context="news")) == {}


def test_cursor_has_one_field_for_the_model_and_the_user() -> None:
    call = CLIENTS["cursor"].decode(payload("cursor", "postToolUse"))
    assert CLIENTS["cursor"].encode(call, Reply(context="news", notice="look")) == {
        "additional_context": "news\nlook"
    }


def test_a_turn_that_ends_with_an_error_has_ended() -> None:
    assert CLIENTS["claude-code"].decode(payload("claude-code", "StopFailure")).kind == "answer"
