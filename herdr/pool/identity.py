"""Pure: who is asking, on which route and how urgently, read from headers and body.

The agent decides which slot a call may have, so each client's own names are used where it sends any. Header
names come in lower case.
"""

from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from urllib.parse import unquote

import msgspec

from herdr.errors import FieldError, InvalidInput
from herdr.pool.canonical import Canonical
from herdr.pool.request import ChatRequest

NAME_MAX = 128  # characters; clients' ids are UUIDs of 36, and these stand in every event of a call
DIGEST_HEX = 16  # what keeps two long names apart that begin alike
PRIORITY_DEFAULT, PRIORITY_LAST = 5, 9
ANONYMOUS = "default"

SESSION_HEADERS = (
    "x-claude-code-session-id",  # Claude Code
    "thread-id",  # Codex: the conversation; its session-id spans several
    "session-id",
    "x-session-id",  # opencode
)
SUB_AGENT_HEADER = "x-claude-code-agent-id"
CLASS_HEADER = "x-claude-code-request-class"
SIDE_CLASSES = frozenset({"auxiliary", "side_reply"})
RETRY_HEADERS = ("x-stainless-retry-count", "x-retry-count", "x-retry-attempt")
UNNAMED_SUB_AGENT = "sub-agent"


class Caller(msgspec.Struct, frozen=True):
    """Who asks. All names are printable and at most NAME_MAX characters (an agent's: two and a slash)."""

    agent: str | None
    """None: nothing tells; such callers are told apart by the prompt that they continue."""
    session: str | None
    """Where the turn is recorded."""
    route: str
    priority: int
    """0 (first) to 9."""
    side: bool
    """A title, a summary, a probe: not a turn of a conversation."""
    sub_agent: bool
    retry: bool
    """The client says that it sent this request before."""

    @property
    def shown(self) -> str:
        """Return the agent as people see it."""
        return self.agent or ANONYMOUS

    @property
    def parent(self) -> str | None:
        """Return the agent whose sub-agent this is."""
        return self.agent.rpartition("/")[0] or None if self.sub_agent and self.agent else None


def identify(
    headers: Mapping[str, str], request: ChatRequest, canonical: Canonical, token_name: str | None
) -> Caller:
    """Return who asks. Raises InvalidInput for a priority that is none; odd names are cleaned instead."""
    own_session = next(filter(None, (_header(headers, name) for name in SESSION_HEADERS)), None)
    body_session = clean(request.session)
    sub_agent = _is_sub_agent(headers, canonical)
    side = _is_side(headers, request, own_session, sub_agent)
    base = _header(headers, "x-agent-id") or clean(request.agent) or own_session or body_session or token_name
    return Caller(
        agent=_agent(base, headers, sub_agent),
        session=_header(headers, "x-herdr-session") or own_session or body_session,
        route=_route(headers, request, side),
        priority=_priority(headers, request),
        side=side,
        sub_agent=sub_agent,
        retry=any(_count(headers.get(name, "")) > 0 for name in RETRY_HEADERS),
    )


def clean(value: str | None) -> str | None:
    """Return a name as it may be shown and kept: printable, of one line, bounded; None when nothing is left.

    Clients percent-encode what is not ASCII, or send UTF-8, which servers hand over as Latin-1.
    """
    if not value:
        return None
    printable = "".join(char if char.isprintable() else " " for char in _decoded(value))
    name = " ".join(printable.split())
    if len(name) > NAME_MAX:
        digest = blake2b(name.encode(), digest_size=DIGEST_HEX // 2).hexdigest()
        name = f"{name[: NAME_MAX - DIGEST_HEX - 1]}~{digest}"
    return name or None


def _decoded(value: str) -> str:
    with suppress(UnicodeError):  # else it was not UTF-8 read as Latin-1: as it is
        value = value.encode("latin-1").decode()
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        return value


def _header(headers: Mapping[str, str], name: str) -> str | None:
    return clean(headers.get(name))


def _is_sub_agent(headers: Mapping[str, str], canonical: Canonical) -> bool:
    named = _header(headers, SUB_AGENT_HEADER) is not None
    return named or canonical.sub_agent or headers.get(CLASS_HEADER) == "subagent"


def _is_side(
    headers: Mapping[str, str], request: ChatRequest, own_session: str | None, sub_agent: bool
) -> bool:
    """Tell whether this is beside the conversation: its session's main calls all come with tools."""
    if request.max_tokens == 1 or headers.get(CLASS_HEADER) in SIDE_CLASSES:
        return True
    return own_session is not None and not request.tools and not sub_agent


def _agent(base: str | None, headers: Mapping[str, str], sub_agent: bool) -> str | None:
    """Return the agent; a sub-agent is one of its own, or it would take its parent's slots."""
    if not sub_agent:
        return base
    name = _header(headers, SUB_AGENT_HEADER)
    if base is None:
        return name
    return f"{base}/{name or UNNAMED_SUB_AGENT}"


def _route(headers: Mapping[str, str], request: ChatRequest, side: bool) -> str:
    """Return the route. A sub-agent sends its parent's headers, so the same rule gives its parent's route."""
    named = _header(headers, "x-herdr-route") or clean(request.route)
    return named or ("background" if side else "primary_agent")


def _priority(headers: Mapping[str, str], request: ChatRequest) -> int:
    given = headers.get("x-priority")
    if given is not None:
        return _checked("X-Priority", given)
    return PRIORITY_DEFAULT if request.priority is None else _checked("priority", str(request.priority))


def _checked(field: str, given: str) -> int:
    digit = given.strip()
    if len(digit) == 1 and digit in "0123456789":
        return int(digit)
    what = f"must be a whole number from 0 (first) to {PRIORITY_LAST} (last)"
    detail = (
        f"{field} {what}, and is {clean(given) or 'empty'}; without it the priority is {PRIORITY_DEFAULT}."
    )
    raise InvalidInput(detail, errors=[FieldError(field, what)])


def _count(value: str) -> int:
    value = value.strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
