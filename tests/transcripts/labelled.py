"""The transcripts of this folder and their labels, and how the summary's decisions compare with them."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from herdr.context.sessions.message import Message, read_message
from herdr.context.sessions.prose import words
from herdr.context.sessions.state import Decision, Summary
from herdr.context.sessions.summary import summarise

FOLDER = Path(__file__).parent
TUNED = ("en-invoices", "en-upload-queue", "zh-export", "mixed-migration")
"""The rules were drawn up on these."""
FIRST_RUN = {
    "en-log-filter": (11, 15, 11, 14),
    "en-config-review": (8, 9, 9, 14),
    "zh-cache": (10, 13, 9, 11),
    "en-reminders": (8, 14, 9, 10),
    "zh-upload-check": (9, 12, 8, 12),
    "en-thumbnails": (4, 10, 4, 8),
    "zh-audit-log": (8, 12, 6, 8),
}
"""Held out: what the rules found when they first saw them (kept, of labelled; right, of found), before they were
mended."""
SHORT = ("en-short",)
ALL = (*TUNED, *FIRST_RUN, *SHORT)
LONG = (*TUNED, *FIRST_RUN)
KNOWN_MISSES = {("en-thumbnails", "m024")}
"""Labelled decisions that the rules do not see: a conclusion that names neither a choice nor a reason."""


class Label(msgspec.Struct, frozen=True):
    """One decision as a reader marked it."""

    message: str
    by: str
    quote: str
    keep: tuple[str, ...]
    """What must be left of it in the window."""
    passing: bool = False
    """One may see it as a decision or not: it counts neither way."""
    context: bool = False
    """What must be kept stands in the proposal that it answers."""


class Labels(msgspec.Struct, frozen=True):
    """What a reader marked in one transcript. Questions and errors: what is open at its end."""

    about: str
    messages: int
    decisions: tuple[Label, ...]
    open_questions: tuple[dict[str, str], ...]
    open_errors: tuple[dict[str, Any], ...]
    superseded: tuple[dict[str, str], ...]


class Judged(msgspec.Struct):
    """A summary beside the labels."""

    summary: Summary
    kept: list[tuple[Label, Decision]] = []
    missed: list[Label] = []
    right: list[Decision] = []
    """Decisions that are labelled."""
    wrong: list[Decision] = []
    """Decisions that are not, and not passing either."""

    @property
    def recall(self) -> float:
        wanted = len(self.kept) + len(self.missed)
        return len(self.kept) / wanted if wanted else 1.0

    @property
    def precision(self) -> float:
        seen = len(self.right) + len(self.wrong)
        return len(self.right) / seen if seen else 1.0


def kept_in(text: str, judged: Judged) -> list[Label]:
    """Return the labels of which a window's text still has all that must be left, in the line of the decision."""
    lines = text.casefold().splitlines()
    return [
        label
        for label, decision in judged.kept
        if any(
            line.startswith(f"- #{decision.seq} ") and all(word.casefold() in line for word in label.keep)
            for line in lines
        )
    ]


def messages(name: str) -> list[Message]:
    """Return a transcript's messages; the `seq` is the line's number, as the ids say it."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [_message(number, msgspec.json.decode(line)) for number, line in enumerate(lines, 1)]


def labels(name: str) -> Labels:
    return msgspec.json.decode((FOLDER / f"{name}.labels.json").read_bytes(), type=Labels)


def judged(name: str) -> Judged:
    """Summarise a transcript and compare."""
    return compared(summarise(messages(name)), labels(name).decisions)


def compared(summary: Summary, wanted: Iterable[Label]) -> Judged:
    out = Judged(summary)
    hit: set[int] = set()
    for label in wanted:
        fits = [place for place, decision in enumerate(summary.decisions) if is_of(decision, label)]
        hit.update(fits)
        if label.passing:
            continue
        whole = [
            place
            for place in fits
            if all(word.casefold() in _told(summary.decisions[place]) for word in label.keep)
        ]
        if whole:
            out.kept.append((label, summary.decisions[whole[0]]))
        else:
            out.missed.append(label)
        out.right.extend(
            summary.decisions[place] for place in fits if summary.decisions[place] not in out.right
        )
    out.wrong = [decision for place, decision in enumerate(summary.decisions) if place not in hit]
    return out


def is_of(decision: Decision, label: Label) -> bool:
    """Say whether a decision is the labelled one: the same message, and at least half of the quoted words."""
    seq = int(label.message.removeprefix("m"))
    if seq not in (decision.seq, decision.again):
        return False
    told, quote = _told(decision), label.quote.casefold().rstrip(".。 ")
    if quote in told or decision.text.casefold().rstrip(".。 ") in quote:
        return True
    said = words(quote)
    return bool(said) and 2 * len(said & words(told)) >= len(said)


def _told(decision: Decision) -> str:
    return f"{decision.text} {decision.reason} {decision.about}".casefold()


def _message(number: int, line: dict[str, Any]) -> Message:
    return read_message(
        line["data"],
        type=line["type"],
        seq=number,
        id=line["id"],
        source=line["source"],
        time_us=_microseconds(line["time"]),
    )


def _microseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1_000_000)
