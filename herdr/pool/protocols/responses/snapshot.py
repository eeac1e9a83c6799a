"""Pure: the response object that stands in some of the events, and is the whole answer without a stream."""

from typing import Any

import msgspec

from herdr.pool.chunk import Usage
from herdr.pool.protocols.dialect import Opening
from herdr.pool.protocols.responses.tools import MappedTool
from herdr.pool.request import ChatRequest

_encode = msgspec.json.Encoder().encode


class ChosenTool(msgspec.Struct, omit_defaults=True):
    """The tool that had to be called."""

    type: str
    name: str
    namespace: str = ""


class Format(msgspec.Struct, omit_defaults=True):
    """The form of the answer."""

    type: str
    name: str | None = None
    schema: msgspec.Raw | None = None
    strict: bool | None = None


class TextOptions(msgspec.Struct):
    """What the answer's text is to be like."""

    format: Format


class ReasoningOptions(msgspec.Struct):
    """How hard the model was to reason."""

    effort: str | None
    summary: str | None


class ResponseFields(msgspec.Struct):
    """What stays the same from the first snapshot to the last.

    The tools are not repeated, though the API does so: Codex sends 18 KB of them, and no client reads them back.
    """

    id: str
    created_at: int
    model: str
    max_output_tokens: int | None
    parallel_tool_calls: bool
    temperature: float | None
    top_p: float | None
    tool_choice: ChosenTool | str
    reasoning: ReasoningOptions
    text: TextOptions
    object: str = "response"
    background: bool = False
    instructions: None = None
    metadata: dict[str, str] = {}
    previous_response_id: None = None
    store: bool = False
    tools: list[Any] = []
    truncation: str = "disabled"


class InputDetails(msgspec.Struct):
    """How much of the prompt was in the cache."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(msgspec.Struct):
    """How much of the answer was reasoning."""

    reasoning_tokens: int


class ResponseUsage(msgspec.Struct):
    """Tokens of one call; the details are parts of the numbers before them."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


def fixed_fields(opening: Opening, request: ChatRequest) -> bytes:
    """Return the beginning of every snapshot: an object that is not closed yet."""
    fields = ResponseFields(
        id=f"resp_{opening.call}",
        created_at=opening.created,
        model=opening.model,
        max_output_tokens=request.max_tokens,
        parallel_tool_calls=request.tool_choice.parallel,
        temperature=request.sampling.temperature,
        top_p=request.sampling.top_p,
        tool_choice=_choice(request),
        reasoning=ReasoningOptions(
            "none" if request.thinking is False else request.effort, "none" if request.hide_thinking else None
        ),
        text=TextOptions(_format(request)),
    )
    return _encode(fields)[:-1]


def usage_bytes(usage: Usage) -> bytes:
    """Return a call's tokens in the API's names."""
    return _encode(
        ResponseUsage(
            usage.prompt,
            InputDetails(usage.cached),
            usage.output,
            OutputDetails(usage.reasoning),
            usage.prompt + usage.output,
        )
    )


def _choice(request: ChatRequest) -> ChosenTool | str:
    choice = request.tool_choice
    if choice.mode != "tool":
        return "required" if choice.mode == "any" else choice.mode
    tool = next((tool for tool in request.tools if tool.name == choice.name), None)
    if not isinstance(tool, MappedTool):
        return ChosenTool("function", choice.name)
    return ChosenTool("custom" if tool.custom else "function", tool.member, tool.namespace)


def _format(request: ChatRequest) -> Format:
    asked = request.response_format
    if asked is None:
        return Format("text")
    if asked.kind == "json_object":
        return Format(asked.kind)
    return Format(asked.kind, asked.name, msgspec.Raw(asked.schema.encode()), asked.strict)
