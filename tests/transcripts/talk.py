"""Sessions made of a few words, for tests."""

from collections.abc import Iterable, Sequence

from herdr.context.sessions.message import Call, Message, Role
from herdr.context.sessions.state import Summary
from herdr.context.sessions.summary import fold

ROLES: dict[str, Role] = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}


def talk(*lines: str) -> list[Message]:
    """Return messages of lines such as `u: use x`, `a: ok`, `t: 3 passed`; their `seq` counts from 1."""
    return [message(number, *line.split(": ", 1)) for number, line in enumerate(lines, 1)]


def message(
    seq: int, who: str, text: str, calls: Sequence[Call] = (), *, failed: bool | None = None
) -> Message:
    return Message(
        seq=seq,
        id=f"m{seq}",
        role=ROLES[who],
        source="tool",
        time_us=seq * 1_000_000,
        text=text,
        calls=tuple(calls),
        failed=failed,
    )


def ran(seq: int, command: str, output: str, *, failed: bool | None = None) -> Message:
    """Return what a shell answered, with the command that it was given."""
    return message(seq, "t", output, [Call("bash", command)], failed=failed)


def told(messages: Iterable[Message]) -> Summary:
    summary = Summary()
    for one in messages:
        summary = fold(summary, one)
    return summary


def decided(*lines: str) -> list[str]:
    """Return the texts of the decisions in a talk."""
    return [decision.text for decision in told(talk(*lines)).decisions]
