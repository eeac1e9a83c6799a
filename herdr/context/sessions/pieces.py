"""Pure: the lines of which a window of a session may be made, each in several lengths."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from herdr.context.sessions.ledger import noted_seqs
from herdr.context.sessions.message import Message, Role
from herdr.context.sessions.prose import plain
from herdr.context.sessions.state import Decision, File, OldDecision, Summary

Kind = Literal["history", "frame", "decision", "error", "question", "outcome", "file", "message"]

LENGTHS: dict[Role, tuple[int, ...]] = {
    "user": (4000, 1200, 400, 120),
    "system": (1200, 400, 120),
    "assistant": (2000, 800, 300, 120),
    "tool": (240, 80),
}
"""Characters to which messages are shortened. What tools print is never shown whole beyond that."""
TINY = (40, 12)  # for the user's last message only, which is there in whatever length

WHOLE_BYTES_A_TOKEN = 16  # a message of more than that many bytes a token of the budget is not offered whole
SHORT_MAX = 90  # characters of a decision in short
LINE_MAX = 200  # characters of an error, question or outcome in short

HEADINGS: dict[Kind, str] = {
    "decision": "## Decisions",
    "error": "## Errors still open",
    "question": "## Open questions",
    "outcome": "## Outcomes",
    "file": "## Files touched",
    "message": "## Newest messages",
}
MORE = "- 999999 more"
"""As wide as the line gets that says how much of a part did not fit."""
GAP = "[999999 messages left out]"


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One line or message that may stand in the window."""

    kind: Kind
    place: int
    """Its place among those of its kind, oldest first; for a frame that of its text."""
    forms: tuple[str, ...]
    """The same in several lengths, the longest first."""


def pieces(summary: Summary, newest: Sequence[Message], budget: int) -> tuple[Piece, ...]:
    """Return all that may stand in a window of `budget` tokens; of a session that may fit also all that was said."""
    return tuple(_pieces(summary, newest, budget))


def texts(found: Sequence[Piece]) -> tuple[str, ...]:
    """Return what is to be counted: every form of every piece in order, with its line's end."""
    return tuple(f"{form}\n" for piece in found for form in piece.forms)


def last_of_user(newest: Sequence[Message]) -> int | None:
    """Return the place of the user's last message."""
    return next((place for place in range(len(newest) - 1, -1, -1) if newest[place].role == "user"), None)


def decisions_of(summary: Summary) -> tuple[Decision | OldDecision, ...]:
    """Return the decisions that have a text, oldest first."""
    return (*summary.older, *summary.decisions)


def listing(summary: Summary) -> str:
    """Return every decision of a session, in Markdown: what a window that is too small for them refers to."""
    lines = [decision_line(decision) for decision in decisions_of(summary)]
    noted = ", ".join(f"#{seq}" for seq in noted_seqs(summary))
    before = [f"- {summary.noted_count} older ones, in the messages {noted}"] if summary.noted_count else []
    return "\n".join(["# Decisions of this session", *before, *lines, ""])


def decision_line(decision: Decision | OldDecision) -> str:
    """Return a decision with its reason, what it answers, and what took its place."""
    text = decision.text
    if isinstance(decision, Decision):
        text = f"agent: {text}" if decision.by == "assistant" else text
        text += f" ({decision.reason})" if decision.reason else ""
        text += f" [asked: {decision.about}]" if decision.about else ""
    return f"- #{decision.seq} {text}{_replaced(decision)}"


def files_of(summary: Summary) -> tuple[File, ...]:
    """Return the files touched, each once, with paths from the folder that the absolute ones share."""
    absolute = [file.path for file in summary.files if file.path.startswith("/")]
    root = _shared_folder(absolute)
    by_path: dict[str, File] = {}
    ends = {path[place + 1 :]: path for path in absolute for place, char in enumerate(path) if char == "/"}
    for file in summary.files:
        path = ends.get(file.path, file.path).removeprefix(root)
        old = by_path.pop(path, None)
        actions = file.actions if old is None else tuple(dict.fromkeys((*old.actions, *file.actions)))
        by_path[path] = File(path, actions, file.seq, file.time_us)
    return tuple(by_path.values())


def shortened(text: str, most: int, *, tail: bool = False) -> str:
    """Cut a text's middle out and say how much; `tail`: its end says more than its beginning."""
    if len(text) <= most:
        return text
    note = f" … [{len(text) - most} characters left out] … "
    if most < 2 * len(note):
        return f"{text[: most - 1]}…"
    first = most // 3 if tail else most * 2 // 3
    return f"{text[:first].rstrip()}{note}{text[len(text) - (most - first) :].lstrip()}"


def _pieces(summary: Summary, newest: Sequence[Message], budget: int) -> Iterator[Piece]:
    if summary.messages <= len(newest) and sum(len(m.text) for m in newest) <= budget * WHOLE_BYTES_A_TOKEN:
        yield Piece("history", 0, ("\n".join(_whole(message) for message in newest),))
    frames = [*HEADINGS.values(), MORE, GAP]
    yield from (Piece("frame", place, (text,)) for place, text in enumerate(frames))
    for place, decision in enumerate(decisions_of(summary)):
        yield Piece("decision", place, _forms(decision_line(decision), _short_decision(decision)))
    for place, error in enumerate(summary.errors):
        yield Piece("error", place, _line(error.seq, error.text))
    for place, question in enumerate(summary.questions):
        by = "" if question.by == "user" else "agent: "
        yield Piece("question", place, _line(question.seq, by + question.text))
    for place, outcome in enumerate(summary.outcomes):
        yield Piece("outcome", place, _line(outcome.seq, outcome.text))
    for place, file in enumerate(files_of(summary)):
        yield Piece("file", place, (f"- {file.path}: {', '.join(file.actions)} (#{file.seq})",))
    last = last_of_user(newest)
    for place, message in enumerate(newest):
        tiny = TINY if place == last else ()
        yield Piece("message", place, _message_forms(message, budget * WHOLE_BYTES_A_TOKEN, tiny))


def _forms(*texts: str) -> tuple[str, ...]:
    """Leave out forms that are no shorter than the one before."""
    kept: list[str] = []
    for text in texts:
        if not kept or len(text) < len(kept[-1]):
            kept.append(text)
    return tuple(kept)


def _line(seq: int, text: str) -> tuple[str, ...]:
    text = plain(text)
    return _forms(*(f"- #{seq} {shortened(text, most)}" for most in (len(text), LINE_MAX, SHORT_MAX)))


def _short_decision(decision: Decision | OldDecision) -> str:
    text = decision.text
    if isinstance(decision, Decision) and decision.about and len(text) < SHORT_MAX // 3:
        text = f"{text} [asked: {decision.about}]"
    return f"- #{decision.seq} {shortened(text, SHORT_MAX)}{_replaced(decision)}"


def _replaced(decision: Decision | OldDecision) -> str:
    return f" [replaced by #{decision.superseded}]" if decision.superseded else ""


def _head(message: Message) -> str:
    return f"#{message.seq} {message.role}" + (f" ({message.tool})" if message.tool else "") + ": "


def _whole(message: Message) -> str:
    return _head(message) + spoken(message).replace("\n", "\n  ")


def _message_forms(message: Message, whole_bytes: int, tiny: tuple[int, ...]) -> tuple[str, ...]:
    text = spoken(message)
    tail = message.role == "tool"
    lengths = (*LENGTHS[message.role], *tiny)
    if len(text) <= lengths[0] or (not tail and len(text) * 4 <= whole_bytes):
        lengths = (len(text), *lengths)
    cut = (shortened(text, most, tail=tail) for most in lengths)
    return _forms(*(_head(message) + form.replace("\n", "\n  ") for form in cut))


def spoken(message: Message) -> str:
    """Return what a message says, or, of one that only calls tools, which."""
    if message.text.strip() or not message.calls:
        return message.text.strip()
    return "; ".join(f"[{call.name} {' '.join(call.files) or call.command}]" for call in message.calls)


def _shared_folder(paths: Sequence[str]) -> str:
    """Return the folder that all paths lie in, with its slash; empty for fewer than two."""
    if len(paths) < 2:
        return ""
    first, last = min(paths), max(paths)
    same = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: first.rfind("/", 0, same) + 1]
