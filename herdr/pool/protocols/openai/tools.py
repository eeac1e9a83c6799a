"""Pure: tools, which of them may be called, and the form of an answer, as a chat completion names them."""

import msgspec

from herdr.pool.protocols.reading import given, missing_field, object_text, refuse, shown
from herdr.pool.request import ResponseFormat, Tool, ToolChoice

NO_PARAMETERS = Tool(name="").parameters


class FunctionName(msgspec.Struct):
    """Which function."""

    name: str


class Function(msgspec.Struct):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: msgspec.Raw = msgspec.Raw()
    strict: bool | None = None


class ChatTool(msgspec.Struct):
    """A tool; all kinds but functions run on OpenAI's side and are dropped."""

    type: str = "function"
    function: Function | None = None


class AllowedTools(msgspec.Struct):
    """Some of the tools: the others stay in the prompt, so that its prefix stays the same."""

    mode: str = "auto"
    tools: list[ChatTool] = []


class NamedChoice(msgspec.Struct):
    """`tool_choice` as an object."""

    type: str
    function: FunctionName | None = None
    allowed_tools: AllowedTools | None = None


class Schema(msgspec.Struct):
    """A form for the answer, by JSON Schema."""

    name: str = "answer"
    schema: msgspec.Raw = msgspec.Raw()
    strict: bool | None = None


class ChatFormat(msgspec.Struct):
    """`response_format`; `schema` beside `json_object` is how llama.cpp's clients write it."""

    type: str
    json_schema: Schema | None = None
    schema: msgspec.Raw = msgspec.Raw()


def tools_of(tools: list[ChatTool]) -> tuple[Tool, ...]:
    """Return the functions among the tools, their parameters as the client wrote them."""
    found = []
    for i, tool in enumerate(tools):
        if tool.type != "function":
            continue
        if tool.function is None:
            raise missing_field(f"tools[{i}].function")
        found.append(tool_of(tool.function, f"tools[{i}].function"))
    return tuple(found)


def tool_of(function: Function, at: str) -> Tool:
    """Return one function; raises InvalidInput when its parameters are no object."""
    has_parameters = given(function.parameters)
    return Tool(
        name=function.name,
        description=function.description or "",
        parameters=object_text(function.parameters, f"{at}.parameters") if has_parameters else NO_PARAMETERS,
        strict=function.strict,
    )


def choice_of(choice: NamedChoice | str | None, parallel: bool | None) -> ToolChoice:
    """Return which tools may be called; of `allowed_tools` a single required one is meant by name."""
    several = parallel is not False
    if choice is None or isinstance(choice, str):
        return plain_choice(choice, several)
    if choice.type == "function":
        if choice.function is None:
            raise missing_field("tool_choice.function")
        return ToolChoice("tool", choice.function.name, several)
    if choice.type == "allowed_tools" and choice.allowed_tools is not None:
        names = [tool.function.name for tool in choice.allowed_tools.tools if tool.function is not None]
        return allowed_choice(choice.allowed_tools.mode, names, several)
    return ToolChoice(parallel=several)


def plain_choice(word: str | None, parallel: bool) -> ToolChoice:
    """Return what the words none, auto and required mean."""
    match word:
        case None | "auto":
            return ToolChoice(parallel=parallel)
        case "none":
            return ToolChoice("none", parallel=parallel)
        case "required":
            return ToolChoice("any", parallel=parallel)
    raise refuse(
        "tool_choice", f"Unknown choice {shown(word)}; it must be none, auto or required, or name a tool."
    )


def allowed_choice(mode: str, names: list[str], parallel: bool) -> ToolChoice:
    """Return what a list of allowed tools means: no backend can be held to several of them."""
    if mode == "required" and len(names) == 1:
        return ToolChoice("tool", names[0], parallel)
    return plain_choice(mode, parallel)


def format_of(asked: ChatFormat | None) -> ResponseFormat | None:
    """Return the form that the answer must have; None: any text."""
    if asked is None or asked.type == "text":
        return None
    if asked.type == "json_object":
        if given(asked.schema):
            return schema_format(Schema(schema=asked.schema), "response_format")
        return ResponseFormat("json_object")
    if asked.type == "json_schema":
        if asked.json_schema is None:
            raise missing_field("response_format.json_schema")
        return schema_format(asked.json_schema, "response_format.json_schema")
    raise refuse(
        "response_format.type",
        f"Unknown type {shown(asked.type)}; it must be text, json_object or json_schema.",
    )


def schema_format(schema: Schema, at: str) -> ResponseFormat:
    """Return the form that a JSON Schema gives; raises InvalidInput when it is no object."""
    return ResponseFormat(
        "json_schema", schema.name, object_text(schema.schema, f"{at}.schema"), schema.strict
    )
