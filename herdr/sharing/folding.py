"""Events into messages of sessions, and into what is kept in mind of each session."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from herdr.clock import rfc3339
from herdr.context.histories import Deletion, Message
from herdr.context.redact import redact_tree
from herdr.context.sessions.message import Message as Said
from herdr.context.sessions.message import read_message
from herdr.context.sessions.state import Summary
from herdr.context.sessions.summary import fold
from herdr.event import Event

RECORDED, DELETED = "session.message", "session.deleted"
TYPES = (RECORDED, DELETED, "user.message", "assistant.message", "tool.result")
"""What is folded, where it names a session."""

SUMMARIES_MAX = 256  # kept decoded, some 100 KiB each at most; the others are read from the store

_log = logging.getLogger("herdr.context")
SUMMARY_FORM = b"\x01"
"""Raised whenever a summary's fields change; a stored one of another form is begun anew."""

_decode_summary = msgspec.msgpack.Decoder(Summary).decode
_encode = msgspec.msgpack.Encoder().encode


class _Stored(msgspec.Struct):
    """The part of an event that is a message."""

    time: str | None = None
    data: Any = None


_decode_event = msgspec.json.Decoder(_Stored).decode


class Folded(NamedTuple):
    """What a batch of events comes to."""

    entries: list[Message | Deletion]
    texts: list[str]
    """What each message says, for counting; as many as messages."""
    states: dict[str, bytes]


class Folder:
    """Keeps the summaries of sessions that are spoken in. One batch at a time."""

    def __init__(self) -> None:
        self._summaries: dict[str, Summary] = {}

    def knows(self, session: str) -> bool:
        """Tell whether the session's summary need not be read from the store."""
        return session in self._summaries

    def remember(self, session: str, state: bytes) -> None:
        """Take a session's stored summary; one of another version's form is begun anew."""
        self._summaries[session] = read_summary(state)

    def forget(self) -> None:
        """A batch was not stored: read the summaries anew."""
        self._summaries.clear()

    def fold(self, events: Sequence[Event], offset: int) -> Folded:
        """Return what these events come to; `offset` is what messages' `seq`s differ by from the log's."""
        folded = Folded([], [], {})
        for event in events:
            if event.session is None or event.corrupt:
                continue
            if event.type == DELETED:
                folded.entries.append(Deletion(event.session, event.seq))
                self._summaries[event.session] = Summary()
                folded.states.pop(event.session, None)
                continue
            try:
                message, said = _message(event, offset)
            except Exception:  # noqa: BLE001 (one odd event must not stop all histories)
                _log.exception("event %d cannot be read as a message of a session", event.seq)
                continue
            folded.entries.append(message)
            folded.texts.append(said.text)
            folded.states[event.session] = self._summarise(event.session, said)
        while len(self._summaries) > SUMMARIES_MAX:  # now: what was remembered for this batch is not needed
            del self._summaries[next(iter(self._summaries))]
        return folded

    def _summarise(self, session: str, said: Said) -> bytes:
        """Return a session's summary after one more message."""
        before = self._summaries.pop(session)  # the ones used last stand last
        if said.seq <= before.seq:
            self._summaries[session] = before  # folded already, by a commit that failed and survived
            return stored_summary(before)
        try:
            summary = fold(before, said)
            state = stored_summary(summary)
        except Exception:  # noqa: BLE001 (a rule that stumbles over a message must not stop all histories)
            _log.exception("message %d of session %s is left out of its summary", said.seq, session)
            summary, state = before, stored_summary(before)
        self._summaries[session] = summary
        return state


def stored_summary(summary: Summary) -> bytes:
    """Return a summary as it is stored."""
    return SUMMARY_FORM + _encode(summary)


def read_summary(state: bytes) -> Summary:
    """Return a stored summary; an empty one for none, or for one of another form."""
    if not state.startswith(SUMMARY_FORM):
        return Summary()
    try:
        return _decode_summary(state[len(SUMMARY_FORM) :])
    except msgspec.DecodeError:
        return Summary()


def decisions_of(state: bytes) -> list[dict[str, Any]]:
    """Return what was decided in a session, oldest first; of the oldest only the text is known."""
    summary = read_summary(state)
    older = [{"text": old.text, "superseded": bool(old.superseded)} for old in summary.older]
    return older + [
        {
            "text": decision.text,
            "reason": decision.reason,
            "files": decision.files,
            "time": rfc3339(decision.time_us),
            "source": decision.source,
            "superseded": bool(decision.superseded),
        }
        for decision in summary.decisions
    ]


def said_of(message: Message) -> Said:
    """Return what a stored message says."""
    about = msgspec.msgpack.decode(message.about) if message.about else {}
    content = msgspec.json.decode(message.body) if message.body else ""
    data = content if about.get("bare") else {**about.get("data", {}), "content": content}
    return read_message(
        data,
        type=about.get("type", RECORDED),
        seq=message.seq,
        id=message.id,
        source=message.source,
        time_us=message.time_us,
    )


def content_of(message: Message) -> dict[str, Any]:
    """Return what a stored message holds, as it was said but for secrets."""
    about = msgspec.msgpack.decode(message.about) if message.about else {}
    content = msgspec.json.decode(message.body) if message.body else None
    return {**about.get("data", {}), "content": content}


def _message(event: Event, offset: int) -> tuple[Message, Said]:
    """Return an event as a message to store, and what it says."""
    stored = _decode_event(event.body)
    data = redact_tree(stored.data)[0]
    is_bare = not (isinstance(data, dict) and "content" in data)
    rest: Mapping[str, Any] = {} if is_bare else {k: v for k, v in data.items() if k != "content"}
    body = msgspec.json.encode(data if is_bare else data["content"])
    seq = event.seq + offset
    time_us = _time_us(stored.time) or event.accepted_us
    said = read_message(data, type=event.type, seq=seq, id=event.id, source=event.source, time_us=time_us)
    message = Message(
        session=event.session or "",
        workspace=event.workspace,
        seq=event.seq,
        id=event.id,
        role=said.role,
        source=event.source,
        time_us=time_us,
        body=body,
        about=_encode({"type": event.type, "bare": is_bare, "data": rest}),
    )
    return message, said


def _time_us(time: str | None) -> int | None:
    """Return when something happened, in microseconds since the epoch; None when nobody can say."""
    if time is None:
        return None
    try:
        return int(datetime.fromisoformat(time.upper().replace("Z", "+00:00")).timestamp() * 1e6)
    except (ValueError, OverflowError):
        return None  # a leap second, or a year that no clock has
