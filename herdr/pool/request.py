"""Pure: what a client asks a model, whichever protocol it speaks. Protocols parse into it, backends render it.

A conversation is a tuple of messages in the client's order. Leading messages of role `system` are the system
prompt; later ones stay where they stand (hoisting one would change the whole prefix on every turn).
"""

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant"]


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image"):
    """An image: `data` is base64 of `media_type`, or `url` says where it is."""

    media_type: str = ""
    data: str = ""
    url: str = ""


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """The model's own earlier reasoning; replayed byte for byte, or its template renders another history."""

    text: str


class ToolUse(msgspec.Struct, frozen=True, tag="tool_use"):
    """A call that the model made. `arguments` is the client's JSON text of an object, keys in its order."""

    id: str
    name: str
    arguments: str


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result"):
    """What a tool answered to the call `id`."""

    id: str
    parts: tuple[Text | Image, ...] = ()
    is_error: bool = False


Part = Text | Image | Thinking | ToolUse | ToolResult


class Message(msgspec.Struct, frozen=True):
    """One turn. Tool results stand in messages of role `user`, in the order in which they came."""

    role: Role
    parts: tuple[Part, ...]


def split_system(messages: tuple[Message, ...]) -> tuple[tuple[Part, ...], tuple[Message, ...]]:
    """Return what the system prompt of a canonical conversation consists of, and the messages after it."""
    if messages and messages[0].role == "system":
        return messages[0].parts, messages[1:]
    return (), messages


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may call. `parameters` is the client's JSON Schema, as text."""

    name: str
    description: str = ""
    parameters: str = '{"type":"object","properties":{}}'
    strict: bool | None = None


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tools may or must be called; `tool` asks for the one called `name`."""

    mode: Literal["auto", "any", "tool", "none"] = "auto"
    name: str = ""
    parallel: bool = True


class ResponseFormat(msgspec.Struct, frozen=True):
    """The form that the answer must have; `schema` is JSON Schema as text, for `json_schema` only."""

    kind: Literal["json_object", "json_schema"]
    name: str = "answer"
    schema: str = ""
    strict: bool | None = None


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How tokens are drawn; None leaves it to the backend."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: tuple[str, ...] = ()


class ContextWish(msgspec.Struct, frozen=True):
    """What of the shared context the prompt should hold (`/v1/chat` only)."""

    session: bool = False
    """The window of the call's session."""
    map_tokens: int | None = None
    """Tokens of the project's map; None: no map."""
    files: tuple[str, ...] = ()
    """Paths, relative to the workspace, of files whose outlines are wanted."""
    workspace: str = "default"


class ChatRequest(msgspec.Struct, frozen=True):
    """One request. What only concerns the way it is answered (`stream`, …) is no part of the prompt."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    sampling: Sampling = Sampling()
    response_format: ResponseFormat | None = None
    max_tokens: int | None = None
    """Tokens of the answer at most; None: the client named none."""
    thinking: bool | None = None
    """Whether the model should reason first; None leaves it to the model."""
    effort: str | None = None
    """How hard to reason (`low`, `medium`, `high`, …), where a client says so."""
    stream: bool = False
    include_usage: bool = False
    """OpenAI's `stream_options.include_usage`."""
    hide_thinking: bool = False
    """The client wants to carry the reasoning along without seeing it (Anthropic's `display: omitted`)."""
    session: str | None = None
    """The session that the body itself names (`metadata.user_id`, `prompt_cache_key`, `/v1/chat`'s own)."""
    agent: str | None = None
    """The agent that the body itself names (`/v1/chat` only)."""
    route: str | None = None
    """The route that the body itself names (`/v1/chat` only)."""
    priority: int | None = None
    """The priority that the body itself names (`/v1/chat` only), 0 to 9."""
    context: ContextWish | None = None
