"""Pure: artifacts (patches, log digests, error analyses): how long they stay and which go when it gets tight.

The size of an artifact is that of its content before compression. Two artifacts with the same content count
twice, although it is stored once: what an artifact costs must not hang on what others have stored.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from herdr.errors import HerdrError, InvalidInput

TTL_DEFAULT_S = 7 * 86_400
TTL_MAX_S = 30 * 86_400
COUNT_MAX = 10_000
"""Artifacts in all; empty ones cost bytes too. Deciding which one goes reads an index of that many rows."""

_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ArtifactTooLarge(HerdrError):
    """One artifact is larger than all artifacts together may be."""

    code = "artifact_too_large"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the artifact has {size} bytes, and all of them together may have {limit}: store less, or set "
            "context.artifact_cache_size (MiB) higher"
        )


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be stored, beside the content. The server sets `by`, never the client."""

    workspace: str
    name: str
    kind: str
    content_type: str
    ttl_s: int
    by: str
    session: str | None = None
    based_on: str | None = None
    redacted: int = 0
    """How many secrets were taken out of the content before it came here."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """One stored artifact without its content. Times are microseconds since the epoch."""

    workspace: str
    name: str
    kind: str
    ref: str
    bytes: int
    content_type: str
    created_us: int
    expires_us: int
    used_us: int
    by: str
    session: str | None
    based_on: str | None
    redacted: int


Reason = Literal["ttl", "size"]


class Gone(NamedTuple):
    """An artifact that left by itself, and why."""

    artifact: Artifact
    reason: Reason


class Stored(NamedTuple):
    """The outcome of a put: whether the name was taken before, and what had to go."""

    artifact: Artifact
    replaced: bool
    gone: Sequence[Gone]


class Shelf(NamedTuple):
    """A list of artifacts, newest first; `more` were left off. `bytes` are those of all."""

    artifacts: Sequence[Artifact]
    more: int
    bytes: int


class Artifacts(Protocol):
    """The artifact cache. One past its time is not there, also before `expire` has removed it.

    Every method raises ContextUnavailable when the storage fails; nothing of the call has happened then.
    """

    limit_bytes: int

    async def put(self, draft: Draft, content: bytes) -> Stored:
        """Store an artifact, replacing one of that name; raises ArtifactTooLarge."""
        ...

    async def get(self, workspace: str, name: str) -> tuple[Artifact, bytes] | None:
        """Return an artifact with its content, and count that as a use; raises BlobDamaged."""
        ...

    async def describe(self, workspace: str, name: str) -> Artifact | None:
        """Return an artifact without its content; not a use."""
        ...

    async def shelf(
        self, workspace: str, kind: str | None = None, session: str | None = None, limit: int = 100
    ) -> Shelf:
        """List the artifacts of a workspace."""
        ...

    async def delete(self, workspace: str, name: str) -> Artifact | None:
        """Remove an artifact and return it; None when there is none."""
        ...

    async def expire(self) -> Sequence[Gone]:
        """Remove those whose time is over, at most `EXPIRED_A_CALL` a call, and return them."""
        ...

    async def next_expiry(self) -> int | None:
        """Return when the next one ends, in microseconds since the epoch; None when there is none."""
        ...


EXPIRED_A_CALL = 500  # each becomes an event; the rest comes with the next call


def check(kind: str, ttl_s: int) -> None:
    """Raise InvalidInput when a kind or a time to live is not one."""
    if _KIND.fullmatch(kind) is None:
        raise InvalidInput(
            f"kind {kind!r}: use a lower-case word of up to 64 letters, digits and _, such as patch, "
            "log_digest or error_analysis"
        )
    if not 1 <= ttl_s <= TTL_MAX_S:
        raise InvalidInput(f"ttl_s {ttl_s}: an artifact lives 1 to {TTL_MAX_S} seconds (30 days)")


class Used(NamedTuple):
    """What the choice of who goes needs of one artifact."""

    key: int
    bytes: int


def surplus(
    oldest_first: Iterable[Used], bytes_after: int, count_after: int, limit_bytes: int, count_max: int
) -> list[int]:
    """Return the keys of those that must go so that what is left fits, least recently used first.

    `bytes_after` and `count_after` include the newcomer, `oldest_first` does not: it never goes itself.
    """
    going: list[int] = []
    for used in oldest_first:
        if bytes_after <= limit_bytes and count_after <= count_max:
            break
        going.append(used.key)
        bytes_after -= used.bytes
        count_after -= 1
    return going
