"""What pytest prints: the names in its short summary, and the counts in its last line."""

import re

from herdr.cli.reports.report import NAMES_MAX, TEXT_MAX, Report

_HEADER = re.compile(r"^=+ short test summary info =+$", re.MULTILINE)
# In the name, ` - ` ends it only outside the brackets of a parameter: `test_a[x - y] - AssertionError`
_NAME = re.compile(r"^(?:FAILED|ERROR) ([^\[\n]*?(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)
_LAST_LINE = re.compile(r"^(?:=+ )?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in \d[\d.]*s\b.*$", re.MULTILINE)
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_PLURALS = {"errors": "error", "warnings": "warning"}


def read_pytest(text: str) -> Report | None:
    """Return the tests that failed, or None when this is not pytest's output or none did."""
    last_lines = _LAST_LINE.findall(text)
    if not last_lines:
        return None
    summary = {_PLURALS.get(name, name): int(count) for count, name in _COUNT.findall(last_lines[-1])}
    if not summary.get("failed") and not summary.get("error"):
        return None
    # Before the header, a test itself may print lines that look like these
    headers = list(_HEADER.finditer(text))
    names = _NAME.findall(text, headers[-1].end()) if headers else []
    kept = [name[:TEXT_MAX] for name in dict.fromkeys(names)][:NAMES_MAX]
    return Report("test.failed", "pytest", {"failed": kept, "summary": summary})
