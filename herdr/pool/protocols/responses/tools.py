"""Pure: the tools of a Responses request, as functions that any model can call, and back.

Codex groups tools in namespaces and has tools that take plain text instead of JSON. A model knows neither:
it is shown `<namespace>__<name>`, and a function with the one argument `input`. Codex routes a call only when
the namespace and the name come back in two fields, and takes a plain-text call only as `custom_tool_call`.
"""

import msgspec

from herdr.pool.protocols.openai.tools import Function, allowed_choice, plain_choice, tool_of
from herdr.pool.protocols.reading import decode, missing_field
from herdr.pool.request import Tool, ToolChoice

_SEPARATOR = "__"


class MappedTool(Tool, frozen=True):
    """A function that stands for a tool of another kind; the fields say how the client calls that one."""

    member: str = ""
    namespace: str = ""
    """Empty: the tool stands in none."""
    custom: bool = False
    """The tool takes plain text."""


class Kind(msgspec.Struct):
    """What an item or a tool is."""

    type: str | None = None


class Grammar(msgspec.Struct):
    """The form of a plain-text tool's input."""

    type: str = "text"
    syntax: str = ""
    definition: str = ""


class CustomTool(msgspec.Struct):
    """A tool that takes plain text."""

    name: str
    description: str | None = None
    format: Grammar | None = None


class Namespace(msgspec.Struct):
    """A group of tools, such as one MCP server's."""

    name: str
    tools: list[msgspec.Raw] = []


class NamedTool(msgspec.Struct):
    """A tool by its name."""

    name: str = ""
    namespace: str | None = None


class NamedChoice(msgspec.Struct):
    """`tool_choice` as an object."""

    type: str
    name: str | None = None
    namespace: str | None = None
    mode: str = "auto"
    tools: list[NamedTool] = []


class TextInput(msgspec.Struct):
    """The schema's only argument."""

    type: str
    description: str


class InputOnly(msgspec.Struct):
    """What `input_schema` consists of."""

    input: TextInput


class InputSchema(msgspec.Struct):
    """The parameters of a function that stands for a plain-text tool."""

    type: str
    properties: InputOnly
    required: list[str]


kind_decoder = msgspec.json.Decoder(Kind)
_function_decoder = msgspec.json.Decoder(Function)
_custom_decoder = msgspec.json.Decoder(CustomTool)
_namespace_decoder = msgspec.json.Decoder(Namespace)
_encode = msgspec.json.Encoder().encode


def flat_name(name: str, namespace: str | None) -> str:
    """Return the name under which a model knows a tool.

    >>> flat_name("status", "mcp__burp"), flat_name("status", "mcp__burp__"), flat_name("shell", None)
    ('mcp__burp__status', 'mcp__burp__status', 'shell')
    """
    if not namespace:
        return name
    return namespace + name if namespace.endswith(_SEPARATOR) else namespace + _SEPARATOR + name


def tools_of(tools: list[msgspec.Raw], at: str = "tools", namespace: str = "") -> tuple[Tool, ...]:
    """Return all that a model can call; what runs on OpenAI's side (web search, …) is dropped.

    Of two with one flat name the first counts: a backend would refuse both.
    """
    found: dict[str, Tool] = {}
    for i, raw in enumerate(tools):
        for tool in _tools(raw, f"{at}[{i}]", namespace):
            found.setdefault(tool.name, tool)
    return tuple(found.values())


def choice_of(choice: NamedChoice | str | None, parallel: bool | None) -> ToolChoice:
    """Return which tools may be called; a choice of a tool that was dropped is none."""
    several = parallel is not False
    if choice is None or isinstance(choice, str):
        return plain_choice(choice, several)
    if choice.type in ("function", "custom"):
        if choice.name is None:
            raise missing_field("tool_choice.name")
        return ToolChoice("tool", flat_name(choice.name, choice.namespace), several)
    if choice.type == "allowed_tools":
        names = [flat_name(tool.name, tool.namespace) for tool in choice.tools]
        return allowed_choice(choice.mode, names, several)
    return ToolChoice(parallel=several)


def _tools(raw: msgspec.Raw, at: str, namespace: str) -> tuple[Tool, ...]:
    match decode(kind_decoder, raw, at).type:
        case "function":
            return (_function(raw, at, namespace),)
        case "custom":
            return (_custom(decode(_custom_decoder, raw, at), namespace),)
        case "namespace" if not namespace:
            group = decode(_namespace_decoder, raw, at)
            return tools_of(group.tools, f"{at}.tools", group.name)
    return ()


def _function(raw: msgspec.Raw, at: str, namespace: str) -> Tool:
    tool = tool_of(decode(_function_decoder, raw, at), at)
    if not namespace:
        return tool
    return MappedTool(
        name=flat_name(tool.name, namespace),
        description=tool.description,
        parameters=tool.parameters,
        strict=tool.strict,
        member=tool.name,
        namespace=namespace,
    )


def _custom(tool: CustomTool, namespace: str) -> MappedTool:
    return MappedTool(
        name=flat_name(tool.name, namespace),
        description=tool.description or "",
        parameters=_input_schema(tool.format),
        member=tool.name,
        namespace=namespace,
        custom=True,
    )


def _input_schema(format_: Grammar | None) -> str:
    """Return the parameters of a plain-text tool: its grammar can only be described to the model."""
    description = "The whole input of the tool, as plain text."
    if format_ is not None and format_.definition:
        description += f" It must match this {format_.syntax} grammar:\n{format_.definition}"
    schema = InputSchema("object", InputOnly(TextInput("string", description)), ["input"])
    return _encode(schema).decode()
