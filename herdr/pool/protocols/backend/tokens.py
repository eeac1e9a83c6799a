"""Pure: how long a prompt is, before any backend has counted it."""

from herdr.pool.request import ChatRequest, Image, Message, Part, Text, Thinking, ToolUse

BYTES_PER_TOKEN = 2.7
"""Fewer than the 3 to 4 bytes that English and code take in current vocabularies: an estimate that is too low
makes clients compact too late and lets an answer run into the end of the context."""
MESSAGE_BYTES = 16
"""A turn's markers in a chat template: `<|im_start|>assistant` and `<|im_end|>` are five or six tokens."""
IMAGE_BYTES = 2765
"""1,024 tokens: what current vision encoders make of a screenshot, whatever its file's size."""


def estimate_tokens(request: ChatRequest) -> int:
    """Return about how many tokens the prompt has, rounded up; never 0."""
    size = sum(map(_message_bytes, request.messages))
    for tool in request.tools:
        size += _bytes(tool.name) + _bytes(tool.description) + _bytes(tool.parameters) + MESSAGE_BYTES
    return max(1, -int(-size // BYTES_PER_TOKEN))


def _message_bytes(message: Message) -> int:
    return MESSAGE_BYTES + sum(map(_part_bytes, message.parts))


def _part_bytes(part: Part) -> int:
    if isinstance(part, Text | Thinking):
        return _bytes(part.text)
    if isinstance(part, Image):
        return IMAGE_BYTES
    if isinstance(part, ToolUse):
        return _bytes(part.name) + _bytes(part.arguments) + MESSAGE_BYTES
    return MESSAGE_BYTES + sum(map(_part_bytes, part.parts))


def _bytes(text: str) -> int:
    """Return the length in UTF-8; of ASCII, which most prompts are, without a copy."""
    return len(text) if text.isascii() else len(text.encode())
