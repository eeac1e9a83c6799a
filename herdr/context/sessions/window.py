"""Pure: the view of a session that fits a budget of tokens: its summary, and the newest messages.

Counting may be somebody else's work and take its time, so a window is made in two steps: `pieces` and `texts` say
what is to be counted, `choose` takes the counts and makes the window. The same input gives the same bytes, and what
changes from turn to turn stands at the end, so that a model's cache of the prompt keeps the rest.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from herdr.context.sessions.message import Message, Role
from herdr.context.sessions.pieces import (
    HEADINGS,
    Kind,
    Piece,
    decisions_of,
    files_of,
    last_of_user,
    pieces,
    spoken,
    texts,
)
from herdr.context.sessions.state import Decision, Error, File, OldDecision, Outcome, Question, Summary

BUDGET_MIN = 64
NEWEST_SHARE = 3  # the newest messages get at least one part in so many
URGENT_SHARE = 6  # errors and questions get one part in so many before decisions take theirs
SIDE_SHARE = 12  # files, and outcomes, get one part in so many each before decisions stand in full
URGENT: tuple[Kind, ...] = ("error", "question")
SIDES: tuple[Kind, ...] = ("file", "outcome")
TRIES_MAX = 8  # windows that are made until the whole, counted at once, is within the budget


class ShownMessage(msgspec.Struct, frozen=True, gc=False):
    """One of the newest messages, as far as it is shown."""

    seq: int
    role: Role
    source: str
    time_us: int
    text: str
    whole: bool


class More(msgspec.Struct, frozen=True, gc=False):
    """How many of each are known of and do not stand in the window."""

    decisions: int = 0
    files: int = 0
    questions: int = 0
    outcomes: int = 0
    errors: int = 0
    messages: int = 0


class Window(msgspec.Struct, frozen=True):
    """A window. `text` holds the same as the other fields, in Markdown.

    A session that fits is shown whole: `text` is then all that was said, and the summary stands in the fields alone.
    """

    text: str
    decisions: tuple[Decision | OldDecision, ...] = ()
    files: tuple[File, ...] = ()
    questions: tuple[Question, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    errors: tuple[Error, ...] = ()
    newest: tuple[ShownMessage, ...] = ()
    more: More = More()


def compose(summary: Summary, newest: Sequence[Message], budget: int, count: Callable[[str], int]) -> Window:
    """Return a window of at most `budget` tokens (at least BUDGET_MIN) where `count` counts at once."""
    found = pieces(summary, newest, budget)
    counts = [count(text) for text in texts(found)]
    left = budget = max(budget, BUDGET_MIN)
    for _ in range(TRIES_MAX):
        window = choose(summary, newest, found, counts, left)
        over = count(window.text) - budget
        if over <= 0:
            return window
        left -= over
    return choose(summary, newest, found, counts, 0)


def choose(
    summary: Summary, newest: Sequence[Message], found: Sequence[Piece], counts: Sequence[int], budget: int
) -> Window:
    """Make the window of the pieces `found`, each form of which takes the tokens in `counts`, in `texts`' order.

    Decisions come first, in full or in short; the user's last message is always there; the newest messages get at
    least a third. A tokenizer may count the whole higher than its lines together: who must not pass the budget
    counts `text` and, if it is too much, calls again with that much less.
    """
    if found and found[0].kind == "history" and counts[0] <= budget:
        return _whole(summary, newest, found[0].forms[0])
    chosen = _Chooser(found, counts, budget)
    chosen.take_last_of_user(newest)
    reserved = budget // NEWEST_SHARE if newest else 0
    chosen.limit = budget - max(0, reserved - chosen.spent("message"))
    before = chosen.limit
    chosen.limit = min(before, chosen.used + budget // URGENT_SHARE)
    for kind in URGENT:
        chosen.take_newest(kind)
    chosen.limit = before
    chosen.take_decisions(decisions_of(summary))
    for kind in SIDES:
        chosen.limit = min(before, chosen.used + budget // SIDE_SHARE)
        chosen.take_newest(kind)
    chosen.limit = before
    chosen.lengthen_decisions()
    for kind in (*URGENT, *SIDES):
        chosen.take_newest(kind)
    chosen.limit = budget
    chosen.take_messages()
    return _window(summary, newest, chosen)


class _Chooser:
    """Which pieces have been taken, in which form, and how much of the budget is used."""

    def __init__(self, found: Sequence[Piece], counts: Sequence[int], limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.taken: dict[Kind, dict[int, int]] = {kind: {} for kind in HEADINGS}
        """Of each kind: place -> number of the form."""
        self.of: dict[Kind, list[Piece]] = {kind: [] for kind in (*HEADINGS, "frame", "history")}
        self.cost: dict[tuple[Kind, int], tuple[int, ...]] = {}
        at = 0
        for piece in found:
            self.of[piece.kind].append(piece)
            self.cost[piece.kind, piece.place] = tuple(counts[at : at + len(piece.forms)])
            at += len(piece.forms)
        frames = [self.cost["frame", place][0] for place in range(len(self.of["frame"]))]
        self._heading = dict(zip(HEADINGS, frames, strict=False))
        self._more, self._gap = frames[-2:] if frames else (0, 0)

    def spent(self, kind: Kind) -> int:
        """Return the tokens that a kind's pieces take, with its heading and the line for the rest."""
        if not self.taken[kind]:
            return 0
        return self._around(kind) + sum(
            self.cost[kind, place][form] for place, form in self.taken[kind].items()
        )

    def _around(self, kind: Kind) -> int:
        return self._heading[kind] + (self._gap if kind == "message" else self._more)

    def take(self, kind: Kind, place: int, *, forms: Iterable[int] | None = None) -> bool:
        """Take a piece in the longest form that fits, instead of the form that it was taken in; False: none does."""
        costs = self.cost[kind, place]
        before = self.taken[kind].get(place)
        opening = 0 if self.taken[kind] else self._around(kind)
        back = 0 if before is None else costs[before]
        for form in range(len(costs)) if forms is None else forms:
            if self.used - back + opening + costs[form] <= self.limit:
                self.taken[kind][place] = form
                self.used += opening + costs[form] - back
                return True
        return False

    def take_newest(self, kind: Kind) -> None:
        """Take pieces of a kind from the newest until one does not fit."""
        for piece in reversed(self.of[kind]):
            if piece.place not in self.taken[kind] and not self.take(kind, piece.place):
                return

    def take_decisions(self, decisions: Sequence[Decision | OldDecision]) -> None:
        """Take decisions in short from the newest until one does not fit, those that were replaced last."""
        for piece in sorted(self.of["decision"], key=lambda p: (decisions[p.place].superseded > 0, -p.place)):
            if not self.take("decision", piece.place, forms=[len(piece.forms) - 1]):
                return

    def lengthen_decisions(self) -> None:
        """Put as many of the decisions that were taken in full as fit, from the newest."""
        for piece in reversed(self.of["decision"]):
            if piece.place in self.taken["decision"]:
                self.take("decision", piece.place)

    def take_last_of_user(self, newest: Sequence[Message]) -> None:
        """Take the user's last message in the longest form within half of the messages' share, or in the shortest."""
        place = last_of_user(newest)
        if place is None:
            return
        limit = self.limit
        self.limit = limit // NEWEST_SHARE // 2
        if not self.take("message", place):
            self.limit = limit
            self.take("message", place, forms=range(len(self.cost["message", place]) - 1, -1, -1))
        self.limit = limit

    def take_messages(self) -> None:
        """Take messages from the newest on; none takes more than half of what is left, as long as it can be cut."""
        for piece in reversed(self.of["message"]):
            limit = self.limit
            self.limit = self.used + (limit - self.used) // 2
            fits = self.take("message", piece.place)
            self.limit = limit
            if not fits and not self.take("message", piece.place):
                return


def _window(summary: Summary, newest: Sequence[Message], chosen: _Chooser) -> Window:
    taken = {kind: sorted(places) for kind, places in chosen.taken.items()}
    decisions, files = decisions_of(summary), files_of(summary)
    missing: dict[Kind, int] = {
        "decision": summary.decided - len(taken["decision"]),
        "file": len(files) - len(taken["file"]) + summary.more.files,
        "question": len(summary.questions) - len(taken["question"]) + summary.more.questions,
        "outcome": len(summary.outcomes) - len(taken["outcome"]) + summary.more.outcomes,
        "error": len(summary.errors) - len(taken["error"]) + summary.more.errors,
        "message": max(summary.messages, len(newest)) - len(taken["message"]),
    }
    return Window(
        text=_rendered(chosen, taken, missing),
        decisions=tuple(decisions[place] for place in taken["decision"]),
        files=tuple(files[place] for place in taken["file"]),
        questions=tuple(summary.questions[place] for place in taken["question"]),
        outcomes=tuple(summary.outcomes[place] for place in taken["outcome"]),
        errors=tuple(summary.errors[place] for place in taken["error"]),
        newest=tuple(_shown(newest[place], _form(chosen, "message", place)) for place in taken["message"]),
        more=More(**{f"{kind}s": count for kind, count in missing.items()}),
    )


def _whole(summary: Summary, newest: Sequence[Message], text: str) -> Window:
    shown = (ShownMessage(m.seq, m.role, m.source, m.time_us, spoken(m), whole=True) for m in newest)
    return Window(
        f"{text}\n" if text else "",
        decisions_of(summary),
        files_of(summary),
        summary.questions,
        summary.outcomes,
        summary.errors,
        tuple(shown),
        More(
            summary.noted_count,
            summary.more.files,
            summary.more.questions,
            summary.more.outcomes,
            summary.more.errors,
        ),
    )


def _rendered(chosen: _Chooser, taken: dict[Kind, list[int]], missing: dict[Kind, int]) -> str:
    lines: list[str] = []
    for kind, heading in HEADINGS.items():
        if not taken[kind]:
            continue
        lines.append(heading)
        if missing[kind] and kind == "message":
            lines.append(f"[{missing[kind]} messages left out]")
        lines.extend(_form(chosen, kind, place) for place in taken[kind])
        if missing[kind] and kind != "message":
            lines.append(f"- {missing[kind]} more")
    return "".join(f"{line}\n" for line in lines)


def _form(chosen: _Chooser, kind: Kind, place: int) -> str:
    return chosen.of[kind][place].forms[chosen.taken[kind][place]]


def _shown(message: Message, form: str) -> ShownMessage:
    text = form.partition(": ")[2].replace("\n  ", "\n")
    whole = text == spoken(message)
    return ShownMessage(message.seq, message.role, message.source, message.time_us, text, whole)
