"""Pure: what Herdr's own plugin for opencode sends, and what it is answered.

The plugin posts one object for each of opencode's hooks that it uses:

    {"event": "tool.execute.before",   or tool.execute.after, chat.message, session.created, session.idle,
                                       session.compacted, session.deleted, session.error
     "session": "ses_…", "directory": "/home/me/project",
     "tool": "edit", "call": "call_…", "args": {"filePath": "…"},      for tools
     "text": "…"}                                                      for prompts and answers

The answer is `{"deny": text, "context": text, "notice": text}`, each only if there is something to say. The plugin
throws `deny` before the tool runs, and adds `context` to the tool's output, a prompt's to that of the next tool. What
it is answered to `session.*` it does not look at.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from herdr.hooks.call import Call, Kind, Reply
from herdr.hooks.payload import fields, patched, paths, text

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "session.created": "start",
        "chat.message": "prompt",
        "tool.execute.before": "before",
        "tool.execute.after": "after",
        "session.idle": "answer",
        "session.error": "answer",
        "session.compacted": "compacted",
        "session.deleted": "end",
    }
)
WRITES = frozenset({"edit", "write", "multiedit"})
SAY = frozenset({"chat.message", "tool.execute.after"})
PATCHES = frozenset({"patch", "apply_patch"})


def decode(payload: Mapping[str, Any]) -> Call:
    """Read one payload."""
    event, tool, arguments = text(payload, "event"), text(payload, "tool"), fields(payload, "args")
    written = patched(arguments) if tool in PATCHES else paths(arguments) if tool in WRITES else ()
    return Call(
        client="opencode",
        kind=KINDS.get(event, "other"),
        event=event,
        session=text(payload, "session"),
        cwd=text(payload, "directory"),
        tool=tool,
        use=text(payload, "call"),
        paths=written,
        text=text(payload, "text"),
        hears=event in SAY,
    )


def encode(call: Call, reply: Reply) -> dict[str, Any]:
    """Return the answer; nothing to say is `{}`."""
    return {name: value for name, value in reply._asdict().items() if value is not None}
