"""`python -m bench.context.sessions`: tokens of whole sessions beside their windows, on the transcripts in tests/.

Prints the table and then the JSON. The whole of a session is the text of its messages; what assistants hand to their
tools (files that they write) would come on top and is left out, so that the saving is rather understated.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from herdr.context.sessions.message import Message
from herdr.context.sessions.state import Summary
from herdr.context.sessions.summary import fold
from herdr.context.sessions.window import compose

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from transcripts.labelled import ALL, FIRST_RUN, SHORT, compared, kept_in, labels, messages

BUDGET = 2048
NEWEST = 64
"""Messages that are offered to the window; more do not fit."""
COLUMNS = (
    "transcript",
    "messages",
    "tokens",
    "window",
    "saved",
    "over all turns",
    "decisions",
    "in the window",
    "precision",
)
Counter = Callable[[str], int]


class Row(msgspec.Struct):
    """One transcript under one counter."""

    transcript: str
    counter: str
    messages: int
    held_out: bool
    full_tokens: int
    """Of the whole session at its end."""
    window_tokens: int
    turns: int
    """Messages of the user: at each of them a client would send the history so far."""
    full_over_turns: int
    window_over_turns: int
    labelled: int
    kept: int
    """Labelled decisions that the summary has."""
    shown: int
    """Those of them that the window of the whole session shows."""
    found: int
    right: int

    @property
    def saved(self) -> float:
        return 1 - self.window_tokens / self.full_tokens

    @property
    def saved_over_turns(self) -> float:
        return 1 - self.window_over_turns / self.full_over_turns


def by_bytes(text: str) -> int:
    """Count as the gateway does without a tokenizer: a safe upper bound."""
    return -(-len(text.encode()) * 10 // 27)


def counters() -> dict[str, Counter]:
    """Return what can count here."""
    try:
        from bpe_openai import get_encoding
    except ImportError:
        return {"bytes/2.7": by_bytes}
    encode = get_encoding("o200k_base").encode
    return {"bytes/2.7": by_bytes, "o200k_base": lambda text: len(encode(text))}


def measure(name: str, counter: str, count: Counter) -> Row:
    """Go through a session as its client would, and judge the summary at its end."""
    said = messages(name)
    summary, full, turns, full_over_turns, window_over_turns = Summary(), 0, 0, 0, 0
    for place, message in enumerate(said, 1):
        summary = fold(summary, message)
        full += count(message.text)
        if message.role == "user":
            turns += 1
            full_over_turns += full
            window_over_turns += min(full, _window_tokens(summary, said[:place], count))
    window = compose(summary, said[-NEWEST:], BUDGET, count)
    seen = compared(summary, labels(name).decisions)
    return Row(
        transcript=name,
        counter=counter,
        messages=len(said),
        held_out=name in FIRST_RUN,
        full_tokens=full,
        window_tokens=min(full, count(window.text)),
        turns=turns,
        full_over_turns=full_over_turns,
        window_over_turns=window_over_turns,
        labelled=len(seen.kept) + len(seen.missed),
        kept=len(seen.kept),
        shown=len(kept_in(window.text, seen)) if "## " in window.text else len(seen.kept),
        found=len(seen.right) + len(seen.wrong),
        right=len(seen.right),
    )


def _window_tokens(summary: Summary, said: list[Message], count: Counter) -> int:
    return count(compose(summary, said[-NEWEST:], BUDGET, count).text)


def table(rows: list[Row]) -> str:
    """Return the rows of one counter as Markdown."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(_cells(row) for row in rows)]
    lines.append(_total([row for row in rows if row.transcript not in SHORT]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.transcript + (" *" if row.held_out else ""),
        str(row.messages),
        f"{row.full_tokens:,}",
        f"{row.window_tokens:,}",
        f"{row.saved:.0%}" if row.saved > 0 else "nothing: it fits",
        f"{row.saved_over_turns:.0%} of {row.full_over_turns:,} in {row.turns}",
        f"{row.kept}/{row.labelled}",
        f"{row.shown}/{row.labelled}",
        f"{row.right}/{row.found}",
    )


def _total(rows: list[Row]) -> tuple[str, ...]:
    full, window = sum(row.full_tokens for row in rows), sum(row.window_tokens for row in rows)
    over, windows = sum(row.full_over_turns for row in rows), sum(row.window_over_turns for row in rows)
    labelled = sum(row.labelled for row in rows)
    return (
        "all but the short one",
        str(sum(row.messages for row in rows)),
        f"{full:,}",
        f"{window:,}",
        f"{1 - window / full:.0%}",
        f"{1 - windows / over:.0%} of {over:,}",
        f"{sum(row.kept for row in rows)}/{labelled}",
        f"{sum(row.shown for row in rows)}/{labelled}",
        f"{sum(row.right for row in rows)}/{sum(row.found for row in rows)}",
    )


def main() -> None:
    rows = [measure(name, counter, count) for counter, count in counters().items() for name in ALL]
    for counter in counters():
        print(f"Counted by {counter}; windows of {BUDGET:,} tokens\n")
        print(table([row for row in rows if row.counter == counter]), "\n")
    kept, labelled, right, found = (sum(figures) for figures in zip(*FIRST_RUN.values(), strict=True))
    print(
        f"* Held out: when the rules first saw these, they kept {kept} of {labelled} decisions; {right} of {found}",
        end="",
    )
    print(" that they found were labelled. The rules were mended after that.\n")
    print(msgspec.json.format(msgspec.json.encode(rows)).decode())


if __name__ == "__main__":
    main()
