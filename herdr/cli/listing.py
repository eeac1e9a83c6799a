"""Texts and tables as the commands about a project's context print them."""

import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from herdr.cli.terminal import plain, print_line, table_lines

COLUMNS_DEFAULT = 80
_WIDE = "WF"
_UNITS = ("bytes", "KiB", "MiB", "GiB")
_TAB = 4


def print_text(text: str) -> None:
    """Print a text of several lines, its tabs as spaces, without what would drive a terminal."""
    for line in text.removesuffix("\n").split("\n"):
        print_line(line.expandtabs(_TAB))


def print_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; at a terminal its lines are cut to the width of it."""
    columns = width_of(sys.stdout) if sys.stdout.isatty() else None
    for line in table_lines(header, rows):
        print_line(line if columns is None else cut(line, columns))


def width_of(stream: TextIO) -> int:
    """Return the columns of the terminal that a stream goes to: those of COLUMNS first, 80 where nothing says."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS_DEFAULT
    except OSError:
        return COLUMNS_DEFAULT


def cut(line: str, columns: int) -> str:
    """Return what fits of a line, with `…` for the rest; a Chinese character takes two columns."""
    if len(line) * 2 <= columns:
        return line
    widths = [1 + (unicodedata.east_asian_width(c) in _WIDE) for c in line]
    if sum(widths) <= columns:
        return line
    left, kept = columns - 1, 0
    while widths[kept] <= left:
        left -= widths[kept]
        kept += 1
    return line[:kept] + "…"


def cell(value: object) -> str:
    """Return a value as a cell of a table: `-` for none."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "-"
    return "-" if value in (None, "") else str(value)


def cells(row: Mapping[str, Any], *names: str) -> list[str]:
    """Return fields of an object as cells."""
    return [cell(row.get(name)) for name in names]


def size(count: object) -> str:
    """Return a number of bytes in words: `1.4 MiB`."""
    if not isinstance(count, int | float):
        return "-"
    unit, number = 0, float(count)
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else many(count, "byte")


def moment(time: object) -> str:
    """Return an RFC 3339 time as day and time where the reader is; `-` for none."""
    try:
        return datetime.fromisoformat(str(time)).astimezone().strftime("%m-%d %H:%M:%S")
    except ValueError:
        return "-"


def number(value: object) -> str:
    """Return a count with separators: `2,818`."""
    return f"{value:,.0f}" if isinstance(value, int | float) else "-"


def many(value: object, noun: str) -> str:
    """Return a count with its noun: `1 file`, `2,818 files`."""
    return f"{number(value)} {noun}" if value == 1 else f"{number(value)} {noun}s"


def one_line(text: str) -> str:
    """Return a text as one line."""
    return plain(" ".join(text.split()))
