"""What the commands print: text for people that cannot drive their terminal, and JSON for programs."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_RESET = "\x1b[0m"
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def plain(text: str) -> str:
    """Return the text with everything that is not a printable character as a JSON escape.

    Payloads come from anywhere: escape sequences would recolour or retitle a terminal, and a
    right-to-left override would show another command than the one that was run.
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else json.dumps(c)[1:-1].replace("\x7f", "\\u007f") for c in text])


def print_line(text: str, colour: str = "") -> None:
    """Print one line of data for people, whatever its characters and the terminal's encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    line = plain(text).encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(f"{colour}{line}{_RESET}\n" if colour else f"{line}\n")


def counted(number: int, name: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def span(seconds: float) -> str:
    """Return a duration in its two largest units: `2 h 5 min`."""
    left, parts = int(seconds), []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "less than a second"


def print_json(value: Any) -> None:
    """Print one value as one line of JSON."""
    print_raw_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def print_raw_json(text: str) -> None:
    """Print a line of JSON as it came: in UTF-8 to programs, escaped to a terminal."""
    if sys.stdout.isatty():
        print_line(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass") + b"\n")


def note(text: str) -> None:
    """Say something to the person at the terminal, on stderr."""
    print(f"herdr: {plain(text)}", file=sys.stderr)


def has_colour(stream: TextIO) -> bool:
    """Tell whether to colour what goes to a stream (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a header, each column as wide as its widest cell."""
    for line in table_lines(header, rows):
        print_line(line)


def table_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, each column as wide as its widest cell."""
    cells = [list(header), *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return ["  ".join(c.ljust(width) for c, width in zip(row, widths, strict=True)).rstrip() for row in cells]
