"""Pure: Cursor's hooks (cursor.com/docs, hooks). It has no word for additional context before a prompt is sent."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from herdr.hooks.call import Call, Kind, Reply
from herdr.hooks.payload import fields, paths, text

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "sessionStart": "start",
        "beforeSubmitPrompt": "prompt",
        "preToolUse": "before",
        "postToolUse": "after",
        "postToolUseFailure": "undone",
        "afterFileEdit": "after",
        "afterTabFileEdit": "after",
        "afterAgentResponse": "answer",
        "stop": "answer",
        "subagentStop": "answer",
        "sessionEnd": "end",
    }
)
WRITES = frozenset({"Write", "Edit", "MultiEdit", "StrReplace", "search_replace", "edit_file", "Delete"})
EDITED = frozenset({"afterFileEdit", "afterTabFileEdit"})
"""Events that are an edit themselves."""
SAY = frozenset({"sessionStart", "postToolUse"})


def decode(payload: Mapping[str, Any]) -> Call:
    """Read one payload."""
    event, tool = text(payload, "hook_event_name"), text(payload, "tool_name")
    arguments = payload if event in EDITED else fields(payload, "tool_input")
    roots = payload.get("workspace_roots")
    root = next((r for r in roots if isinstance(r, str)), "") if isinstance(roots, list) else ""
    return Call(
        client="cursor",
        kind=KINDS.get(event, "other"),
        event=event,
        session=text(payload, "conversation_id", "session_id"),
        cwd=text(payload, "cwd") or root,
        tool=tool,
        use=text(payload, "tool_use_id", "tool_call_id"),
        paths=paths(arguments) if event in EDITED or tool in WRITES else (),
        text=text(payload, "prompt", "text"),
        hears=event in SAY,
    )


def encode(call: Call, reply: Reply) -> dict[str, Any]:
    """Return the answer; nothing to say is `{}`, never `allow`."""
    if reply.deny is not None and call.kind == "before":
        return {"permission": "deny", "user_message": reply.deny, "agent_message": reply.deny}
    told = "\n".join(text for text in (reply.context, reply.notice) if text is not None)
    return {"additional_context": told} if told and call.hears else {}
