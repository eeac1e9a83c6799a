"""What a tool tells of itself through a hook, whichever tool it is, and what it is answered. Pure."""

from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["start", "prompt", "before", "after", "undone", "answer", "compacted", "end", "other"]
"""`before` and `after` a tool call; `undone`: it failed or was refused, so it has changed nothing."""

PATHS_MAX = 256  # of one call, as many as one lock covers
TEXT_MAX = 512 * 1024  # characters of a prompt or an answer that are recorded; an event holds 1 MiB


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a hook."""

    client: str
    kind: Kind
    event: str
    """The client's own name for it."""
    session: str
    """The client's id of the conversation."""
    agent: str = ""
    """The client's id of a sub-agent; empty for the main one."""
    cwd: str = ""
    tool: str = ""
    use: str = ""
    """The client's id of this tool call; empty where it gives none."""
    paths: tuple[str, ...] = ()
    """Files that the tool call writes, as the client has them: absolute, or relative to `cwd`."""
    text: str = ""
    """The prompt, the answer or the summary."""
    hears: bool = True
    """Whether the answer can say something to the model; what it cannot hear now is kept for another call."""

    @property
    def name(self) -> str:
        """Who calls, in Herdr: the owner of its locks, the source of its events."""
        parts = (self.client, short(self.session), short(self.agent))
        return "/".join(part for part in parts if part)

    @property
    def key(self) -> str:
        """What tells this tool call from others of its session: its id, or what it writes where it has none."""
        named = self.use or "\0".join(self.paths)  # it may be long, and is remembered: so its hash
        return sha256(named.encode("utf-8", "replace")).hexdigest()[:32]

    @property
    def conversation(self) -> str:
        """The session's id in Herdr."""
        return f"{self.client}/{plain(self.session)}"[:128]


class Reply(NamedTuple):
    """What the tool is answered; nothing at all lets it go on as it would have."""

    deny: str | None = None
    """Why the tool call must not happen."""
    context: str | None = None
    """Facts for the model."""
    notice: str | None = None
    """Something for the person in front of the tool."""


SHORT = (
    8  # characters of an id that stand in a name; people read them. 32 random bits where they are hexadecimal
)


def plain(text: str) -> str:
    """Return an id as it may stand in an event's fields."""
    return "".join(c for c in text if c.isprintable() and c not in " /")[:100]


def short(text: str) -> str:
    """Return the end of an id: of many kinds of ids the beginning is a time, and alike in two sessions."""
    return plain(text)[-SHORT:]
