"""Pure: the `input` of a Responses request, item by item, into a conversation."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

import msgspec

from herdr.pool.protocols.carried import unpack
from herdr.pool.protocols.json_text import as_object
from herdr.pool.protocols.openai.content import Content, ContentPart, parts_of
from herdr.pool.protocols.openai.messages import plain_input, written_text
from herdr.pool.protocols.reading import decode, missing_field, one_of
from herdr.pool.protocols.responses.tools import flat_name, kind_decoder
from herdr.pool.request import Image, Message, Part, Role, Text, Thinking, ToolResult, ToolUse

T = TypeVar("T")
Turn = Literal["system", "user", "assistant", "results"]
Reader = Callable[[msgspec.Raw, str], tuple[Turn, tuple[Part, ...]]]

_TURNS: Mapping[str, Turn] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_ROLES: Mapping[Turn, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "results": "user",
}


class MessageItem(msgspec.Struct):
    """What somebody said."""

    role: str
    content: Content = None


class ReasoningItem(msgspec.Struct):
    """What the model thought."""

    summary: list[ContentPart] | None = None
    content: list[ContentPart] | None = None
    encrypted_content: str | None = None


class CallItem(msgspec.Struct):
    """A call of a function."""

    call_id: str
    name: str
    arguments: msgspec.Raw = msgspec.Raw()
    namespace: str | None = None


class CustomCallItem(msgspec.Struct):
    """A call of a plain-text tool."""

    call_id: str
    name: str
    input: str = ""
    namespace: str | None = None


class ShellCallItem(msgspec.Struct):
    """A call of the shell that some models have built in."""

    call_id: str | None = None
    id: str | None = None
    action: msgspec.Raw = msgspec.Raw()


class OutputItem(msgspec.Struct):
    """What a tool answered, of whichever kind: text, a list of parts, or another JSON value."""

    call_id: str | None = None
    id: str | None = None
    output: msgspec.Raw = msgspec.Raw()


_message_decoder = msgspec.json.Decoder(MessageItem)
_reasoning_decoder = msgspec.json.Decoder(ReasoningItem)
_call_decoder = msgspec.json.Decoder(CallItem)
_custom_call_decoder = msgspec.json.Decoder(CustomCallItem)
_shell_call_decoder = msgspec.json.Decoder(ShellCallItem)
_output_decoder = msgspec.json.Decoder(OutputItem)
_parts_decoder = msgspec.json.Decoder(list[ContentPart | str])


def messages_of(items: list[msgspec.Raw]) -> list[Message]:
    """Return the conversation. Items of unknown kinds are left out, and ids of items never get in.

    What the model did in a row (thinking, talking, calling) is one turn of it, and so are the outputs in a row.
    """
    turns: list[tuple[Turn, list[Part]]] = []
    for i, raw in enumerate(items):
        at = f"input[{i}]"
        read = _READERS.get(decode(kind_decoder, raw, at).type or "message")
        if read is None:
            continue
        turn, parts = read(raw, at)
        if turn in ("assistant", "results") and turns and turns[-1][0] == turn:
            turns[-1][1].extend(parts)
        elif parts or turn != "assistant":
            turns.append((turn, list(parts)))
    if turns and turns[-1][0] == "assistant" and all(isinstance(part, Thinking) for part in turns[-1][1]):
        turns.pop()  # Codex sends it when it repeats a call whose stream broke; the model is to think anew
    return [Message(_ROLES[turn], tuple(parts)) for turn, parts in turns]


def _message(raw: msgspec.Raw, at: str) -> tuple[Turn, tuple[Part, ...]]:
    item = decode(_message_decoder, raw, at)
    turn = one_of(item.role, _TURNS, f"{at}.role", "role")
    return turn, parts_of(item.content, f"{at}.content", keep_unknown=True)


def _reasoning(raw: msgspec.Raw, at: str) -> tuple[Turn, tuple[Part, ...]]:
    item = decode(_reasoning_decoder, raw, at)
    text = unpack(item.encrypted_content or "")
    if text is None:
        text = "\n\n".join([part.text for part in item.content or item.summary or () if part.text])
    return "assistant", (Thinking(text),) if text else ()


def _function_call(raw: msgspec.Raw, at: str) -> tuple[Turn, tuple[Part, ...]]:
    item = decode(_call_decoder, raw, at)
    arguments = as_object(written_text(item.arguments, f"{at}.arguments"))
    return "assistant", (ToolUse(item.call_id, flat_name(item.name, item.namespace), arguments),)


def _custom_call(raw: msgspec.Raw, at: str) -> tuple[Turn, tuple[Part, ...]]:
    item = decode(_custom_call_decoder, raw, at)
    name = flat_name(item.name, item.namespace)
    return "assistant", (ToolUse(item.call_id, name, plain_input(item.input)),)


def _shell_call(raw: msgspec.Raw, at: str) -> tuple[Turn, tuple[Part, ...]]:
    item = decode(_shell_call_decoder, raw, at)
    arguments = as_object(written_text(item.action, f"{at}.action"))
    return "assistant", (ToolUse(_id(item, at), "local_shell", arguments),)


def _output(raw: msgspec.Raw, at: str) -> tuple[Turn, tuple[Part, ...]]:
    item = decode(_output_decoder, raw, at)
    return "results", (ToolResult(_id(item, at), _output_parts(item.output, f"{at}.output")),)


def _output_parts(output: msgspec.Raw, at: str) -> tuple[Text | Image, ...]:
    if bytes(output).startswith(b"["):
        return parts_of(decode(_parts_decoder, output, at), at, keep_unknown=True)
    text = written_text(output, at)
    return (Text(text),) if text else ()


def _id(item: ShellCallItem | OutputItem, at: str) -> str:
    id_ = item.call_id or item.id
    if id_ is None:
        raise missing_field(f"{at}.call_id")
    return id_


_READERS: Mapping[str, Reader] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    "local_shell_call": _shell_call,
    "local_shell_call_output": _output,
}
