"""Pure: decisions as they come in: one said twice is kept once, a later one on the same thing replaces it."""

import re
from collections.abc import Iterator

import msgspec

from herdr.context.sessions import wording
from herdr.context.sessions.decisions import Found
from herdr.context.sessions.message import Message
from herdr.context.sessions.prose import cut, words
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
MARKS_MAX = 12  # characters by which two decisions may differ in marks and blanks alone
SAME_LEAST = 3  # words; of fewer one cannot tell
RESTATED_WITHIN = 8  # decisions: an assistant repeats what it was told at once or not at all
WORDS_OF_ONE = 40  # words by which one is known again
FILES_OF_ONE = 4  # files that a decision names

_NOT_A_WORD = re.compile(r"[\W_]+")


def decide(summary: Summary, found: Found, message: Message) -> Summary:
    """Add a decision, unless it is one that was made already and still holds."""
    kept = list(summary.decisions)
    mine, bare = words(found.text), _bare(found.text)
    for place in range(len(kept) - 1, -1, -1):
        if _same(kept[place], found, bare, message, mine if len(kept) - place <= RESTATED_WITHIN else set()):
            kept[place] = _said_again(kept[place], found, message.seq)
            return msgspec.structs.replace(summary, decisions=tuple(kept))
    chosen, refused = _sides(found.text)
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
        chosen=tuple(sorted(chosen)[:WORDS_OF_ONE]),
        refused=tuple(sorted(refused)[:WORDS_OF_ONE]),
    )
    later = _Later(new, found, summary.user_seq)
    kept = [msgspec.structs.replace(old, superseded=new.seq) if later.replaces(old) else old for old in kept]
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


def _same(old: Decision, found: Found, bare: str, message: Message, mine: set[str]) -> bool:
    """Say whether a decision was made already; `mine`: its words, if it may be one that an assistant repeats."""
    if old.superseded:
        return False
    if abs(len(old.text) - len(found.text)) <= MARKS_MAX and _bare(old.text) == bare:
        return old.about == found.about or not found.about
    if len(mine) < SAME_LEAST or message.role == "user" or old.seq == message.seq:
        return False
    if wording.CHANGED_MIND.search(found.text):
        return False
    return len(mine & words(f"{old.text} {old.about}")) >= SAME * len(mine)


def _bare(text: str) -> str:
    return _NOT_A_WORD.sub("", text.lower())


def _said_again(old: Decision, found: Found, seq: int) -> Decision:
    return msgspec.structs.replace(old, again=seq, reason=old.reason or found.reason)


class _Later:
    """A new decision, and which older ones it takes the place of.

    Rather too few than too many: an old decision beside its successor is seen to be old by its place.
    """

    def __init__(self, new: Decision, found: Found, user_seq: int) -> None:
        self.new = new
        self.chosen, self.rejected = set(new.chosen), set(new.refused)
        self.changes = wording.CHANGED_MIND.search(new.text) is not None
        self.since = user_seq if wording.NO.search(new.text) else new.seq
        """Decisions of the other side after that are denied by a no, if they are on the same thing."""
        self.agrees = wording.YES.search(new.text) is not None
        self.wanted = self.chosen | words(" ".join(found.weighed))

    def replaces(self, old: Decision) -> bool:
        """Say whether an older one chose what this turns down, turned down what this wants, or chose otherwise."""
        user = self.new.by == "user"
        if old.superseded or old.seq == self.new.seq or not (user or old.by != "user"):
            return False
        before, refused = set(old.chosen), set(old.refused)
        turned_down = (self.rejected - self.chosen) & (before - refused)
        if len(turned_down) >= 2 or (turned_down and (self.changes or self._about(before - turned_down))):
            return True
        if user and old.by == "assistant" and old.seq > self.since and self._about(before):
            return True
        if not user or not (self.changes or self.agrees):
            return False
        return len(self.wanted & (refused - before)) >= 2 or self._other_option(old, before)

    def _about(self, topic: set[str]) -> bool:
        return bool((self.chosen | self.rejected) & topic)

    def _other_option(self, old: Decision, before: set[str]) -> bool:
        """Say whether this chooses another of the ways that the older one chose among."""
        listed = [words(option) for option in old.options]
        return any(option & self.chosen - before and not option & before - self.chosen for option in listed)


def _sides(text: str) -> tuple[set[str], set[str]]:
    """Return what a decision is for, and what it turns down."""
    parts = [part for found in wording.REJECTED.finditer(text) for part in found.groups() if part]
    return words(wording.REJECTED.sub(" ", text)), words(" ".join(parts))


def _bounded(summary: Summary) -> Summary:
    """Move what is too old into a shorter form, one decision at a time."""
    if len(summary.decisions) <= FULL_MAX:
        return summary
    first, *decisions = summary.decisions
    text = first.text if not first.about else f"{first.text} ({first.about})"
    short = OldDecision(cut(text, SHORT_TEXT_MAX), first.seq, first.superseded)
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
