"""Pure: one form for all ways of writing the same prompt, so that what is rendered changes only where it must.

A model server keeps the work on a prompt's longest unchanged beginning. Clients move markers, write one block
as a string, number their requests in the system prompt; none of that may reach the model. Nothing is moved:
what stood in the middle stays there, and text of the model and the user is kept byte for byte.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from herdr.errors import FieldError, InvalidInput
from herdr.pool.billing import without_billing
from herdr.pool.chain import Chain, chain_of
from herdr.pool.request import ChatRequest, Image, Message, Part, Text, Thinking, ToolResult

BLANK_LINE = "\n\n"  # between texts that become one


class Canonical(msgspec.Struct, frozen=True):
    """A request in its one form, and what identifies its prompt."""

    request: ChatRequest
    """Its messages: at most one of `system`, which comes first; then never two of one role in a row."""
    sub_agent: bool
    """The billing text, which is gone from the request, said that a sub-agent asks."""
    chain: Chain
    """One digest for each section (`herdr.pool.chain`)."""


def canonical(request: ChatRequest) -> Canonical:
    """Return the one form of a request; doing it again changes nothing.

    Conversations that begin with the assistant, or have no message but system ones, stay as they are: many
    templates take them. Raises InvalidInput when no message says anything.
    """
    messages, sub_agent = _unbilled(request.messages)
    merged = tuple(_merged(_folded(_with_content(messages))))
    if not merged:
        what = "has no message with content; send at least one with text, an image or a tool result"
        raise InvalidInput(f"The request {what}.", errors=[FieldError("messages", what)])
    request = msgspec.structs.replace(request, messages=merged)
    return Canonical(request, sub_agent, chain_of(request))


def _unbilled(messages: Iterable[Message]) -> tuple[list[Message], bool]:
    kept: list[Message] = []
    sub_agent = False
    for message in messages:
        if message.role == "system":
            message, flagged = _unbilled_system(message)
            sub_agent = sub_agent or flagged
        kept.append(message)
    return kept, sub_agent


def _unbilled_system(message: Message) -> tuple[Message, bool]:
    parts: list[Part] = []
    flagged = False
    for part in message.parts:
        if isinstance(part, Text):
            text, said = without_billing(part.text)
            part, flagged = Text(text), flagged or said
        parts.append(part)
    return Message(message.role, tuple(parts)), flagged


def _with_content(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages in which something is left, with their parts tidied."""
    for message in messages:
        parts = tuple(_tidied(message.parts))
        if parts:
            yield Message(message.role, parts)


def _tidied(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts without the empty ones, runs of texts as one."""
    for is_text, run in groupby(filter(_says_something, parts), lambda part: isinstance(part, Text)):
        if is_text:
            yield Text(BLANK_LINE.join(part.text for part in run if isinstance(part, Text)))
        else:
            yield from map(_tidied_part, run)


def _says_something(part: Part) -> bool:
    return not isinstance(part, Text | Thinking) or part.text != ""


def _tidied_part(part: Part) -> Part:
    if not isinstance(part, ToolResult):
        return part
    parts = tuple(inner for inner in _tidied(part.parts) if isinstance(inner, Text | Image))
    return ToolResult(part.id, parts, part.is_error)


def _folded(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages with later system ones as the user's, where they stand.

    Templates refuse a system message in the middle, and hoisting it would change the prefix on every turn.
    """
    leading = True
    for message in messages:
        leading = leading and message.role == "system"
        yield Message("user", message.parts) if message.role == "system" and not leading else message


def _merged(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield runs of messages of one role as one message, as Anthropic's API reads them."""
    for role, run in groupby(messages, lambda message: message.role):
        said = list(run)
        if role == "assistant":  # a client that asked twice may have kept the same answer twice
            said = [message for message, _ in groupby(said)]
        yield said[0] if len(said) == 1 else Message(role, tuple(_tidied(_parts_of(said))))


def _parts_of(messages: Iterable[Message]) -> Iterator[Part]:
    for message in messages:
        yield from message.parts
