"""Pure: the body of `POST /v1/responses` into a request."""

import msgspec

from herdr.pool.protocols.openai.parse import thinking_of, token_limit
from herdr.pool.protocols.openai.tools import Schema, schema_format
from herdr.pool.protocols.reading import decode, decode_body, given, refuse, shown
from herdr.pool.protocols.responses.history import messages_of
from herdr.pool.protocols.responses.tools import NamedChoice, choice_of, tools_of
from herdr.pool.request import ChatRequest, Message, ResponseFormat, Sampling, Text


class Reasoning(msgspec.Struct):
    """How hard to reason, and how much of it to show."""

    effort: str | None = None
    summary: str | None = None


class TextFormat(Schema):
    """The form of the answer."""

    type: str = "text"


class TextOptions(msgspec.Struct):
    """What the answer's text is to be like."""

    format: TextFormat | None = None


class ResponsesBody(msgspec.Struct, kw_only=True):
    """What is read of a body; other fields are ignored."""

    model: str = ""
    input: msgspec.Raw
    instructions: str | None = None
    tools: list[msgspec.Raw] | None = None
    tool_choice: NamedChoice | str | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    reasoning: Reasoning | None = None
    text: TextOptions | None = None
    prompt_cache_key: str | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    conversation: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(ResponsesBody)
_items_decoder = msgspec.json.Decoder(list[msgspec.Raw] | str)


def parse(body: bytes) -> ChatRequest:
    """Return what a body asks for; raises InvalidInput with the path of the wrong field."""
    asked = decode_body(_decoder, body)
    _refuse_memory(asked)
    reasoning = asked.reasoning or Reasoning()
    thinking, effort = thinking_of(reasoning.effort)
    return ChatRequest(
        model=asked.model,
        messages=_messages(asked),
        tools=tools_of(asked.tools or []),
        tool_choice=choice_of(asked.tool_choice, asked.parallel_tool_calls),
        sampling=Sampling(temperature=asked.temperature, top_p=asked.top_p),
        response_format=_format_of(asked.text.format if asked.text is not None else None),
        max_tokens=token_limit(asked.max_output_tokens, "max_output_tokens"),
        thinking=thinking,
        effort=effort,
        stream=asked.stream is True,
        hide_thinking=reasoning.summary == "none",
        session=asked.prompt_cache_key or None,
    )


def _refuse_memory(asked: ResponsesBody) -> None:
    for field, is_set in (
        ("previous_response_id", asked.previous_response_id is not None),
        ("conversation", given(asked.conversation)),
    ):
        if is_set:
            raise refuse(
                field,
                "The gateway keeps no responses; leave it out and send the whole conversation as input.",
            )


def _messages(asked: ResponsesBody) -> tuple[Message, ...]:
    items = decode(_items_decoder, asked.input, "input")
    spoken = [Message("user", (Text(items),))] if isinstance(items, str) else messages_of(items)
    if not spoken or items == "":
        raise refuse("input", "Expected some text, or at least one message.")
    if asked.instructions:
        return (Message("system", (Text(asked.instructions),)), *spoken)
    return tuple(spoken)


def _format_of(asked: TextFormat | None) -> ResponseFormat | None:
    if asked is None or asked.type == "text":
        return None
    if asked.type == "json_object":
        return ResponseFormat("json_object")
    if asked.type == "json_schema":
        return schema_format(asked, "text.format")
    raise refuse(
        "text.format.type", f"Unknown type {shown(asked.type)}; it must be text, json_object or json_schema."
    )
