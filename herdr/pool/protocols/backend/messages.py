"""Pure: a conversation as the `messages` of OpenAI's chat completions.

The request is canonical (`herdr.pool.canonical`). Each message is rendered by itself and in order, so that a
conversation that only grew renders to a list of which the earlier one is a prefix.
"""

from collections.abc import Iterable
from typing import Any, Literal

from herdr.pool.request import (
    ChatRequest,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    split_system,
)

Kind = Literal["llamacpp", "openai"]
NO_VISION = "[image omitted: this model cannot see]"


def render_messages(request: ChatRequest, kind: Kind, vision: bool) -> list[dict[str, Any]]:
    """Return the messages of a canonical request, so at most one of role `system`, which comes first."""
    system, rest = split_system(request.messages)
    rendered: list[dict[str, Any]] = []
    if system:
        rendered.append({"role": "system", "content": _joined(system)})
    for message in rest:
        if message.role == "assistant":
            rendered.append(_assistant(message))
        else:
            rendered.extend(_user(message, kind, vision))
    return rendered


def _joined(parts: Iterable[Part]) -> str:
    """Return the text of parts that may have others between them."""
    return "\n\n".join(
        [
            NO_VISION if isinstance(part, Image) else part.text
            for part in parts
            if isinstance(part, Text | Image)
        ]
    )


def _assistant(message: Message) -> dict[str, Any]:
    rendered: dict[str, Any] = {"role": "assistant", "content": _joined(message.parts)}
    thinking = "".join([part.text for part in message.parts if isinstance(part, Thinking)])
    if thinking:
        rendered["reasoning_content"] = thinking
    calls = [_call(part) for part in message.parts if isinstance(part, ToolUse)]
    if calls:
        rendered["tool_calls"] = calls
    return rendered


def _call(part: ToolUse) -> dict[str, Any]:
    arguments = part.arguments if part.arguments.strip() else "{}"
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": arguments}}


def _user(message: Message, kind: Kind, vision: bool) -> list[dict[str, Any]]:
    """Tool results come first: they must stand right after the calls that they answer."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    others: list[Text | Image] = [part for part in message.parts if isinstance(part, Text | Image)]
    rendered = [_result(result, kind, vision) for result in results]
    if vision and kind == "openai":  # its tool messages take text only
        others = [part for result in results for part in _pictures(result)] + others
    if others:
        rendered.append({"role": "user", "content": _content(others, vision)})
    return rendered


def _pictures(result: ToolResult) -> list[Text | Image]:
    images: list[Text | Image] = [part for part in result.parts if isinstance(part, Image)]
    return [Text(f"[from the result of call {result.id}]"), *images] if images else []


def _result(result: ToolResult, kind: Kind, vision: bool) -> dict[str, Any]:
    parts = list(result.parts)
    if vision and kind == "openai":
        parts = [Text("[image: see below]") if isinstance(part, Image) else part for part in parts]
    if result.is_error:
        parts = _as_error(parts)
    return {"role": "tool", "tool_call_id": result.id, "content": _content(parts, vision)}


def _as_error(parts: list[Text | Image]) -> list[Text | Image]:
    first = next((part.text for part in parts if isinstance(part, Text)), "")
    if first.lstrip().lower().startswith("error"):
        return parts
    if parts and isinstance(parts[0], Text):
        return [Text("Error: " + parts[0].text), *parts[1:]]
    return [Text("Error: the call failed"), *parts]


def _content(parts: list[Text | Image], vision: bool) -> str | list[dict[str, Any]]:
    """Return a plain string whenever there is only text, so that a string and a list of one text are equal."""
    if not vision or not any(isinstance(part, Image) for part in parts):
        return _joined(parts)
    return [_image(part) if isinstance(part, Image) else _text(part) for part in parts]


def _text(part: Text) -> dict[str, Any]:
    return {"type": "text", "text": part.text}


def _image(part: Image) -> dict[str, Any]:
    url = part.url or f"data:{part.media_type or 'image/png'};base64,{part.data}"
    return {"type": "image_url", "image_url": {"url": url}}
