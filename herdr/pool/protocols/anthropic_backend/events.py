"""Pure: one event of an Anthropic stream, typed. Of unknown events, blocks and deltas only the type is read."""

import msgspec

from herdr.pool.failures import ModelError


class Details(msgspec.Struct):
    """What the output consists of."""

    thinking_tokens: int | None = None


class Usage(msgspec.Struct):
    """Counts of tokens as the server writes them; the three of the input are disjoint."""

    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: Details | None = None


class Started(msgspec.Struct):
    """The message of `message_start`."""

    usage: Usage | None = None


class Block(msgspec.Struct):
    """A content block as it starts; fields of all kinds together."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class Delta(msgspec.Struct):
    """What a block or the message gains; fields of all kinds together."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None


class Event(msgspec.Struct):
    """One event; fields of all kinds together."""

    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: Block | None = None
    message: Started | None = None
    usage: Usage | None = None
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Type(msgspec.Struct):
    type: str = ""


class _Kind(msgspec.Struct):
    type: str = ""
    delta: _Type | None = None
    content_block: _Type | None = None


BLOCKS = frozenset({"text", "thinking", "tool_use"})
DELTAS = frozenset({"text_delta", "thinking_delta", "input_json_delta"})
MESSAGES = frozenset({"message_start", "message_delta", "message_stop", "content_block_stop"})

_event = msgspec.json.Decoder(Event)
_kind = msgspec.json.Decoder(_Kind)


def read_event(data: bytes) -> Event:
    """Return one event; of an unknown kind whose fields have other types, nothing but its type.

    Raises ModelError for what is no JSON, and for a known kind that is malformed.
    """
    try:
        return _event.decode(data)
    except msgspec.ValidationError as error:
        return _unknown(data, str(error))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _malformed(str(error)) from None


def _unknown(data: bytes, why: str) -> Event:
    try:
        kind = _kind.decode(data)
    except msgspec.ValidationError:
        return Event()
    if _is_known(kind):
        raise _malformed(why)
    return Event(kind.type)


def _is_known(kind: _Kind) -> bool:
    if kind.type == "content_block_start":
        return kind.content_block is None or kind.content_block.type in BLOCKS
    if kind.type == "content_block_delta":
        return kind.delta is None or kind.delta.type in DELTAS
    return kind.type in MESSAGES


def _malformed(why: str) -> ModelError:
    return ModelError("backend_failed", f"the backend sent an event that cannot be read: {why}")
