"""Pure: Gemini CLI's hooks (geminicli.com, hooks reference)."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from herdr.hooks.call import Call, Kind, Reply
from herdr.hooks.payload import fields, paths, text

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "BeforeTool": "before",
        "AfterTool": "after",
        "AfterAgent": "answer",
        "SessionEnd": "end",
    }
)
WRITES = frozenset({"write_file", "replace", "edit"})
_TOLD = re.compile(r"<hook_context>.*?</hook_context>", re.DOTALL)
SAY = frozenset({"SessionStart", "BeforeAgent", "AfterTool"})


def decode(payload: Mapping[str, Any]) -> Call:
    """Read one payload."""
    event, tool = text(payload, "hook_event_name"), text(payload, "tool_name")
    return Call(
        client="gemini",
        kind=KINDS.get(event, "other"),
        event=event,
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
        tool=tool,
        use=text(payload, "tool_use_id", "call_id"),
        paths=paths(fields(payload, "tool_input")) if tool in WRITES else (),
        text=text(payload, "prompt_response") if event == "AfterAgent" else _prompt(payload),
        hears=event in SAY,
    )


def _prompt(payload: Mapping[str, Any]) -> str:
    """Return what the user said, without what hooks have told the model: Gemini sends that along."""
    return _TOLD.sub("", text(payload, "prompt")).strip()


def encode(call: Call, reply: Reply) -> dict[str, Any]:
    """Return the answer; nothing to say is `{}`."""
    answer: dict[str, Any] = {}
    if reply.deny is not None and call.kind == "before":
        answer = {"decision": "deny", "reason": reply.deny}
    if reply.context is not None and call.hears:
        answer["hookSpecificOutput"] = {"hookEventName": call.event, "additionalContext": reply.context}
    if reply.notice is not None:
        answer["systemMessage"] = reply.notice
    return answer
