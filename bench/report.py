"""Lines of the result, the Markdown table made of them, and the JSON beside it."""

import os
import platform
import sqlite3
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.disk import fsync_ms

COLUMNS = ("measure", "seen", "peer", "ratio", "target", "met")


class Line(msgspec.Struct):
    """One line of the table. The bounds are on the ratio to the peer, or without one on the median seen."""

    measure: str
    unit: str
    seen: list[float]
    peer: str = ""
    peer_seen: list[float] = []
    at_least: float | None = None
    at_most: float | None = None
    beside: dict[str, list[float]] = {}
    """Further figures of the same repeats, by name and unit."""
    notes: list[str] = []

    @property
    def ratio(self) -> float | None:
        """The median of the ratios within each repeat: the machine's moods hit both sides of one repeat."""
        if not self.peer_seen or not self.seen:
            return None
        return statistics.median(
            ours / theirs for ours, theirs in zip(self.seen, self.peer_seen, strict=True)
        )

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is none, or nothing was seen."""
        if not self.seen or self.at_least is self.at_most is None:
            return None
        value = statistics.median(self.seen) if self.ratio is None else self.ratio
        return (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )

    def target(self) -> str:
        """The target in words."""
        times = " x peer" if self.peer else f" {self.unit}"
        if self.at_least is not None:
            return f">= {self.at_least:,g}{times}"
        return f"<= {self.at_most:,g}{times}" if self.at_most is not None else "stated"


def table(lines: Sequence[Line], about: dict[str, Any]) -> str:
    """Return the lines as a Markdown table, with what the figures depend on and the notes below it."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_cells(line) for line in lines)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    notes = [f"- {line.measure}: {note}" for line in lines for note in line.notes]
    return "\n".join([text, "", _machine_note(about), "", *notes])


def _machine_note(about: dict[str, Any]) -> str:
    cpu, cores, before, after = (about[key] for key in ("cpu", "cores", "load_average", "load_average_after"))
    disk = about["fsync_ms"]
    return (
        f"Figures are medians (lowest to highest) of the repeats. Machine: {cores} cores, {cpu}; load average"
        f" {before:.1f} before the run and {after:.1f} after it; appending 4 KiB and fsync p50 {disk['p50']:.2f} ms,"
        f" p99 {disk['p99']:.2f} ms; Python {about['python']}, SQLite {about['sqlite']}, Linux {about['kernel']}."
    )


def as_json(lines: Sequence[Line], about: dict[str, Any]) -> bytes:
    """Return everything that was seen, for later comparison."""
    results = [
        {**msgspec.to_builtins(line), "ratio": line.ratio, "target": line.target(), "met": line.met}
        for line in lines
    ]
    return msgspec.json.format(msgspec.json.encode({"machine": about, "results": results}), indent=2)


def machine(folder: Path) -> dict[str, Any]:
    """Return what figures of this run depend on; `folder` is on the disk that is measured."""
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(":")[2].strip() for line in cpuinfo if "model name" in line), "unknown")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "fsync_ms": fsync_ms(folder),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "kernel": platform.release(),
    }


def _cells(line: Line) -> tuple[str, ...]:
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
    peer = f"{line.peer}: {_values(line.peer_seen, line.unit)}" if line.peer_seen else line.peer
    met = {True: "yes", False: "no", None: ""}[line.met]
    beside = [f"{name} {_values(values)}" for name, values in line.beside.items() if values]
    seen = "; ".join([_values(line.seen, line.unit) or "not measured", *beside])
    return line.measure, seen, peer, ratio, line.target(), met


def _values(values: Sequence[float], unit: str = "") -> str:
    if not values:
        return ""
    middle, low, high = statistics.median(values), min(values), max(values)
    if len(values) == 1:
        return f"{_number(middle)} {unit}".strip()
    spread = f"({_number(low)} to {_number(high)})"
    return " ".join(part for part in (_number(middle), unit, spread) if part)


def _number(value: float) -> str:
    """Return three digits that count, and whole numbers from a thousand on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
