"""What ruff prints: its full and concise formats, and JSON."""

import re
from collections.abc import Iterator
from typing import Any

from herdr.cli.reports.report import Finding, Report, json_arrays, lint_report

# Other tools write lines of the same form, so ruff's own last line has to be there too
_RUFF = re.compile(r"^(?:Found \d+ errors?(?: \(.*\))?\.|\d+ files? would be reformatted.*)$", re.MULTILINE)
_CODE = r"(?P<code>[A-Z]+[0-9]+|invalid-syntax|io-error|unformatted):? (?:\[[*-]\] )?(?P<message>.*)"
_PLACE = r"(?P<path>\S.*?):(?P<line>\d+):(?P<column>\d+)"
_FULL = re.compile(rf"^{_CODE}\n +--> {_PLACE}$", re.MULTILINE)
_CONCISE = re.compile(rf"^{_PLACE}: {_CODE}$", re.MULTILINE)


def read_ruff(text: str) -> Report | None:
    """Return what ruff complains about, or None when this is not its output."""
    for array in json_arrays(text):
        if array and all(isinstance(item, dict) and "location" in item for item in array):
            return lint_report("ruff", map(_from_json, array))
    if not _RUFF.search(text):
        return None
    return lint_report("ruff", _from_text(text))


def _from_text(text: str) -> Iterator[Finding]:
    for pattern in (_FULL, _CONCISE):
        for found in pattern.finditer(text):
            yield Finding(
                found["path"], int(found["line"]), int(found["column"]), found["code"], found["message"]
            )


def _from_json(item: dict[str, Any]) -> Finding:
    place = item.get("location") or {}
    return Finding(
        str(item.get("filename", "")),
        int(place.get("row", 0)),
        int(place.get("column", 0)),
        str(item.get("code") or "invalid-syntax"),
        str(item.get("message", "")),
    )
