"""Pure: the `messages` of `/v1/chat`: OpenAI's form, Anthropic's blocks, and what our own answers look like."""

import msgspec

from herdr.pool.protocols.json_text import as_object
from herdr.pool.protocols.openai.content import ImageUrl, image_at
from herdr.pool.protocols.openai.conversation import conversation, role_of
from herdr.pool.protocols.openai.messages import CalledFunction, written_text
from herdr.pool.protocols.reading import given, missing_field, refuse, shown
from herdr.pool.request import Image, Message, Part, Role, Text, Thinking, ToolResult, ToolUse


class Source(msgspec.Struct):
    """An image as Anthropic's clients write it."""

    media_type: str = ""
    data: str = ""
    url: str = ""


class Block(msgspec.Struct):
    """One part of a message; `type` says which of the fields count."""

    type: str = "text"
    text: str | None = None
    thinking: str | None = None
    image_url: ImageUrl | str | None = None
    source: Source | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str | None = None
    content: "str | list[Block | str] | None" = None
    is_error: bool | None = None


class Call(msgspec.Struct):
    """A tool call, in OpenAI's form or as our own answers have it."""

    id: str
    function: CalledFunction | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()


class ChatMessage(msgspec.Struct):
    """One message; which fields count depends on its role."""

    role: str
    content: str | list[Block | str] | None = None
    thinking: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


def messages_of(messages: list[ChatMessage]) -> tuple[Message, ...]:
    """Return the conversation; tool messages in a row become one user message. Raises InvalidInput."""
    return conversation(messages, _message)


def _message(message: ChatMessage, at: str) -> Message | ToolResult:
    if message.role == "tool":
        return _result_message(message, at)
    role = role_of(message.role, f"{at}.role")
    parts = _parts(message.content, f"{at}.content", role)
    if role == "assistant":
        thinking = message.thinking or message.reasoning_content
        calls = [_call(call, f"{at}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls or ())]
        parts = [*([Thinking(thinking)] if thinking else []), *parts, *calls]
    return Message(role, tuple(parts))


def _result_message(message: ChatMessage, at: str) -> ToolResult:
    if message.tool_call_id is None:
        raise missing_field(f"{at}.tool_call_id")
    return ToolResult(message.tool_call_id, _plain(message.content, f"{at}.content"))


def _parts(content: str | list[Block | str] | None, at: str, role: Role) -> list[Part]:
    if content is None or isinstance(content, str):
        return [Text(content)] if content else []
    parts = [
        Text(block) if isinstance(block, str) else _part(block, f"{at}[{i}]", role)
        for i, block in enumerate(content)
    ]
    return [part for part in parts if part is not None and part != Text("")]


def _part(block: Block, at: str, role: Role) -> Part | None:
    """Return what a block stands for; None: nothing that a model could read (a `redacted_thinking`)."""
    if block.type in ("thinking", "redacted_thinking"):
        return Thinking(block.thinking) if block.thinking and role == "assistant" else None
    if block.type == "tool_use":
        if role != "assistant":
            raise refuse(f"{at}.type", "Only messages of the role assistant make tool calls.")
        return _tool_use(block, at)
    if block.type == "tool_result":
        if role != "user":
            raise refuse(f"{at}.type", "Results of tools belong in messages of the role user or tool.")
        if block.tool_use_id is None:
            raise missing_field(f"{at}.tool_use_id")
        return ToolResult(block.tool_use_id, _plain(block.content, f"{at}.content"), block.is_error is True)
    return _seen(block, at)


def _plain(content: str | list[Block | str] | None, at: str) -> tuple[Text | Image, ...]:
    if content is None or isinstance(content, str):
        return (Text(content),) if content else ()
    parts = [
        Text(block) if isinstance(block, str) else _seen(block, f"{at}[{i}]")
        for i, block in enumerate(content)
    ]
    return tuple([part for part in parts if part != Text("")])


def _seen(block: Block, at: str) -> Text | Image:
    if block.type in ("text", "input_text", "output_text"):
        if block.text is None:
            raise missing_field(f"{at}.text")
        return Text(block.text)
    if block.type in ("image", "image_url"):
        return _image(block, at)
    raise refuse(
        f"{at}.type", f"Unknown type {shown(block.type)}; send text, image, tool_use or tool_result."
    )


def _image(block: Block, at: str) -> Image:
    if block.image_url is not None:
        return image_at(block.image_url if isinstance(block.image_url, str) else block.image_url.url)
    source = block.source
    if source is None or not (source.data or source.url):
        raise missing_field(f"{at}.{'image_url' if block.type == 'image_url' else 'source'}")
    return Image(url=source.url) if source.url else Image(source.media_type or "image/png", source.data)


def _tool_use(block: Block, at: str) -> ToolUse:
    if block.id is None or block.name is None:
        raise missing_field(f"{at}.{'id' if block.id is None else 'name'}")
    return ToolUse(block.id, block.name, _input(block.input, f"{at}.input"))


def _call(call: Call, at: str) -> ToolUse:
    if call.function is not None:
        arguments = written_text(call.function.arguments, f"{at}.function.arguments")
        return ToolUse(call.id, call.function.name, as_object(arguments))
    if call.name is None:
        raise missing_field(f"{at}.function")
    return ToolUse(call.id, call.name, _input(call.input, f"{at}.input"))


def _input(raw: msgspec.Raw, at: str) -> str:
    return as_object(written_text(raw, at)) if given(raw) else "{}"
