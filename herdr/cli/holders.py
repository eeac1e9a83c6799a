"""Who holds what, in words."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from herdr.cli.terminal import plain, span

SHOWN_MAX = 20  # lines about conflicts; the rest is counted


def conflict_lines(conflicts: Iterable[Mapping[str, Any]], now_us: int) -> Iterator[str]:
    """Yield one line for each conflict of a refusal: the path that was asked for, and what is in its way."""
    conflicts = list(conflicts)
    for conflict in conflicts[:SHOWN_MAX]:
        yield plain(f"  {conflict.get('asked') or conflict.get('path')}: {_in_the_way(conflict, now_us)}")
    if len(conflicts) > SHOWN_MAX:
        yield f"  … and {len(conflicts) - SHOWN_MAX} more"


def _in_the_way(conflict: Mapping[str, Any], now_us: int) -> str:
    owner, path = conflict.get("owner"), conflict.get("path")
    what = "it" if path == conflict.get("asked") else path
    why = f": {conflict['purpose']}" if conflict.get("purpose") else ""
    if conflict.get("state") == "expired":
        return f"{owner} held {what} until just now; it is free in a few seconds{why}"
    if conflict.get("state") == "waiting":
        return f"{owner} asked for {what} earlier and waits{why}"
    return f"{owner} holds {what} until {until(conflict.get('expires'), now_us)}, or longer{why}"


def owners_of(conflicts: Iterable[Mapping[str, Any]]) -> str:
    """Return the owners of conflicts, each once."""
    return plain(", ".join(dict.fromkeys(str(conflict.get("owner")) for conflict in conflicts)))


def until(time: object, now_us: int) -> str:
    """Return a moment to come as local time and as how far it is off: `14:03:12 (in 42 s)`."""
    moment = moment_of(time)
    if moment is None:
        return "an unknown time"
    return f"{moment.astimezone():%H:%M:%S} ({from_now(moment, now_us)})"


def from_now(moment: datetime | None, now_us: int) -> str:
    """Return how far off a moment is: `in 42 s`, `3 min ago`."""
    if moment is None:
        return "-"
    seconds = moment.timestamp() - now_us / 1_000_000
    return f"in {span(seconds)}" if seconds >= 0 else f"{span(-seconds)} ago"


def moment_of(time: object) -> datetime | None:
    """Return an RFC 3339 time, or None for what is none."""
    try:
        moment = datetime.fromisoformat(str(time))
    except ValueError:
        return None
    return moment if moment.tzinfo else None
