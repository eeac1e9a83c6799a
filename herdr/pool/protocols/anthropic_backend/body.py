"""Pure: what the gateway sends to a backend that speaks Anthropic's Messages API.

A client of the same protocol is passed through byte for byte; others are rendered.
"""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from herdr.errors import InvalidInput
from herdr.pool.protocols.anthropic_backend.blocks import (
    TextBlock,
    Turn,
    in_tool_loop,
    json_object,
    object_schema,
    system_blocks,
    turns,
    written,
)
from herdr.pool.request import ChatRequest, Sampling, Tool, ToolChoice, split_system

VERSION = "2023-06-01"
"""The API's version that is asked for when the client names none."""

PASSED_ON = ("anthropic-version", "anthropic-beta")
"""Headers of the client that go on to the backend. All others stay here."""

BUDGET_MIN = 1024  # tokens of thinking; the API refuses less
BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
BUDGET = BUDGETS["medium"]
"""Tokens of thinking for an effort, as the API has no efforts of that kind. Our own choice."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class _ToolOut(msgspec.Struct, omit_defaults=True):
    name: str
    input_schema: msgspec.Raw
    description: str = ""
    strict: bool = False


class _Choice(msgspec.Struct, omit_defaults=True):
    type: str
    name: str = ""
    disable_parallel_tool_use: bool = False


class _Thinking(msgspec.Struct, omit_defaults=True):
    type: str
    budget_tokens: int = 0


class _Format(msgspec.Struct):
    type: str
    schema: msgspec.Raw


class _OutputConfig(msgspec.Struct):
    format: _Format


class _Body(msgspec.Struct, omit_defaults=True, kw_only=True):
    model: str
    max_tokens: int | None = None
    stream: bool = False
    tools: list[_ToolOut] = []
    tool_choice: _Choice | None = None
    thinking: _Thinking | None = None
    output_config: _OutputConfig | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: tuple[str, ...] = ()
    system: list[TextBlock] = []
    messages: list[Turn]


def pass_through(body: bytes, *, model: str | None) -> bytes:
    """Return a client's own body with `model` replaced when given, streaming, all else byte for byte.

    The client's protocol has parsed the body before, so it is sound UTF-8. Raises InvalidInput otherwise.
    """
    fields = _split(body)
    if model is not None:
        fields["model"] = msgspec.Raw(_encode(model))
    fields["stream"] = msgspec.Raw(b"true")
    return bytes(written(fields))


def essence(body: bytes, client_headers: Mapping[str, str]) -> bytes:
    """Return a digest of all that decides the answer to a client's own body: not `stream`, not `metadata`."""
    fields = {name: bytes(raw) for name, raw in _split(body).items() if name not in ("stream", "metadata")}
    parts = (sorted(fields.items()), sorted(passed_on(client_headers).items()))
    return blake2b(msgspec.msgpack.encode(parts), digest_size=32).digest()


def _split(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _fields.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(f"the body is not a JSON object: {error}") from None


def messages_body(request: ChatRequest, *, model: str, max_tokens: int) -> bytes:
    """Return a canonical request of another protocol as a streaming body of this one.

    What the API has no field for (`min_p`, `seed`, penalties, `json_object`) is left out. So is earlier
    thinking: the API takes it back only with its own signature, and other protocols carry none.
    """
    body = _prompt(request, model)
    body.max_tokens, body.stream = max_tokens, True
    body.thinking = _thinking(request, body.messages, max_tokens)
    body.output_config = _output_config(request)
    body.stop_sequences = request.sampling.stop
    _sample(body, request.sampling)
    return _encode(body)


def count_request(request: ChatRequest, *, model: str) -> bytes:
    """Return what `/v1/messages/count_tokens` takes for a request of another protocol."""
    return _encode(_prompt(request, model))


def _prompt(request: ChatRequest, model: str) -> _Body:
    system, rest = split_system(request.messages)
    return _Body(
        model=model,
        system=system_blocks(system),
        messages=turns(rest),
        tools=[_tool(tool) for tool in request.tools],
        tool_choice=_choice(request.tool_choice) if request.tools else None,
    )


def _tool(tool: Tool) -> _ToolOut:
    return _ToolOut(tool.name, object_schema(tool.parameters), tool.description, bool(tool.strict))


def _choice(choice: ToolChoice) -> _Choice | None:
    if choice.mode == "none":
        return _Choice("none")
    if choice.mode == "auto" and choice.parallel:
        return None
    return _Choice(choice.mode, choice.name if choice.mode == "tool" else "", not choice.parallel)


def _thinking(request: ChatRequest, messages: list[Turn], max_tokens: int) -> _Thinking | None:
    """Return how to think, where the API allows it.

    It does not with a forced tool, after a prefill, or between a call and its answer when the turn with
    the call has no thinking (and we dropped it); and the budget counts as part of `max_tokens`.
    """
    if request.thinking is False:
        return _Thinking("disabled")
    wanted = request.thinking or request.effort in BUDGETS
    forced = bool(request.tools) and request.tool_choice.mode in ("any", "tool")
    prefilled = bool(messages) and messages[-1].role == "assistant"
    if not wanted or forced or prefilled or in_tool_loop(messages):
        return None
    budget = min(BUDGETS.get(request.effort or "", BUDGET), max_tokens // 2)  # half is left for the answer
    return _Thinking("enabled", budget) if budget >= BUDGET_MIN else None


def _output_config(request: ChatRequest) -> _OutputConfig | None:
    wanted = request.response_format
    if wanted is None or wanted.kind != "json_schema":
        return None
    return _OutputConfig(_Format("json_schema", json_object(wanted.schema)))


def _sample(body: _Body, sampling: Sampling) -> None:
    """Set what the API takes: nothing beside thinking, temperatures up to 1, and not `top_p` with one."""
    if body.thinking is not None and body.thinking.type != "disabled":
        return
    body.top_k = sampling.top_k if sampling.top_k is not None and sampling.top_k > 0 else None
    if sampling.temperature is None:
        body.top_p = sampling.top_p
    else:
        body.temperature = min(1.0, sampling.temperature)


def passed_on(client_headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that a client's request lends the one to the backend.

    Only PASSED_ON is taken, whatever case the names have. The client's `x-api-key` and `authorization` never
    are: they hold a token of this gateway, and the backend is somebody else's.
    """
    given = {name.lower(): value for name, value in client_headers.items()}
    sent = {name: given[name] for name in PASSED_ON if given.get(name)}
    sent.setdefault("anthropic-version", VERSION)
    return sent
