"""Pure: what the messages of OpenAI's form and of `/v1/chat` have in common: roles, results in a row."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from herdr.pool.protocols.reading import one_of, refuse
from herdr.pool.request import Message, Part, Role, ToolResult

M = TypeVar("M")

ROLES: Mapping[str, Role] = MappingProxyType(
    {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "user"}
)


def role_of(word: str, at: str) -> Role:
    """Return the role that a message's own stands for; raises InvalidInput."""
    return one_of(word, ROLES, at, "role")


def conversation(
    messages: Sequence[M], read: Callable[[M, str], Message | ToolResult]
) -> tuple[Message, ...]:
    """Return the messages as `read` reads each at its path; results of tools in a row become one user message.

    Raises InvalidInput, also when there is none.
    """
    if not messages:
        raise refuse(
            "messages", 'Expected at least one message, as in [{"role": "user", "content": "Hello"}].'
        )
    found: list[Message] = []
    results: list[Part] = []
    for i, message in enumerate(messages):
        said = read(message, f"messages[{i}]")
        if isinstance(said, ToolResult):
            results.append(said)
            continue
        if results:
            found.append(Message("user", tuple(results)))
            results.clear()
        found.append(said)
    if results:
        found.append(Message("user", tuple(results)))
    return tuple(found)
