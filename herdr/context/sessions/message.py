"""Pure: one message of a session, from whatever an event about it carried. Never raises on odd data."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

import msgspec

Role = Literal["user", "assistant", "tool", "system"]

PARTS_MAX = 1000  # blocks of one message that are read; an event has 1 MiB, and a block is some 50 bytes
DEPTH_MAX = 8  # blocks within blocks: a tool result within a message is two deep
CALLS_MAX = 32  # calls of one message that are kept; models make a handful at once
FILES_MAX = 64  # files of one message that are kept
PATH_MAX = 400  # characters; what is longer is no path that anybody reads
COMMAND_MAX = 300  # characters of a command that are kept: enough to tell one from another

_ROLES: dict[str, Role] = {
    **{role: role for role in get_args(Role)},
    **{"human": "user", "ai": "assistant", "agent": "assistant", "model": "assistant"},
    **{"function": "tool", "tool_result": "tool", "developer": "system"},
}
_ROLE_OF_TYPE: dict[str, Role] = {
    "user.message": "user",
    "assistant.message": "assistant",
    "tool.result": "tool",
}
_TEXT_FIELDS = (
    *(
        "content",
        "text",
        "message",
        "prompt",
        "output",
        "result",
        "tool_response",
        "parts",
        "response",
        "body",
    ),
    "error",
)
_TOOL_FIELDS = ("tool", "tool_name", "name")
_INPUT_FIELDS = ("input", "tool_input", "arguments", "args", "parameters")
_PATH_FIELDS = ("file_path", "path", "paths", "notebook_path", "filename", "file", "files", "target_file")
_COMMAND_FIELDS = ("command", "cmd", "script")
_HERE_DOCUMENT = re.compile(r"(<<-?\s*['\"]?(\w+)['\"]?).*?(?:^\2$|\Z)", re.S | re.M)
_SILENT_BLOCKS = {"thinking", "reasoning", "redacted_thinking", "image", "image_url", "audio"}


class Call(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A tool that was called, or, in a message of the role `tool`, the call that it answers."""

    name: str
    command: str = ""
    """What a shell was told, as far as COMMAND_MAX."""
    files: tuple[str, ...] = ()
    id: str = ""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message."""

    seq: int
    """The log's number of the event."""
    id: str
    role: Role
    source: str
    time_us: int
    """Microseconds since the epoch."""
    text: str
    """The content without structure; what a tool answered, for the role `tool`."""
    tool: str = ""
    """The tool that answers here."""
    files: tuple[str, ...] = ()
    """Files that the message names in its structure, not in its text."""
    calls: tuple[Call, ...] = ()
    answers: str = ""
    """The id of the call that a tool's message answers, where it said so."""
    failed: bool | None = None
    """Whether a tool said that it failed; None: it said nothing about it."""


class _Parts:
    """What has been gathered from the blocks of one message."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.results: list[str] = []
        self.calls: list[Call] = []
        self.answers = ""
        self.failed: bool | None = None
        self.left = PARTS_MAX


def read_message(data: Any, *, type: str, seq: int, id: str, source: str, time_us: int) -> Message:
    """Return the message that an event of `type` with the decoded payload `data` stands for.

    Reads `session.message` (`{"role", "content": text or blocks, "tool"?, "files"?, "tool_calls"?}`),
    `user.message`, `assistant.message` and `tool.result`, whose payload may be a plain string or an object.
    """
    fields: Mapping[str, Any] = data if isinstance(data, Mapping) else {"content": data}
    parts = _Parts()
    _gather(_content(fields), parts, 0)
    role = _role(fields, type, parts)
    parts.calls.extend(_called(fields.get("tool_calls")))
    tool = _first_text(fields, _TOOL_FIELDS) if role == "tool" else ""
    if role == "tool" and tool:
        parts.calls.insert(0, _call(tool, _first(fields, _INPUT_FIELDS), ""))
    results = parts.results if role == "tool" or not parts.said else []
    return Message(
        seq=seq,
        id=id,
        role=role,
        source=source,
        time_us=time_us,
        text="\n\n".join([*parts.said, *results]),
        tool=tool[:COMMAND_MAX],
        files=_unique([*_paths(fields.get("files")), *_paths(fields.get("file"))]),
        calls=tuple(parts.calls[:CALLS_MAX]),
        answers=parts.answers or _first_text(fields, ("tool_call_id", "tool_use_id", "call_id")),
        failed=parts.failed if parts.failed is not None else _failed(fields),
    )


def _role(fields: Mapping[str, Any], type: str, parts: _Parts) -> Role:
    named = fields.get("role")
    role = _ROLES.get(named.lower()) if isinstance(named, str) else None
    role = role or _ROLE_OF_TYPE.get(type, "user")
    # Some APIs send what tools answered in the user's name.
    return "tool" if role == "user" and parts.results and not parts.said else role


def _gather(content: Any, parts: _Parts, depth: int) -> None:
    """Walk the content in order; what lies too deep, or is one block too many, is left out."""
    if content is None or depth > DEPTH_MAX or parts.left <= 0:
        return
    parts.left -= 1
    if isinstance(content, Mapping):
        _gather_block(content, parts, depth)
    elif isinstance(content, list | tuple):
        for block in content:
            _gather(block, parts, depth + 1)
    else:
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        if text.strip():
            parts.said.append(text)


def _content(fields: Mapping[str, Any]) -> Any:
    """Return what of an object is its text: one field, or both streams of a command."""
    streams = [fields[name] for name in ("stdout", "stderr") if fields.get(name)]
    return streams or _first(fields, _TEXT_FIELDS)


def _gather_block(block: Mapping[str, Any], parts: _Parts, depth: int) -> None:
    kind = block.get("type")
    if isinstance(kind, str) and kind in _SILENT_BLOCKS:
        return
    if kind in ("tool_use", "tool_call", "function_call"):
        name = _first_text(block, _TOOL_FIELDS)
        parts.calls.append(_call(name, _first(block, _INPUT_FIELDS), _first_text(block, ("id", "call_id"))))
    elif kind in ("tool_result", "function_call_output"):
        inner = _Parts()
        inner.left = parts.left
        _gather(_content(block), inner, depth + 1)
        parts.left = inner.left
        parts.results.extend([*inner.said, *inner.results])
        parts.answers = parts.answers or _first_text(block, ("tool_use_id", "call_id"))
        parts.failed = _failed(block) if parts.failed is None else parts.failed
    else:
        _gather(_content(block), parts, depth + 1)


def _called(calls: Any) -> Iterator[Call]:
    """Yield `tool_calls`, with the fields of OpenAI's API or of the gateway's own records."""
    for call in calls[:CALLS_MAX] if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            inner = call.get("function")
            about = inner if isinstance(inner, Mapping) else call
            yield _call(
                _first_text(about, _TOOL_FIELDS), _first(about, _INPUT_FIELDS), _first_text(call, ("id",))
            )


def _call(name: str, given: Any, id: str) -> Call:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)  # unlike json, refuses half of a surrogate pair
        except msgspec.DecodeError:
            given = {"command": given}
        except RecursionError:  # nested as deep as 1 MiB allows
            given = None
    fields: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    command = _first(fields, _COMMAND_FIELDS)
    if isinstance(command, list):
        command = " ".join(map(str, command[:20]))
    files = [path for field in _PATH_FIELDS for path in _paths(fields.get(field))]
    return Call(name[:COMMAND_MAX], _short(str(command or "")), _unique(files), id[:COMMAND_MAX])


def _short(command: str) -> str:
    """Return a command without the files that it spells out, and its two ends if it is long all the same."""
    bare = _HERE_DOCUMENT.sub(r"\1", command)
    return (
        bare if len(bare) <= COMMAND_MAX else f"{bare[: COMMAND_MAX // 2]} … {bare[-COMMAND_MAX // 2 + 3 :]}"
    )


def _paths(value: Any) -> Iterator[str]:
    """Yield one path, several, or those of objects that have one."""
    for item in value[:FILES_MAX] if isinstance(value, list | tuple) else [value]:
        if isinstance(item, Mapping):
            item = _first(item, _PATH_FIELDS)
        if isinstance(item, str) and 0 < len(item) <= PATH_MAX and "\n" not in item:
            yield item.replace("\\", "/")


def _failed(fields: Mapping[str, Any]) -> bool | None:
    for name in ("is_error", "failed"):
        if isinstance(flag := fields.get(name), bool):
            return flag
    for name in ("exit_code", "exitCode", "returncode"):
        if isinstance(code := fields.get(name), int):
            return code != 0
    if isinstance(flag := fields.get("success"), bool):
        return not flag
    return True if fields.get("error") and not fields.get("content") else None


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) not in (None, "", [], {})), None)


def _first_text(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))[:FILES_MAX]
