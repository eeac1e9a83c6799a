"""Tokens that a window saves beside the whole session, and the labelled decisions that it keeps."""

from bench.context.sessions import ALL, Row, counters, measure
from bench.plan import Plan
from bench.report import Line

SAVED_AT_LEAST = 35.0  # percent, of the sessions that are longer than a window


def windows(_plan: Plan) -> list[Line]:
    """Measure every transcript of the repository under each counter that is installed."""
    return [
        line
        for name, count in counters().items()
        for line in _lines(name, [measure(t, name, count) for t in ALL])
    ]


def _lines(counter: str, rows: list[Row]) -> list[Line]:
    long = [row for row in rows if row.full_tokens > row.window_tokens]
    whole, window = sum(row.full_tokens for row in long), sum(row.window_tokens for row in long)
    turns, short = sum(row.full_over_turns for row in long), sum(row.window_over_turns for row in long)
    labelled, kept = sum(row.labelled for row in rows), sum(row.shown for row in rows)
    notes = [f"{len(long)} of {len(rows)} transcripts are longer than a window; the others are shown whole"]
    return [
        Line(
            f"windows of sessions: saved ({counter})",
            "%",
            [100.0 * (1 - window / whole)],
            at_least=SAVED_AT_LEAST,
            beside={"saved over all turns, %": [100.0 * (1 - short / turns)]},
            notes=notes,
        ),
        Line(
            f"windows of sessions: labelled decisions kept ({counter})",
            "%",
            [100.0 * kept / labelled],
            at_least=100.0,
            notes=[f"{kept} of {labelled}"],
        ),
    ]
