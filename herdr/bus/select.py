"""Pure: which events a follower wants. Equal selections are equal values, so followers can share pages."""

from collections.abc import Callable, Mapping
from operator import attrgetter

import msgspec

from herdr.errors import InvalidInput
from herdr.event import LANE_NAMES, Event
from herdr.glob import compile_glob, is_glob

TEXT_MAX = 4096  # characters of all patterns together: an uncached value costs at most 20 ms
PATTERNS_MAX = 64  # per field; a follower that wants more kinds than this wants them all
VALUES_CACHED_MAX = 4096  # verdicts remembered per field, so that ten thousand paths do not stay for ever


class Selection(msgspec.Struct, frozen=True):
    """The filters of `GET /v1/events` and `follow` frames: any pattern of a field fits, all fields must."""

    type: tuple[str, ...] = ()
    class_: tuple[str, ...] = msgspec.field(default=(), name="class")
    priority: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()
    session: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    target: str | None = None
    """Follow as this named target: only what the routing table sends, or addresses, to it."""
    attrs: tuple[tuple[str, str], ...] = ()
    """This subscriber's attributes, sorted by name."""


_GETTERS: Mapping[str, Callable[[Event], str | None]] = {
    "type": attrgetter("type"),
    "class_": attrgetter("class_"),
    "priority": lambda event: LANE_NAMES[event.lane],
    "source": attrgetter("source"),
    "workspace": attrgetter("workspace"),
    "session": attrgetter("session"),
    "subject": attrgetter("subject"),
}


def compile_selection(selection: Selection) -> Callable[[Event], bool]:
    """Return the predicate for everything but the target; raises InvalidInput for a bad glob."""
    size = sum(len(pattern) for name in _GETTERS for pattern in getattr(selection, name))
    if size > TEXT_MAX:
        raise InvalidInput(
            f"the filters have {size} characters, the most is {TEXT_MAX}; use a glob", "bad_filter"
        )
    tests = [
        (getter, _compile_field(name, patterns))
        for name, getter in _GETTERS.items()
        if (patterns := getattr(selection, name))
    ]
    if not tests:
        return lambda event: True
    if len(tests) == 1:
        getter, test = tests[0]
        return lambda event: test(getter(event))
    return lambda event: all(test(getter(event)) for getter, test in tests)


def _compile_field(name: str, patterns: tuple[str, ...]) -> Callable[[str | None], bool]:
    if len(patterns) > PATTERNS_MAX:
        raise InvalidInput(
            f"{name.rstrip('_')} has {len(patterns)} patterns, the most is {PATTERNS_MAX}; use a glob",
            "bad_filter",
        )
    if not all(patterns):
        raise InvalidInput(f"{name.rstrip('_')} is empty; leave the filter out, or use *", "bad_filter")
    exact = frozenset(p for p in patterns if not is_glob(p))
    globs = [compile_glob(p) for p in patterns if is_glob(p)]
    if not globs:
        return exact.__contains__
    verdicts: dict[str, bool] = {}

    def test(value: str | None) -> bool:
        if value is None:
            return False
        verdict = verdicts.get(value)
        if verdict is None:
            if len(verdicts) >= VALUES_CACHED_MAX:
                verdicts.clear()
            verdict = verdicts[value] = value in exact or any(glob(value) for glob in globs)
        return verdict

    return test
