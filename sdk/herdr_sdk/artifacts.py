"""What tools have worked out and others may use: patches, digests of logs, analyses of errors. `hub.artifacts`."""

from typing import TypedDict

import msgspec

from herdr_sdk.plain_http import PlainHttp, Request, parts
from herdr_sdk.texts import Texts


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """One artifact, without its content."""

    name: str
    workspace: str = "default"
    kind: str = ""
    ref: str = ""
    """The SHA-256 of its content, in hexadecimal."""
    bytes: int = 0
    content_type: str = ""
    created: str | None = None
    expires: str | None = None
    used: str | None = None
    """When it was last read: what was not for the longest time goes first when there is no more room."""
    by: str = ""
    """Who stored it, as the gateway knows it."""
    session: str | None = None
    based_on: str | None = None
    redacted: int = 0
    """Secrets that the gateway has blanked in it."""


class ArtifactList(msgspec.Struct, frozen=True, kw_only=True):
    """Artifacts, and the room that they take."""

    artifacts: tuple[Artifact, ...]
    bytes: int = 0
    limit_bytes: int = 0
    more: int = 0
    """How many there are beyond these."""


class ArtifactFields(TypedDict, total=False):
    """The keyword arguments of `Artifacts.put`, which says what each is for."""

    kind: str | None
    ttl_s: int | None
    workspace: str
    session: str | None
    based_on: str | int | None


class ArtifactFilters(TypedDict, total=False):
    """The keyword arguments of `Artifacts.list`."""

    workspace: str
    kind: str | None
    session: str | None
    limit: int


class Artifacts:
    """The artifacts at the gateway; stands at `Hub.artifacts`.

    Each workspace has its own names. One that there is not raises NotFound.
    """

    def __init__(self, http: PlainHttp, texts: Texts) -> None:
        self._http = http
        self._texts = texts

    async def put(
        self,
        name: str,
        content: str | bytes,
        *,
        kind: str | None = None,
        ttl_s: int | None = None,
        workspace: str = "default",
        session: str | None = None,
        based_on: str | int | None = None,
    ) -> Artifact:
        """Store content under a name, which may hold `/`, in place of what is there.

        `kind`: one lower-case word, such as `patch`, `log_digest` or `error_analysis`. `ttl_s`: seconds after
        which it goes (default 7 days, at most 30). `based_on`: what it was made from. Raises ServerError
        (`artifact_too_large`, or `read_only` for a gateway that runs for CI).
        """
        body, plain = (content.encode(), True) if isinstance(content, str) else (content, False)
        where = {"workspace": workspace, "session": session, "based_on": based_on}
        headers = {"Content-Type": "text/plain; charset=utf-8" if plain else "application/octet-stream"}
        request = Request("PUT", _address(name), {"kind": kind, "ttl_s": ttl_s, **where}, body, headers)
        return await self._http.read(Artifact, request)

    async def get(self, name: str, *, workspace: str = "default") -> bytes:
        """Return the content. One that this hub has and that is the same is not sent again."""
        return await self._texts.content(_address(name), {"workspace": workspace})

    async def describe(self, name: str, *, workspace: str = "default") -> Artifact:
        """Return what is known of it, without the content."""
        query = {"workspace": workspace, "meta": True}
        return await self._http.read(Artifact, Request("GET", _address(name), query))

    async def list(
        self,
        *,
        workspace: str = "default",
        kind: str | None = None,
        session: str | None = None,
        limit: int = 100,
    ) -> ArtifactList:
        """Return what a workspace has, the newest first."""
        query = {"workspace": workspace, "kind": kind, "session": session, "limit": limit}
        return await self._http.read(ArtifactList, Request("GET", "/v1/artifacts", query))

    async def delete(self, name: str, *, workspace: str = "default") -> None:
        """Delete it."""
        await self._http.ask(Request("DELETE", _address(name), {"workspace": workspace}))


def _address(name: str) -> str:
    return f"/v1/artifacts/{parts(name)}"
