"""Pure: the body of `POST /v1/chat` into a request. Unknown fields are ignored."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from herdr.pool.protocols.herdr.messages import ChatMessage, messages_of
from herdr.pool.protocols.openai.parse import token_limit
from herdr.pool.protocols.openai.sampling import SamplingFields, sampling_of
from herdr.pool.protocols.openai.tools import (
    NO_PARAMETERS,
    ChatFormat,
    Function,
    FunctionName,
    format_of,
    tool_of,
)
from herdr.pool.protocols.reading import decode_body, given, missing_field, object_text, refuse, shown
from herdr.pool.request import ChatRequest, ContextWish, Message, Text, Tool, ToolChoice

DEFAULT_MODEL = "default"  # no model of that name has to exist: an unknown name means the default backend
NAME_MAX = 128  # characters of an agent's, a session's or a route's name, as in events
PRIORITIES = range(10)
MAP_TOKENS_MIN, MAP_TOKENS_MAX = 16, 100_000  # as `GET /v1/context/{workspace}/graph/map` takes them
FILES_MAX = 32  # each is looked up on every turn
PATH_MAX = 4096  # characters, as of an event's subject


class ChatTool(msgspec.Struct):
    """A tool: `function` in OpenAI's form, the other fields when it is flat, as in Anthropic's."""

    type: str | None = None
    function: Function | None = None
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = msgspec.Raw()
    input_schema: msgspec.Raw = msgspec.Raw()
    strict: bool | None = None


class Choice(msgspec.Struct):
    """`tool_choice` as an object, in either form."""

    type: str = "auto"
    name: str | None = None
    function: FunctionName | None = None


class Thought(msgspec.Struct):
    """Whether to think, in Anthropic's form."""

    type: str = "enabled"


class ChatContext(msgspec.Struct, forbid_unknown_fields=True):
    """What of the shared context to put into the prompt. A wrong name here would go unnoticed otherwise."""

    session: bool | None = None
    map_tokens: Annotated[int, Meta(ge=MAP_TOKENS_MIN, le=MAP_TOKENS_MAX)] | None = None
    files: Annotated[list[str], Meta(max_length=FILES_MAX)] | None = None
    workspace: str | None = None


class ChatBody(SamplingFields, kw_only=True):
    """What is read of a body."""

    messages: list[ChatMessage]
    model: str | None = None
    system: str | None = None
    route: str | None = None
    session: str | None = None
    agent: str | None = None
    priority: int | None = None
    max_tokens: int | None = None
    tools: list[ChatTool] | None = None
    tool_choice: Choice | str | None = None
    parallel_tool_calls: bool | None = None
    response_format: ChatFormat | None = None
    thinking: Thought | bool | None = None
    effort: str | None = None
    stream: bool | None = None
    context: ChatContext | None = None


_decoder = msgspec.json.Decoder(ChatBody)


def parse(body: bytes) -> ChatRequest:
    """Return what a body asks for; raises InvalidInput with the path of the wrong field."""
    asked = decode_body(_decoder, body)
    messages = messages_of(asked.messages)
    if asked.system:
        messages = (Message("system", (Text(asked.system),)), *messages)
    if asked.priority is not None and asked.priority not in PRIORITIES:
        raise refuse("priority", f"Expected 0 to 9, 0 the most urgent; got {asked.priority}.")
    return ChatRequest(
        model=asked.model or DEFAULT_MODEL,
        messages=messages,
        tools=_tools(asked.tools or []),
        tool_choice=_choice(asked.tool_choice, asked.parallel_tool_calls is not False),
        sampling=sampling_of(asked),
        response_format=format_of(asked.response_format),
        max_tokens=token_limit(asked.max_tokens, "max_tokens"),
        thinking=asked.thinking.type != "disabled" if isinstance(asked.thinking, Thought) else asked.thinking,
        effort=asked.effort or None,
        stream=asked.stream is not False,
        include_usage=True,
        session=_name(asked.session, "session"),
        agent=_name(asked.agent, "agent"),
        route=_name(asked.route, "route"),
        priority=asked.priority,
        context=_context(asked.context),
    )


def _context(context: ChatContext | None) -> ContextWish | None:
    if context is None:
        return None
    files = [_path(path, f"context.files[{i}]") for i, path in enumerate(context.files or ())]
    workspace = _name(context.workspace, "context.workspace") or "default"
    return ContextWish(context.session is True, context.map_tokens, tuple(dict.fromkeys(files)), workspace)


def _path(path: str, at: str) -> str:
    if (
        path
        and len(path) <= PATH_MAX
        and path.isprintable()
        and path[0] != "/"
        and ".." not in path.split("/")
    ):
        return path
    raise refuse(at, "Expected the path of a file, relative to the workspace and without `..`: src/index.ts.")


def _name(name: str | None, at: str) -> str | None:
    if not name:
        return None
    if len(name) > NAME_MAX or not name.isprintable():
        raise refuse(at, f"Expected 1 to {NAME_MAX} characters without control characters.")
    return name


def _tools(tools: list[ChatTool]) -> tuple[Tool, ...]:
    found = [_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools)]
    return tuple([tool for tool in found if tool is not None])


def _tool(tool: ChatTool, at: str) -> Tool | None:
    """Return a tool; None for those that run on a provider's side, which no backend here can do."""
    if tool.type not in (None, "function", "custom"):
        return None
    if tool.function is not None:
        return tool_of(tool.function, f"{at}.function")
    if tool.name is None:
        raise missing_field(f"{at}.name")
    schema = tool.input_schema if given(tool.input_schema) else tool.parameters
    parameters = object_text(schema, f"{at}.parameters") if given(schema) else NO_PARAMETERS
    return Tool(tool.name, tool.description or "", parameters, tool.strict)


_MODES: Mapping[str, Literal["auto", "any", "none"]] = {
    "auto": "auto",
    "none": "none",
    "required": "any",
    "any": "any",
}


def _choice(choice: Choice | str | None, parallel: bool) -> ToolChoice:
    if choice is None:
        return ToolChoice(parallel=parallel)
    word = choice if isinstance(choice, str) else choice.type
    if word in _MODES:
        return ToolChoice(_MODES[word], parallel=parallel)
    name = choice.function.name if isinstance(choice, Choice) and choice.function else None
    name = name or (choice.name if isinstance(choice, Choice) else None)
    if not name:
        at = "tool_choice" if isinstance(choice, str) else "tool_choice.type"
        raise refuse(at, f"Unknown choice {shown(word)}; it must be auto, none or required, or name a tool.")
    return ToolChoice("tool", name, parallel)
