"""Pure: neutral messages as the turns of an Anthropic body.

What Anthropic's API refuses is left out or mended here, as other protocols allow it: blank text, thinking
without a signature of its own, text before tool results, ids with other characters, a prefill that ends in
white space. Sources: docs.claude.com (Messages, tool use, extended thinking) and the API's error messages.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from herdr.pool.protocols.json_text import as_object
from herdr.pool.request import Image, Message, Part, Role, Text, Thinking, ToolResult, ToolUse

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")  # the API: ids match ^[a-zA-Z0-9_-]+$

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class TextBlock(msgspec.Struct, tag_field="type", tag="text"):
    """Text."""

    text: str


class Base64Source(msgspec.Struct, tag_field="type", tag="base64"):
    """An image's own bytes."""

    media_type: str
    data: str


class UrlSource(msgspec.Struct, tag_field="type", tag="url"):
    """Where an image is."""

    url: str


class ImageBlock(msgspec.Struct, tag_field="type", tag="image"):
    """An image."""

    source: Base64Source | UrlSource


class ToolUseBlock(msgspec.Struct, tag_field="type", tag="tool_use"):
    """A call; `input` is the exact JSON text that the model once wrote."""

    id: str
    name: str
    input: msgspec.Raw


class ToolResultBlock(msgspec.Struct, tag_field="type", tag="tool_result", omit_defaults=True):
    """What a call gave; without `content` when it gave nothing."""

    tool_use_id: str
    content: list[TextBlock | ImageBlock] = []
    is_error: bool = False


Block = TextBlock | ImageBlock | ToolUseBlock | ToolResultBlock


class Turn(msgspec.Struct):
    """One message of the body."""

    role: Role
    content: list[Block]


def system_blocks(parts: Iterable[Part]) -> list[TextBlock]:
    """Return the system prompt, one block for each text."""
    return [TextBlock(part.text) for part in parts if isinstance(part, Text) and part.text.strip()]


def turns(messages: Iterable[Message]) -> list[Turn]:
    """Return the conversation of a canonical request, without its system prompt: results come first.

    Roles alternate in it; they are made to again where nothing is left of what stood between two turns.
    """
    merged: list[Turn] = []
    for message in messages:
        blocks = [block for part in message.parts if (block := _block(part)) is not None]
        if not blocks:
            continue
        if merged and merged[-1].role == message.role:
            merged[-1].content += blocks
        else:
            merged.append(Turn(message.role, blocks))
    for turn in merged:
        turn.content.sort(key=lambda block: not isinstance(block, ToolResultBlock))
    if merged and merged[-1].role == "assistant":
        _trim(merged[-1].content)
    return merged


def _trim(prefill: list[Block]) -> None:
    last = prefill[-1]
    if isinstance(last, TextBlock):
        prefill[-1] = TextBlock(last.text.rstrip())


def _block(part: Part) -> Block | None:
    if isinstance(part, Text | Image):
        return _shown(part)
    if isinstance(part, Thinking):
        return None
    if isinstance(part, ToolUse):
        return ToolUseBlock(_id(part.id), part.name, json_object(part.arguments))
    return ToolResultBlock(_id(part.id), _content(part), part.is_error)


def _content(result: ToolResult) -> list[TextBlock | ImageBlock]:
    return [block for part in result.parts if (block := _shown(part)) is not None]


def _shown(part: Text | Image) -> TextBlock | ImageBlock | None:
    if isinstance(part, Text):
        return TextBlock(part.text) if part.text.strip() else None
    return ImageBlock(UrlSource(part.url) if part.url else Base64Source(part.media_type, part.data))


def _id(text: str) -> str:
    return _NOT_IN_IDS.sub("_", text)


def json_object(text: str) -> msgspec.Raw:
    """Return `as_object` of a text, ready to be encoded."""
    return msgspec.Raw(as_object(text).encode())


def object_schema(text: str) -> msgspec.Raw:
    """Return a tool's JSON Schema as it is, but with the `type` that the API insists on."""
    schema = json_object(text)
    fields = _fields.decode(schema)
    if "type" in fields:
        return schema
    return written({"type": msgspec.Raw(b'"object"'), **fields})


def written(fields: dict[str, msgspec.Raw]) -> msgspec.Raw:
    """Return an object of fields whose values stay byte for byte as they are."""
    return msgspec.Raw(b"{%s}" % b",".join([b"%s:%s" % (_encode(k), bytes(v)) for k, v in fields.items()]))


def in_tool_loop(messages: Sequence[Turn]) -> bool:
    """Tell whether the last turn answers tool calls."""
    return bool(messages) and isinstance(messages[-1].content[0], ToolResultBlock)
