"""The rules that say which event goes to which target (PROTOCOL section 2)."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from herdr.event import Priority
from herdr.glob import GLOB_LENGTH_MAX

Format = Literal["full", "summary", "ref"]

MATCH_FIELDS = ("type", "source", "subject", "workspace", "session", "task", "class", "priority", "tags")
MATCH_PREFIXES = ("data.", "attr.")

# `$(?!\n)` for the same reason as in herdr.event: Python's `$` also matches before a last line break.
_MATCH_FIELD = rf"^({'|'.join(MATCH_FIELDS)}|data(\.[^.\x00-\x1f\x7f]+)+|attr\.[^\x00-\x1f\x7f]+)$(?!\n)"
_NAME = r"^[^\x00-\x1f\x7f]+$(?!\n)"

MATCHES_MAX = 32  # conditions of one rule; each is judged for every event that the rule's glob lets through
CHOICES_MAX = 64  # values of one condition
TIMEOUT_MS_MAX = 86_400_000  # a day: an event that is wanted later than that is history, not a delivery
SESSION_TOKENS_MIN, SESSION_TOKENS_MAX = 64, 1_000_000  # as `GET /v1/sessions/{id}` takes them

# Not a `pattern` of the type: a rule that comes over the API is refused by the bus, in words.
MatchField = Annotated[
    str,
    Meta(
        extra={"names": MATCH_FIELDS + MATCH_PREFIXES, "pattern": _MATCH_FIELD},
        extra_json_schema={"pattern": _MATCH_FIELD},
    ),
]
_VALUE_NOTE = {"expected": "a glob, a number, true or false, or a list of them"}
# The same rule as herdr.glob.check_glob, so that a decoder refuses what the compiler would.
Glob = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=GLOB_LENGTH_MAX,
        pattern=_NAME,
        extra={"expected": f"a glob of 1 to {GLOB_LENGTH_MAX} characters; ** matches everything"},
    ),
]
MatchScalar = Glob | int | float | bool
MatchValue = MatchScalar | Annotated[tuple[MatchScalar, ...], Meta(min_length=1, max_length=CHOICES_MAX)]


class RouteContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is put beside the events of a rule."""

    session_tokens: Annotated[
        Annotated[int, Meta(ge=SESSION_TOKENS_MIN, le=SESSION_TOKENS_MAX)] | None,
        Meta(description="Tokens of the window of the event's session; unset: no window."),
    ] = None
    graph: Annotated[bool, Meta(description="Whether the outline of the event's file is wanted.")] = False

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong) for what the types alone cannot say."""
        if self.session_tokens is None and not self.graph:
            yield "", "it asks for nothing; give session_tokens, graph: true, or both, or leave context out"


class RouteRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One rule: the events it takes, and the target that gets them.

    An event fits when `event` matches its type and every entry of `match` holds; a list holds when one of
    its values does.
    """

    event: Annotated[Glob, Meta(description="Glob on the event's type, such as `test.*`; `*` is every type.")]
    target: Annotated[
        str,
        Meta(
            min_length=1, max_length=128, pattern=_NAME, description="Name of the target that gets the event."
        ),
    ]
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=128,
            pattern=_NAME,
            description="Unique name; without one, `file-` and the rule's place in the list, from 1.",
        ),
    ] = ""
    match: Annotated[
        dict[MatchField, Annotated[MatchValue, Meta(extra=_VALUE_NOTE)]],
        Meta(
            max_length=MATCHES_MAX,
            description="Further conditions: field to glob, value, or list of them. Fields: `type`, "
            "`source`, `subject`, `workspace`, `session`, `task`, `class`, `priority`, `tags`, "
            "`data.PATH`, `attr.NAME`.",
        ),
    ] = {}
    priority: Annotated[
        Priority | None, Meta(description="Lane of the event: `P0`, `P1` or `P2`; unset leaves it as it is.")
    ] = None
    timeout_ms: Annotated[
        Annotated[int, Meta(ge=1, le=TIMEOUT_MS_MAX)] | None,
        Meta(
            description="Milliseconds from the commit within which the target must be reached; "
            "unset: 30000 for P0, 5000 for P1, 1000 for P2."
        ),
    ] = None
    format: Annotated[
        Format, Meta(description="How much of the event the target gets: `full`, `summary` or `ref`.")
    ] = "full"
    context: Annotated[
        Literal["none"] | RouteContext,
        Meta(
            description="What is put beside the event: `none`, or a mapping with `session_tokens`, the tokens "
            "of its session's window, and `graph`, whether the outline of its file is wanted.",
            extra={
                "expected": "none, or a mapping with session_tokens (64 to 1000000), graph (true), or both"
            },
        ),
    ] = "none"
