"""What is wrong with a configuration, and how it is told."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from herdr.errors import StartupError

_LIKENESS_MIN = 0.6  # what difflib's get_close_matches takes as close
_TIE = 0.02  # two names this near to each other in likeness are both named
_CREDENTIALS = re.compile(r"[^\s/]*:\S*@|\?\S*")  # of an address: what is told ends up in logs
_GOT_LENGTH_MAX = 60  # characters of a wrong value that are shown


class Problem(NamedTuple):
    """One wrong thing: where it stands, its path in the document, and what is wrong."""

    origin: str
    """`herdr.yaml:3:5` (line and column from 1), the name of a variable, or `command line`."""
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.origin, self.path, self.message) if part)


class ConfigError(StartupError):
    """The configuration cannot be used. The message lists every problem, one a line."""

    code = "config"

    def __init__(self, problems: Sequence[Problem]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"the configuration cannot be used, {count}:\n{lines}")
        self.problems = tuple(problems)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name that is most like the given one, several only when they tie, or none."""
    folded = _fold(name)
    scored = [(SequenceMatcher(None, folded, _fold(other)).ratio(), other) for other in known]
    best = max((score for score, _ in scored), default=0)
    if best < _LIKENESS_MIN:
        return []
    return [other for score, other in scored if score >= best - _TIE]


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean x?`, or nothing when no known name is near."""
    close = nearest(name, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def got(value: object) -> str:
    """Describe a value that a person wrote, in the words of the configuration file."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            value = _CREDENTIALS.sub("…", value)
            shown = value if len(value) <= _GOT_LENGTH_MAX else value[:_GOT_LENGTH_MAX] + "…"
            return f"the text {shown!r}"
        case dict():
            return "a mapping"
        case _:
            return "a list"
