"""Pure: a request as the body of a backend's `POST /v1/chat/completions`. Equal requests give equal bytes.

llama.cpp is always asked here and never on its own `/v1/messages`, which ignores `id_slot`. The answer is
always streamed, so that a generation can be cut and its progress seen. Stop sequences are not sent: backends
do not say which of them they met, so the gateway matches them itself.
"""

from typing import Any

import msgspec

from herdr.pool.protocols.backend.messages import Kind, render_messages
from herdr.pool.request import ChatRequest, ResponseFormat, Tool

_encode = msgspec.json.Encoder().encode
_EFFORTS = {"max": "high", "xhigh": "high"}  # servers that check the field know minimal, low, medium and high
_EVERYWHERE = ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty")
_LLAMACPP_ONLY = ("top_k", "min_p")  # OpenAI's API answers 400 to fields that it does not know


def chat_body(
    request: ChatRequest,
    *,
    model: str,
    max_tokens: int,
    kind: Kind,
    slot: int | None,
    lower_schema: bool,
    vision: bool,
) -> bytes:
    """Return the body, its fields in one order.

    `slot` pins llama.cpp's KV slot. `lower_schema` asks for any JSON object, and for the schema in words, where
    a backend knows no `json_schema`. Without `vision` a line of text stands for each image.
    """
    body: dict[str, Any] = {"model": model, "messages": render_messages(request, kind, vision)}
    body.update(_tools(request, kind))
    if request.response_format is not None:
        body.update(_format(request.response_format, lower_schema, body["messages"]))
    body["max_tokens"] = max_tokens
    for name in _EVERYWHERE + (_LLAMACPP_ONLY if kind == "llamacpp" else ()):
        value = getattr(request.sampling, name)
        if value is not None:
            body[name] = value
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    body.update(_llamacpp(request, slot) if kind == "llamacpp" else _openai(request))
    return _encode(body)


def _tools(request: ChatRequest, kind: Kind) -> dict[str, Any]:
    """llama.cpp takes tool_choice as a word only and reads an object as `auto` without a word of warning.

    There, one named tool is asked for by offering nothing else and requiring a call.
    """
    choice, tools = request.tool_choice, request.tools
    if not tools:
        return {}
    fields: dict[str, Any] = {"tools": [_tool(tool) for tool in tools]}
    if choice.mode == "tool" and kind == "llamacpp":
        named = [tool for tool in tools if tool.name == choice.name]
        fields = {"tools": [_tool(tool) for tool in named or tools], "tool_choice": "required"}
    elif choice.mode == "tool":
        fields["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto":
        fields["tool_choice"] = {"any": "required", "none": "none"}[choice.mode]
    if kind == "llamacpp" or not choice.parallel:  # OpenAI's default is true, llama.cpp's its template's
        fields["parallel_tool_calls"] = choice.parallel
    return fields


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = msgspec.Raw(tool.parameters.encode())
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _format(wanted: ResponseFormat, lower: bool, messages: list[dict[str, Any]]) -> dict[str, Any]:
    if wanted.kind == "json_object" or not wanted.schema:
        return {"response_format": {"type": "json_object"}}
    if lower:
        _ask_in_words(wanted.schema, messages)
        return {"response_format": {"type": "json_object"}}
    form: dict[str, Any] = {"name": wanted.name, "schema": msgspec.Raw(wanted.schema.encode())}
    if wanted.strict is not None:
        form["strict"] = wanted.strict
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _ask_in_words(schema: str, messages: list[dict[str, Any]]) -> None:
    """Put the schema at the very end, where it costs no prefix; `json_object` also needs the word JSON."""
    asked = f"Answer with one JSON object that fits this JSON Schema:\n{schema}"
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and isinstance(last["content"], str):
        last["content"] = f"{last['content']}\n\n{asked}" if last["content"] else asked
    else:
        messages.append({"role": "user", "content": asked})


def _llamacpp(request: ChatRequest, slot: int | None) -> dict[str, Any]:
    fields: dict[str, Any] = {} if slot is None else {"id_slot": slot}
    fields["cache_prompt"] = True
    fields["return_progress"] = True
    if request.sampling.stop:  # a generation that the gateway cuts has no usage but the last token's timings
        fields["timings_per_token"] = True
    thinking = request.thinking
    if request.messages and request.messages[-1].role == "assistant":
        thinking = False  # llama.cpp answers 400 to a prefill of a model that would think first
    if thinking is not None:
        fields["chat_template_kwargs"] = {"enable_thinking": thinking}
    return fields


def _openai(request: ChatRequest) -> dict[str, Any]:
    if request.effort is None or request.thinking is False:
        return {}
    return {"reasoning_effort": _EFFORTS.get(request.effort, request.effort)}
