"""Pure: the body of `POST /v1/messages` (and of `count_tokens`) → a neutral request.

Fields: https://docs.anthropic.com/en/api/messages. Unknown ones are ignored, and so is `cache_control`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, get_args

import msgspec
from msgspec import Meta, Raw

from herdr.pool.protocols.anthropic.content import Block, parts_of
from herdr.pool.protocols.reading import (
    InvalidJson,
    decode_body,
    given,
    name_at,
    object_text,
    one_of,
    refuse,
    shown,
)
from herdr.pool.request import (
    ChatRequest,
    Message,
    ResponseFormat,
    Role,
    Sampling,
    Tool,
    ToolChoice,
)

Count = Annotated[int, Meta(ge=0)]
MENDED_MAX = 4 * 1024 * 1024  # bytes of a body; mending 4 MiB may take half a second of everybody's time
Content = str | list[Block]


class _Message(msgspec.Struct):
    role: str
    content: Content


class _Tool(msgspec.Struct):
    name: object = None
    description: str | None = None
    input_schema: Raw = Raw(b"null")
    strict: bool | None = None


class _Choice(msgspec.Struct):
    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Thinking(msgspec.Struct):
    type: str
    display: str | None = None


class _Format(msgspec.Struct):
    type: str
    schema: Raw = Raw(b"null")
    name: str | None = None


class _OutputConfig(msgspec.Struct):
    effort: str | None = None
    format: _Format | None = None


class _Metadata(msgspec.Struct):
    user_id: str | None = None


class _Body(msgspec.Struct):
    messages: Annotated[list[_Message], Meta(min_length=1)]
    model: str | None = None
    system: Content | None = None
    tools: list[_Tool] | None = None
    tool_choice: _Choice | None = None
    stop_sequences: list[str] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Count | None = None
    max_tokens: Count | None = None
    thinking: _Thinking | None = None
    output_config: _OutputConfig | None = None
    output_format: _Format | None = None
    """Where older clients put `output_config.format`."""
    metadata: _Metadata | None = None
    stream: bool | None = None


class _User(msgspec.Struct):
    session_id: str | None = None


ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "messages": 'a list of at least one message, as in [{"role": "user", "content": "Hello"}]',
        "messages[]": "an object with a role and content",
        "role": "user, assistant or system",
        "content": "a string or a list of content blocks, each an object with a type",
        "content[]": "a content block, an object with a type",
        "model": "a string",
        "system": "a string or a list of text blocks",
        "system[]": "a content block, an object with a type",
        "tools": "a list of objects with name, description and input_schema",
        "tools[]": "an object with name, description and input_schema",
        "tool_choice": "an object whose type is auto, any, tool or none",
        "stop_sequences": "a list of strings",
        "stop_sequences[]": "a string",
        "temperature": "a number from 0 to 2",
        "top_p": "a number from 0 to 1",
        "top_k": "a whole number, 0 or more",
        "max_tokens": "a whole number of tokens, 0 or more",
        "thinking": "an object whose type is enabled, adaptive or disabled",
        "output_config": 'an object such as {"effort": "medium"}',
        "format": 'an object such as {"type": "json_schema", "schema": {…}}',
        "metadata": 'an object such as {"user_id": "…"}',
        "stream": "true or false",
    }
)
"""What a field should hold, as `reading.decode_body` takes it."""

_decoder = msgspec.json.Decoder(_Body)
_decode_user = msgspec.json.Decoder(_User).decode
_ROLES: Mapping[str, Role] = MappingProxyType({role: role for role in get_args(Role)})
# A whole pair, half of one, or the two characters with which any other escape begins.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_HALF = len(b"\\ud83d")
_OLD_USER = re.compile(r"^user_.*_session_(?P<session>[0-9A-Za-z-]+)$")
_THINKING = MappingProxyType({"enabled": True, "disabled": False})  # adaptive, …: the model decides


def parse(body: bytes) -> ChatRequest:
    """Return what a body asks for; raises InvalidInput with the path of the wrong field."""
    return _request(_decoded(body))


def _decoded(body: bytes) -> _Body:
    try:
        return decode_body(_decoder, body, ADVICE)
    except InvalidJson:
        if len(body) > MENDED_MAX:
            raise
        mended = _ESCAPE.sub(_whole_character, body)
        if mended == body:
            raise
        return decode_body(_decoder, mended, ADVICE)


def _whole_character(escape: re.Match[bytes]) -> bytes:
    """Put U+FFFD for half a surrogate pair: clients that cut a text inside an emoji send one ever after."""
    return b"\\ufffd" if len(escape[0]) == _HALF else escape[0]


def _request(body: _Body) -> ChatRequest:
    tools = tuple(_tools(body.tools or ()))
    thinking = body.thinking
    config = body.output_config or _OutputConfig()
    return ChatRequest(
        model=body.model or "",
        messages=_messages(body),
        tools=tools,
        tool_choice=_choice(body.tool_choice, tools),
        sampling=_sampling(body),
        response_format=_format(config.format or body.output_format),
        max_tokens=body.max_tokens,
        thinking=_THINKING.get(thinking.type) if thinking else None,
        effort=config.effort,
        stream=bool(body.stream),
        hide_thinking=thinking is not None and thinking.display == "omitted",
        session=_session(body.metadata),
    )


def _messages(body: _Body) -> tuple[Message, ...]:
    """Return the system prompt's blocks as one leading message, then the client's messages in place."""
    system = parts_of(body.system or (), "system", "system")
    messages = [Message("system", system)] if system else []
    for index, message in enumerate(body.messages):
        role = one_of(message.role, _ROLES, f"messages[{index}].role", "role")
        messages.append(Message(role, parts_of(message.content, role, f"messages[{index}].content")))
    return tuple(messages)


def _tools(tools: Sequence[_Tool]) -> Iterator[Tool]:
    """Yield the tools that a client runs; those of Anthropic's servers have no schema."""
    for index, tool in enumerate(tools):
        if not given(tool.input_schema):
            continue
        schema = object_text(tool.input_schema, f"tools[{index}].input_schema")
        yield Tool(name_at(tool.name, f"tools[{index}].name"), tool.description or "", schema, tool.strict)


def _choice(choice: _Choice | None, tools: tuple[Tool, ...]) -> ToolChoice:
    if choice is None:
        return ToolChoice()
    parallel = choice.disable_parallel_tool_use is not True
    match choice.type:
        case "any" if not tools:
            return ToolChoice("auto", parallel=parallel)  # all there were are tools of Anthropic's servers
        case "auto" | "any" | "none":
            return ToolChoice(choice.type, parallel=parallel)
        case "tool":
            return ToolChoice("tool", _chosen(choice.name, tools), parallel)
    raise refuse(
        "tool_choice.type", f"Unknown choice {shown(choice.type)}; it must be auto, any, tool or none."
    )


def _chosen(name: str | None, tools: tuple[Tool, ...]) -> str:
    if name and any(tool.name == name for tool in tools):
        return name
    raise refuse("tool_choice.name", "Name one of `tools` that has an input_schema; no other can be called.")


def _sampling(body: _Body) -> Sampling:
    return Sampling(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stop=tuple(text for text in body.stop_sequences or () if text),
    )


def _format(wanted: _Format | None) -> ResponseFormat | None:
    if wanted is None:
        return None
    if wanted.type != "json_schema":
        raise refuse(
            "output_config.format.type", f"Unknown type {shown(wanted.type)}; it must be json_schema."
        )
    schema = object_text(wanted.schema, "output_config.format.schema")
    return ResponseFormat("json_schema", wanted.name or "answer", schema)


def _session(metadata: _Metadata | None) -> str | None:
    """Return the session in `metadata.user_id`: JSON of newer Claude Codes, `user_…_session_…` of older."""
    user = metadata.user_id if metadata else None
    if not user:
        return None
    if old := _OLD_USER.match(user):
        return old["session"]
    try:
        return _decode_user(user).session_id or None
    except (msgspec.DecodeError, RecursionError):
        return None  # any text is legal there
