"""Readers of what test runners and linters print: pure functions from text to reports."""

from herdr.cli.reports.eslint_output import read_eslint
from herdr.cli.reports.pytest_output import read_pytest
from herdr.cli.reports.report import Report
from herdr.cli.reports.ruff_output import read_ruff

__all__ = ["Report", "read_reports"]

_READERS = (read_pytest, read_ruff, read_eslint)


def read_reports(text: str) -> list[Report]:
    """Return what failed, one report for each tool that is recognised; several may run in one `make check`."""
    return [report for reader in _READERS if (report := reader(text)) is not None]
