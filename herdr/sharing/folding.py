"""Events into messages of sessions, and into what is kept in mind of each session."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from herdr.context.histories import Deletion, Message
from herdr.event import Event

TYPES = ("session.message", "session.deleted", "user.message", "assistant.message", "tool.result")
DELETED = "session.deleted"


class Folder:
    def knows(self, session: str) -> bool:
        return True

    def remember(self, session: str, state: bytes) -> None: ...

    def forget(self) -> None: ...

    def fold(self, events: Sequence[Event], offset: int) -> tuple[list[Message | Deletion], dict[str, bytes]]:
        return [], {}

    def decisions(self, state: bytes) -> Iterable[dict[str, Any]]:
        return []


def redacted(value: Any) -> Any:
    return value


def content_of(message: Message) -> dict[str, Any]:
    return {"content": msgspec.json.decode(message.body)}
