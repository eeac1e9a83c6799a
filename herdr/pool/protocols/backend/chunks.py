"""Pure: the chunks of a chat-completions stream, as llama.cpp, OpenAI and their kin write them.

Only fields that are read are declared; unknown ones are skipped without being decoded.
"""

from typing import Any

import msgspec


class Part(msgspec.Struct, gc=False):
    """A piece of content where a server sends a list (Mistral does)."""

    type: str = ""
    text: str | None = None
    thinking: "str | list[Part] | None" = None


class Function(msgspec.Struct, gc=False):
    """A fragment of a call; a few servers send the arguments as an object instead of its text."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ToolCall(msgspec.Struct, gc=False):
    """A fragment of one of the calls; id and name come in the first."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct, gc=False):
    """What a chunk adds. llama.cpp says `reasoning_content`; vLLM, Ollama and OpenRouter say `reasoning`."""

    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None


class PromptDetails(msgspec.Struct, gc=False):
    """`prompt_tokens_details`."""

    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """`completion_tokens_details`."""

    reasoning_tokens: int | None = None


class Counts(msgspec.Struct, gc=False):
    """`usage`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None


class Choice(msgspec.Struct, gc=False):
    """One of the answers; only the first is asked for. Moonshot puts `usage` here."""

    index: int | None = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    usage: Counts | None = None


class Work(msgspec.Struct, gc=False):
    """llama.cpp's `timings`: tokens reused, evaluated and generated, and the milliseconds of the latter two."""

    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0
    prompt_ms: float = 0
    predicted_ms: float = 0


class PromptProgress(msgspec.Struct, gc=False):
    """llama.cpp's `prompt_progress`; `processed` counts the cached tokens too."""

    total: int = 0
    cache: int = 0
    processed: int = 0


class StreamChunk(msgspec.Struct, gc=False):
    """One event of the stream."""

    choices: list[Choice] | None = None
    usage: Counts | None = None
    timings: Work | None = None
    prompt_progress: PromptProgress | None = None
    error: Any = None
    object: Any = None
