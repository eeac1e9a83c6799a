"""Pure: what clients send about locks and waits, over HTTP and in frames, and what may be wrong with it."""

from collections.abc import Iterable, Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from herdr.errors import FieldError, InvalidInput
from herdr.event import Name
from herdr.locks.lock import Mode
from herdr.locks.paths import PATHS_MAX
from herdr.web import bodies
from herdr.web.bodies import wrong

TTL_MAX_S = 3600  # a holder that is silent for longer has gone
WAIT_MAX_S = 600  # that one request stands in line; who wants to wait longer asks again
PURPOSE_MAX = 1024  # characters: it is for people
TOKENS_MAX = 16  # that one call renews; an agent holds a handful of locks
BODY_MAX = 2 * 1024 * 1024  # bytes: `PATHS_MAX` paths of 4 KiB, and as much again for escapes
TOKEN_DIGITS_MAX = 19  # of the largest 64-bit number
TOKEN_HEADER = b"x-herdr-lock-token"

Paths = Annotated[list[str], Meta(min_length=1, max_length=PATHS_MAX)]
Ttl = Annotated[float, Meta(gt=0, le=TTL_MAX_S)]
WaitS = Annotated[float, Meta(ge=0, le=WAIT_MAX_S)]
Purpose = Annotated[str, Meta(max_length=PURPOSE_MAX)]
Token = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Tokens = Annotated[tuple[Token, ...], Meta(max_length=TOKENS_MAX)]

_NAME = "1 to 128 characters without control characters"
EXPECTED: Mapping[str, str] = {
    "paths": f"1 to {PATHS_MAX} texts",
    "path": "a text",
    **dict.fromkeys(("owner", "on", "workspace", "session"), _NAME),
    "mode": "write or intent",
    "ttl_s": f"seconds, more than 0 and at most {TTL_MAX_S}",
    "wait_s": f"seconds, 0 to {WAIT_MAX_S}",
    "purpose": f"a text of at most {PURPOSE_MAX} characters",
    "token": "the whole number that came with the lock",
    "tokens": f"at most {TOKENS_MAX} whole numbers that came with locks",
    "lock": "the id of a lock",
    "wait": "the id of a declared wait",
    "force": "true or false",
    "reason": f"a text of 1 to {PURPOSE_MAX} characters",
    "bound": "true or false",
    "reports": "true or false",
    "cancel": "the ref of a lock that was asked for",
    "ref": "a number or a text that the answer will carry",
    "events": "an array of events",
}


class LockBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is asked for: body of `POST /v1/locks`."""

    paths: Paths
    owner: Name | None = None
    """The caller's own name where it is left out."""
    workspace: Name = "default"
    ttl_s: Ttl = 60.0
    wait_s: WaitS = 0.0
    mode: Mode = "write"
    purpose: Purpose | None = None
    session: Name | None = None
    reports: bool = True
    """False: the owner does not publish what it changes, so what nobody reports is taken for its own."""


class CheckBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/locks/check`."""

    paths: Paths
    workspace: Name = "default"
    owner: Name | None = None
    """Whose own locks do not count."""
    mode: Mode = "write"


class RenewBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body, or query, of `PUT /v1/locks/{lock}`."""

    token: Token | None = None
    ttl_s: Ttl | None = None


class ReleaseBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body, or query, of `DELETE /v1/locks/{lock}`: the token, or `force` with a reason."""

    token: Token | None = None
    force: bool | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=PURPOSE_MAX)] | None = None


class WaitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who waits for whom: body of `POST /v1/waits`."""

    on: Name
    owner: Name | None = None
    """The caller's own name where it is left out."""
    purpose: Purpose | None = None
    ttl_s: Ttl = 600.0


class EndWaitBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body, or query, of `DELETE /v1/waits`."""

    owner: Name | None = None
    on: Name | None = None


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/locks`."""

    workspace: Name | None = None
    path: str | None = None
    owner: Name | None = None


Body = TypeVar("Body", bound=msgspec.Struct)


def read_body_as(type_: type[Body], body: bytes) -> Body:
    """Decode a body about locks; an empty one is an empty object. Raises InvalidInput."""
    return bodies.read_body_as(type_, body, EXPECTED)


def read_query_as(type_: type[Body], query: bytes) -> Body:
    """Decode a query about locks; raises InvalidInput."""
    return bodies.read_query_as(type_, query, EXPECTED)


def read_either(type_: type[Body], query: bytes, body: bytes) -> Body:
    """Decode what may come in the query or in the body; what comes in both must be the same."""
    first, second = read_query_as(type_, query), read_body_as(type_, body)
    for name in type_.__struct_fields__:
        asked, told = getattr(first, name), getattr(second, name)
        if asked is not None and told is not None and asked != told:
            raise wrong(FieldError(name, f"the query says {asked!r:.80}, the body {told!r:.80}; say it once"))
        if told is not None:
            setattr(first, name, told)
    return first


def explained(error: Exception, type_: type[msgspec.Struct]) -> FieldError:
    """Turn a decoder's message into the wrong field of a body or a frame, and what it should be."""
    return bodies.explained(error, type_, EXPECTED)


def parse_tokens(values: Iterable[bytes]) -> tuple[int, ...]:
    """Read the values of `X-Herdr-Lock-Token`; raises InvalidInput."""
    texts = [text.strip() for text in b",".join(values).split(b",")]
    if len(texts) > TOKENS_MAX:
        raise InvalidInput(f"X-Herdr-Lock-Token has {len(texts)} tokens, the most is {TOKENS_MAX}")
    if not all(text.isdigit() and len(text) <= TOKEN_DIGITS_MAX for text in texts):
        raise InvalidInput(
            "X-Herdr-Lock-Token takes the tokens that came with locks: whole numbers, separated by commas"
        )
    return tuple(map(int, texts))
