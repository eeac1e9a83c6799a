"""Pure: the body of `POST /v1/chat/completions` into a request."""

import msgspec

from herdr.pool.protocols.openai.messages import ChatMessage, messages_of
from herdr.pool.protocols.openai.sampling import SamplingFields, sampling_of
from herdr.pool.protocols.openai.tools import (
    ChatFormat,
    ChatTool,
    NamedChoice,
    choice_of,
    format_of,
    tools_of,
)
from herdr.pool.protocols.reading import decode_body, refuse
from herdr.pool.request import ChatRequest


class StreamOptions(msgspec.Struct):
    """How a stream is to look."""

    include_usage: bool | None = None


class TemplateArguments(msgspec.Struct):
    """Arguments of the chat template, an extension of llama.cpp and vLLM."""

    enable_thinking: bool | None = None


class ChatBody(SamplingFields, kw_only=True):
    """What is read of a body; other fields are ignored."""

    model: str = ""
    messages: list[ChatMessage]
    tools: list[ChatTool] | None = None
    tool_choice: NamedChoice | str | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    response_format: ChatFormat | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: TemplateArguments | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    prompt_cache_key: str | None = None


_decoder = msgspec.json.Decoder(ChatBody)


def parse(body: bytes) -> ChatRequest:
    """Return what a body asks for; raises InvalidInput with the path of the wrong field."""
    asked = decode_body(_decoder, body)
    if asked.n is not None and asked.n != 1:
        raise refuse("n", "The gateway gives one choice only; leave n out or send several requests.")
    thinking, effort = thinking_of(asked.reasoning_effort)
    if asked.chat_template_kwargs is not None and asked.chat_template_kwargs.enable_thinking is not None:
        thinking = asked.chat_template_kwargs.enable_thinking
    return ChatRequest(
        model=asked.model,
        messages=messages_of(asked.messages),
        tools=tools_of(asked.tools or []),
        tool_choice=choice_of(asked.tool_choice, asked.parallel_tool_calls),
        sampling=sampling_of(asked),
        response_format=format_of(asked.response_format),
        max_tokens=_max_tokens(asked),
        thinking=thinking,
        effort=effort,
        stream=asked.stream is True,
        include_usage=asked.stream_options is not None and asked.stream_options.include_usage is True,
        session=asked.prompt_cache_key or None,
    )


def thinking_of(effort: str | None) -> tuple[bool | None, str | None]:
    """Return whether to think, and how hard; `none` means not at all."""
    return (False, None) if effort == "none" else (None, effort or None)


def token_limit(limit: int | None, at: str) -> int | None:
    """Return a limit of the answer; -1 is how local servers' clients write that there is none.

    0 asks for no answer: the prompt is only evaluated, so that the next call finds it warm.
    """
    if limit is None or limit == -1:
        return None
    if limit < 0:
        raise refuse(at, f"Expected 0 or more, got {limit}; leave it out for the default.")
    return limit


def _max_tokens(asked: ChatBody) -> int | None:
    if asked.max_completion_tokens is not None:
        return token_limit(asked.max_completion_tokens, "max_completion_tokens")
    return token_limit(asked.max_tokens, "max_tokens")
