"""Conversations that all tools of a project share: `hub.session("fix-cart")`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

import msgspec

from herdr_sdk.errors import FieldError, HerdrError, InvalidEvent
from herdr_sdk.event import Receipt
from herdr_sdk.ids import IdFactory
from herdr_sdk.plain_http import PlainHttp, Request, json_request, part
from herdr_sdk.texts import Text, Texts

TOKENS = 2048  # of a window, as the gateway has it
LIMIT = 100  # of lists, as the gateway has it
MESSAGES_MAX = 1000  # in one request, by the gateway's rule
BYTES_MAX = 4 * 1024**2  # in one request of several: half of what the gateway takes by default

Role = Literal["user", "assistant", "tool", "system"]
Content = str | Sequence[Mapping[str, Any]]
"""A text, or blocks: `{"type": "text", "text"}`, `{"type": "tool_use", "name", "input"}`,
`{"type": "tool_result", "content"}`."""


class MessageFields(TypedDict, total=False):
    """The optional fields of a message, as keyword arguments of `Session.say`."""

    id: str
    """Default: a new one. The same one of the same source is stored once."""
    time: str | datetime
    files: Sequence[str]
    tool: str
    task: str


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a session."""

    seq: int = 0
    id: str = ""
    role: str = ""
    source: str = ""
    """Who recorded it, as the gateway knows it."""
    time: str = ""
    content: Any = None
    text: str | None = None
    """In a window: what is left of the content there."""
    files: tuple[str, ...] = ()
    tool: str | None = None
    task: str | None = None
    tokens: int = 0


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages in order."""

    messages: tuple[Message, ...]
    total: int = 0
    """How many the session has."""
    more: bool | int = False
    """Whether there are some after these."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a summary keeps: a decision, a question, an outcome or an error."""

    text: str = ""
    reason: str | None = None
    files: tuple[str, ...] = ()
    seq: int = 0
    time: str | None = None
    source: str | None = None


class TouchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the session is about."""

    path: str
    actions: tuple[str, ...] = ()
    seq: int = 0


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has come to. Decisions are never left out."""

    decisions: tuple[Point, ...] = ()
    files: tuple[TouchedFile, ...] = ()
    questions: tuple[Point, ...] = ()
    """Those that are open."""
    outcomes: tuple[Point, ...] = ()
    errors: tuple[Point, ...] = ()
    """Those that are open."""
    more: dict[str, int] = {}
    """How many of each kind there are beyond these."""


class Window(Text, frozen=True, kw_only=True):
    """A session within a number of tokens: a summary, and the newest messages."""

    session: str
    messages: int = 0
    """How many the session has."""
    full_tokens: int = 0
    saved_tokens: int = 0
    summariser: str = ""
    summary: Summary = Summary()
    newest: tuple[Message, ...] = ()


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One session in a list."""

    session: str
    workspace: str = "default"
    messages: int = 0
    full_tokens: int = 0
    first: str | None = None
    updated: str | None = None
    sources: tuple[str, ...] = ()


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions, the newest first."""

    sessions: tuple[SessionInfo, ...]
    more: int = 0
    """How many there are beyond these."""


class _Recorded(msgspec.Struct):
    messages: list[Receipt]


class Session:
    """One conversation; made by `Hub.session`. It begins with its first message, whoever records it."""

    def __init__(self, http: PlainHttp, texts: Texts, session: str, workspace: str) -> None:
        self.session = session
        self._http = http
        self._texts = texts
        self._workspace = workspace
        self._base = f"/v1/sessions/{part(session)}"
        self._new_id = IdFactory()

    async def window(self, tokens: int = TOKENS) -> Window:
        """Return what matters of the session in at most so many tokens (64 to 1,000,000); raises NotFound."""
        return await self._texts.read(Window, self._base, {"tokens": tokens})

    async def say(self, role: Role, content: Content, **fields: Unpack[MessageFields]) -> Receipt:
        """Record one message; see `record`."""
        return (await self.record([{"role": role, "content": content, **fields}]))[0]

    async def record(self, messages: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record messages (`role`, `content`, and the fields of `say`), and return their receipts in order.

        They go in requests of up to 1,000 messages or 4 MiB. When one of these fails, its error is raised
        with the receipts so far as `results`: go on behind these. OutcomeUnknown names the `ids` that were
        not answered; recording them again with the same ids is safe. InvalidEvent: no JSON has such a content.
        """
        receipts: list[Receipt] = []
        for ids, batch in _batches(map(self._named, messages)):
            try:
                request = json_request(f"{self._base}/messages", {"messages": batch}, ids)
                receipts += (await self._http.read(_Recorded, request)).messages
            except HerdrError as error:
                error.results = receipts
                raise
        return receipts

    async def messages(self, after: int = 0, limit: int = LIMIT) -> Messages:
        """Return messages whole, in order, those behind the `seq` `after`; raises NotFound."""
        query = {"after": after, "limit": limit}
        return await self._http.read(Messages, Request("GET", f"{self._base}/messages", query))

    async def delete(self) -> None:
        """Delete the session; raises NotFound. The gateway's log keeps its events as long as any others."""
        await self._http.ask(Request("DELETE", self._base))

    def _named(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"workspace": self._workspace, "id": self._new_id(), **message}


async def list_sessions(http: PlainHttp, workspace: str | None, limit: int) -> Sessions:
    """Return the sessions that there are; see `Hub.sessions`."""
    return await http.read(Sessions, Request("GET", "/v1/sessions", {"workspace": workspace, "limit": limit}))


def _batches(messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[list[str], list[msgspec.Raw]]]:
    """Yield the ids and the encoded messages of one request after the other."""
    ids: list[str] = []
    batch: list[msgspec.Raw] = []
    size = 0
    for message in messages:
        raw = _encode(message)
        if batch and (len(batch) == MESSAGES_MAX or size + len(raw) > BYTES_MAX):
            yield ids, batch
            ids, batch, size = [], [], 0
        ids.append(str(message["id"]))
        batch.append(msgspec.Raw(raw))
        size += len(raw)
    if batch:
        yield ids, batch


def _encode(message: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        wrong = FieldError("content", f"cannot be written as JSON: {error}")
        raise InvalidEvent("The message was not recorded.", [wrong]) from None
