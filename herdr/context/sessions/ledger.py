"""Pure: decisions as they come in: one said twice is kept once, a later one on the same thing replaces it."""

import re
from collections.abc import Iterator

import msgspec

from herdr.context.sessions import wording
from herdr.context.sessions.decisions import Found
from herdr.context.sessions.message import Message
from herdr.context.sessions.prose import words
from herdr.context.sessions.state import (
    FULL_MAX,
    NOTED_BYTES_MAX,
    SHORT_MAX,
    SHORT_TEXT_MAX,
    Decision,
    OldDecision,
    Summary,
)
from herdr.context.sessions.tools import paths_in

SAME = 0.8  # share of the smaller one's words that two decisions have in common when they are one
SAME_LEAST = 3  # words; of fewer one cannot tell
RESTATED_WITHIN = 8  # decisions: an assistant repeats what it was told at once or not at all
FILES_OF_ONE = 4  # files that a decision names

_NOT_A_WORD = re.compile(r"[\W_]+")


def decide(summary: Summary, found: Found, message: Message) -> Summary:
    """Add a decision, unless it is one that was made already and still holds."""
    kept = list(summary.decisions)
    for place in range(len(kept) - 1, -1, -1):
        if _same(kept[place], found, message, near=len(kept) - place <= RESTATED_WITHIN):
            kept[place] = _said_again(kept[place], found, message.seq)
            return msgspec.structs.replace(summary, decisions=tuple(kept))
    new = Decision(
        found.text,
        found.reason,
        found.about,
        tuple(paths_in(f"{found.text} {found.reason}")[:FILES_OF_ONE]),
        message.seq,
        message.time_us,
        message.source,
        message.role,
        options=found.options,
    )
    weighed = words(" ".join(found.weighed))
    kept = [
        msgspec.structs.replace(old, superseded=new.seq) if _replaces(new, old, weighed) else old
        for old in kept
    ]
    return _bounded(msgspec.structs.replace(summary, decisions=(*kept, new)))


def noted_seqs(summary: Summary) -> Iterator[int]:
    """Yield the messages of the decisions that are only noted, oldest first."""
    seq = value = shift = 0
    for byte in summary.noted:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            seq += value
            yield seq
            value = shift = 0


def _same(old: Decision, found: Found, message: Message, *, near: bool) -> bool:
    if old.superseded:
        return False
    if _NOT_A_WORD.sub("", old.text.lower()) == _NOT_A_WORD.sub("", found.text.lower()):
        return old.about == found.about or not found.about
    if (
        not near
        or message.role == "user"
        or old.seq == message.seq
        or wording.CHANGED_MIND.search(found.text)
    ):
        return False
    mine, theirs = words(found.text), words(f"{old.text} {old.about}")
    return len(mine) >= SAME_LEAST and len(mine & theirs) >= SAME * len(mine)


def _said_again(old: Decision, found: Found, seq: int) -> Decision:
    return msgspec.structs.replace(old, again=seq, reason=old.reason or found.reason)


def _replaces(new: Decision, old: Decision, weighed: set[str]) -> bool:
    """Say whether a decision takes the place of an older one: it turns down what that chose, or chooses again.

    Rather too seldom than too often: an old decision beside its successor is seen to be old by its place.
    """
    if old.superseded or old.seq == new.seq:
        return False
    chosen, rejected = _sides(new)
    before, refused = _sides(old)
    turned_down = (rejected - chosen) & (before - refused)
    if (
        turned_down
        and (new.by == "user" or old.by != "user")
        and (
            len(turned_down) >= 2
            or wording.CHANGED_MIND.search(new.text)
            or (chosen | rejected) & (before - turned_down)
        )
    ):
        return True
    if new.by != "user" or not _changes(new):
        return False
    if len((chosen | weighed) & (refused - before)) >= 2:  # now it is wanted after all
        return True
    return any(
        words(option) & chosen - before and not words(option) & before - chosen for option in old.options
    )


def _changes(new: Decision) -> bool:
    return wording.CHANGED_MIND.search(new.text) is not None or wording.YES.search(new.text) is not None


def _sides(decision: Decision) -> tuple[set[str], set[str]]:
    """Return what a decision is for, and what it turns down."""
    rejected = {
        word
        for found in wording.REJECTED.finditer(decision.text)
        for part in found.groups()
        if part
        for word in words(part)
    }
    return words(wording.REJECTED.sub(" ", decision.text)), rejected


def _bounded(summary: Summary) -> Summary:
    """Move what is too old into a shorter form, one decision at a time."""
    if len(summary.decisions) <= FULL_MAX:
        return summary
    first, *decisions = summary.decisions
    text = first.text if not first.about else f"{first.text} ({first.about})"
    short = OldDecision(_cut(text, SHORT_TEXT_MAX), first.seq, first.superseded)
    older = (*summary.older, short)
    if len(older) <= SHORT_MAX:
        return msgspec.structs.replace(summary, decisions=tuple(decisions), older=older)
    gone = older[0].seq
    noted = summary.noted
    if len(noted) < NOTED_BYTES_MAX:
        noted += _varint(gone - summary.noted_last)
    return msgspec.structs.replace(
        summary,
        decisions=tuple(decisions),
        older=older[1:],
        noted=noted,
        noted_count=summary.noted_count + 1,
        noted_last=gone,
    )


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
