"""Pure: Claude Code's hooks (docs.claude.com, hooks reference), whose form Codex and VS Code have taken over.

Its file tools give absolute paths. Writes by its shell tool come as a command and are not told apart here: the
watcher finds them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from herdr.hooks.call import Call, Kind, Reply
from herdr.hooks.payload import fields, paths, text

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "SessionStart": "start",
        "SubagentStart": "start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before",
        "PostToolUse": "after",
        "PostToolUseFailure": "undone",
        "PermissionDenied": "undone",
        "Stop": "answer",
        "StopFailure": "answer",
        "SubagentStop": "answer",
        "Interrupt": "answer",
        "PostCompact": "compacted",
        "SessionEnd": "end",
    }
)
WRITES = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
SAY = frozenset({"SessionStart", "SubagentStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"})
"""Events whose answer may hold additional context."""


def written(tool: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a call of a tool writes."""
    return paths(arguments) if tool in WRITES else ()


def decode(
    payload: Mapping[str, Any],
    client: str = "claude-code",
    written: Callable[[str, Mapping[str, Any]], tuple[str, ...]] = written,
) -> Call:
    """Read one payload."""
    event, tool = text(payload, "hook_event_name", "hookEventName"), text(payload, "tool_name", "toolName")
    return Call(
        client=client,
        kind=KINDS.get(event, "other"),
        event=event,
        session=text(payload, "session_id", "sessionId"),
        agent=text(payload, "agent_id"),
        cwd=text(payload, "cwd"),
        tool=tool,
        use=text(payload, "tool_use_id", "toolUseId", "call_id"),
        paths=written(tool, fields(payload, "tool_input", "toolInput")),
        text=text(payload, "prompt", "last_assistant_message", "compact_summary"),
        hears=event in SAY,
    )


def encode(call: Call, reply: Reply) -> dict[str, Any]:
    """Return the answer. Nothing to say is `{}`, never `allow`: the user's own permission prompt stays."""
    answer: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if reply.deny is not None and call.kind == "before":
        own = {"permissionDecision": "deny", "permissionDecisionReason": reply.deny}
    if reply.context is not None and call.hears:
        own["additionalContext"] = reply.context
    if own:
        answer["hookSpecificOutput"] = {"hookEventName": call.event, **own}
    if reply.notice is not None:
        answer["systemMessage"] = reply.notice
    return answer
