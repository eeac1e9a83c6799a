"""Pure: the `messages` of a chat completion."""

from typing import Any

import msgspec

from herdr.pool.protocols.json_text import as_object
from herdr.pool.protocols.openai.content import Content, parts_of
from herdr.pool.protocols.openai.conversation import conversation, role_of
from herdr.pool.protocols.reading import decode, given, missing_field
from herdr.pool.request import Image, Message, Text, Thinking, ToolResult, ToolUse

_encode = msgspec.json.Encoder().encode
_string = msgspec.json.Decoder(str)


class CalledFunction(msgspec.Struct):
    """Which function was called; `arguments` is JSON text in a string (a few clients send the object)."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b'""')


class CustomCall(msgspec.Struct):
    """A call of a tool that takes plain text."""

    name: str
    input: str = ""


class Call(msgspec.Struct):
    """One of an assistant's tool calls."""

    id: str
    type: str = "function"
    function: CalledFunction | None = None
    custom: CustomCall | None = None


class ChatMessage(msgspec.Struct):
    """One message; which fields count depends on its role."""

    role: str
    content: Content = None
    tool_calls: list[Call] | None = None
    function_call: CalledFunction | None = None
    tool_call_id: str | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None  # a string with some servers, an object with others


def messages_of(messages: list[ChatMessage]) -> tuple[Message, ...]:
    """Return the conversation; tool messages in a row become one user message. Raises InvalidInput."""
    return conversation(messages, _message)


def written_text(arguments: msgspec.Raw, at: str) -> str:
    """Return the text that a field holds: the string, or the JSON of whatever else stands there."""
    if not given(arguments):
        return ""
    data = bytes(arguments)
    return decode(_string, data, at) if data.startswith(b'"') else data.decode()


def plain_input(text: str) -> str:
    """Return the arguments that stand for the plain text that a custom tool is given."""
    return _encode({"input": text}).decode()


def _message(message: ChatMessage, at: str) -> Message | ToolResult:
    if message.role in ("tool", "function"):
        return _result(message, at)
    role = role_of(message.role, f"{at}.role")
    said = parts_of(message.content, f"{at}.content")
    if role != "assistant":
        return Message(role, said)
    refusal = (Text(message.refusal),) if message.refusal else ()
    return Message(role, (*_thinking(message), *said, *refusal, *_calls(message, at)))


def _thinking(message: ChatMessage) -> tuple[Thinking, ...]:
    text = message.reasoning_content or message.reasoning
    return (Thinking(text),) if text and isinstance(text, str) else ()


def _calls(message: ChatMessage, at: str) -> list[ToolUse]:
    calls = [_call(call, f"{at}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls or ())]
    if message.function_call is not None:
        calls.append(
            _function_call(
                _legacy_id(message.function_call.name), message.function_call, f"{at}.function_call"
            )
        )
    return calls


def _call(call: Call, at: str) -> ToolUse:
    if call.custom is not None:
        return ToolUse(call.id, call.custom.name, plain_input(call.custom.input))
    if call.function is None:
        raise missing_field(f"{at}.function")
    return _function_call(call.id, call.function, f"{at}.function")


def _function_call(id_: str, function: CalledFunction, at: str) -> ToolUse:
    return ToolUse(id_, function.name, as_object(written_text(function.arguments, f"{at}.arguments")))


def _result(message: ChatMessage, at: str) -> ToolResult:
    id_ = message.tool_call_id
    if id_ is None:
        if message.role == "tool" or message.name is None:
            raise missing_field(f"{at}.{'tool_call_id' if message.role == 'tool' else 'name'}")
        id_ = _legacy_id(message.name)
    parts: tuple[Text | Image, ...] = parts_of(message.content, f"{at}.content")
    return ToolResult(id_, parts)


def _legacy_id(name: str) -> str:
    """Return the id of a call in the older form, in which calls had none: at most one a message."""
    return f"call_{name}"
