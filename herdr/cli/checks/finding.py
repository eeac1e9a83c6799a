"""What a check has found."""

from typing import Literal, NamedTuple

State = Literal["ok", "warn", "fail", "skip"]
"""`skip`: it could not be looked at, and the detail says why."""


class Finding(NamedTuple):
    """One line of the report."""

    check: str
    state: State
    detail: str
    fix: str = ""
    """What to do about it; empty where nothing is to be done."""


def ok(check: str, detail: str) -> Finding:
    """Return a finding with which all is well."""
    return Finding(check, "ok", detail)


def skip(check: str, why: str) -> Finding:
    """Return a finding about what could not be looked at."""
    return Finding(check, "skip", f"not checked: {why}")


def warn(check: str, detail: str, fix: str) -> Finding:
    """Return a finding that may become a trouble."""
    return Finding(check, "warn", detail, fix)


def fail(check: str, detail: str, fix: str) -> Finding:
    """Return a finding that is one."""
    return Finding(check, "fail", detail, fix)
