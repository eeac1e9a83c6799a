"""Pure: what kind of event this is, from its type alone: class, the lane without any rule, and tags."""

from herdr.event import Lane

RESERVED = ("herdr.", "lock.", "conflict.", "handoff.", "session.", "model.", "context.")
"""Types that only the gateway itself publishes: a tool that could forge them could fake a lock."""

_ENVIRONMENT = ("file.", "files.", "test.", "lint.", "index.", "git.")
_BACKGROUND = ("file.", "files.", "index.", "session.")
_TAGS_BY_START = (("user.", "instruction"), ("file.", "change"), ("files.", "change"), ("git.", "change"))
_FAILURES = (".failed", ".error")


def is_reserved(type_: str) -> bool:
    """Tell whether a type belongs to the gateway and is refused from outside."""
    return type_.startswith(RESERVED)


def class_of(type_: str) -> str:
    """Return `user`, `environment` or `tool`."""
    if type_.startswith("user."):
        return "user"
    return "environment" if type_.startswith(_ENVIRONMENT) else "tool"


def default_lane(type_: str) -> Lane:
    """Return the lane of an event that no rule and no publisher's wish speaks for."""
    if type_.startswith("user."):
        return Lane.P0
    return Lane.P2 if type_.startswith(_BACKGROUND) else Lane.P1


def tags_of(type_: str) -> tuple[str, ...]:
    """Return the classifier's own tags; they come before the publisher's."""
    tags = tuple(tag for start, tag in _TAGS_BY_START if type_.startswith(start))
    return (*tags, "failure") if type_.endswith(_FAILURES) else tags
