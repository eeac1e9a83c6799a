"""What a reader makes of a tool's output, and the bounds that keep it an event and not a log file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

FINDINGS_MAX = 200  # nobody, and no model, works through more at once; the count is always true
NAMES_MAX = 500
TEXT_MAX = 500  # characters of a message or a name
_ARRAYS_TRIED_MAX = 20  # lines that begin like JSON, before the text is taken to hold none


class Report(NamedTuple):
    """One tool's failure: the event type for it, and what goes into its data."""

    type: str
    tool: str
    details: Mapping[str, Any]


class Finding(NamedTuple):
    """One place that a linter complains about; `line` and `column` count from 1."""

    path: str
    line: int
    column: int
    code: str
    message: str
    severity: str = "error"


def lint_report(tool: str, findings: Iterable[Finding]) -> Report | None:
    """Return the report of a linter, or None when it found nothing."""
    found = list(findings)
    if not found:
        return None
    kept = [f._replace(path=f.path[:TEXT_MAX], message=f.message[:TEXT_MAX]) for f in found[:FINDINGS_MAX]]
    details = {"findings": [finding._asdict() for finding in kept], "findings_total": len(found)}
    return Report("lint.error", tool, details)


def json_arrays(text: str) -> Iterator[list[Any]]:
    """Yield the JSON arrays that begin a line: `npm run` and others print their own lines around them."""
    decoder, start, tried = json.JSONDecoder(), 0, 0
    while tried < _ARRAYS_TRIED_MAX and start < len(text):
        if text[start] == "[":
            tried += 1
            try:
                value, _ = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, list):
                yield value
        line_end = text.find("\n", start)
        start = line_end + 1 if line_end >= 0 else len(text)
