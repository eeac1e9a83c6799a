"""What ESLint prints: its default format (stylish), and JSON."""

import re
from collections.abc import Iterator
from typing import Any

from herdr.cli.reports.report import Finding, Report, json_arrays, lint_report

_ESLINT = re.compile(r"^\S \d+ problems? \(\d+ errors?, \d+ warnings?\)$", re.MULTILINE)
_FILE = re.compile(r"\S.*")
# Columns are set apart by two spaces or more; a syntax error has no rule
_FINDING = re.compile(
    r" +(?P<line>\d+):(?P<column>\d+) +(?P<severity>error|warning) +(?P<message>\S.*?)(?: {2,}(?P<code>\S+))?$"
)


def read_eslint(text: str) -> Report | None:
    """Return what ESLint complains about, or None when this is not its output."""
    for array in json_arrays(text):
        if array and all(isinstance(item, dict) and "messages" in item for item in array):
            return lint_report("eslint", _from_json(array))
    if not _ESLINT.search(text):
        return None
    return lint_report("eslint", _from_stylish(text))


def _from_stylish(text: str) -> Iterator[Finding]:
    path = ""
    for line in text.splitlines():
        if found := _FINDING.match(line):
            yield Finding(
                path,
                int(found["line"]),
                int(found["column"]),
                found["code"] or "",
                found["message"],
                found["severity"],
            )
        elif _FILE.match(line):
            path = line


def _from_json(files: list[dict[str, Any]]) -> Iterator[Finding]:
    for file in files:
        for message in file["messages"]:
            yield Finding(
                str(file.get("filePath", "")),
                int(message.get("line") or 0),
                int(message.get("column") or 0),
                str(message.get("ruleId") or ""),
                str(message.get("message", "")),
                "error" if message.get("severity") == 2 else "warning",
            )
