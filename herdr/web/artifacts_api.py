"""The handlers of `/v1/artifacts`."""

import msgspec

from herdr.context.artifacts import Draft
from herdr.context.shown import shown_artifact
from herdr.errors import FieldError
from herdr.event import Subject
from herdr.web.asgi import Receive, Reply, Scope, header, read_body, respond, respond_json
from herdr.web.auth import Caller
from herdr.web.bodies import wrong
from herdr.web.context_api import read
from herdr.web.context_bodies import ArtifactQuery, PutArtifactQuery, ShelfQuery
from herdr.web.context_desk import Artifacts
from herdr.web.etag import respond_json_tagged, respond_tagged

BODY_MAX = 32 * 1024 * 1024  # one artifact; it passes through memory, so four at once are the default cache
ADVICE = "store it in parts, or a digest of it"
CONTENT_TYPE = "application/octet-stream"
CONTENT_TYPE_MAX = 256  # characters


class ArtifactsApi:
    """Patches, digests and analyses that tools leave for each other."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts

    async def put(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Store what the body holds; who stored it is the caller's name, whatever the client says."""
        query = read(PutArtifactQuery, scope)
        draft = Draft(
            workspace=query.workspace,
            name=_name(scope),
            kind=query.kind,
            content_type=_content_type(scope),
            ttl_s=query.ttl_s,
            by=caller.name,
            session=query.session,
            based_on=query.based_on,
        )
        stored = await self._artifacts.put(draft, await read_body(scope, receive, BODY_MAX, ADVICE))
        await respond_json(send, 200 if stored.replaced else 201, shown_artifact(stored.artifact))

    async def get(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the content, or with `meta=true` with what is known of it."""
        query = read(ArtifactQuery, scope)
        if query.meta:
            artifact = await self._artifacts.describe(query.workspace, _name(scope))
            await respond_json(send, 200, shown_artifact(artifact))
            return
        artifact, content = await self._artifacts.get(query.workspace, _name(scope))
        headers = [
            (b"content-type", artifact.content_type.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"content-disposition", b"attachment"),  # whoever stored it may have called it HTML
        ]
        await respond_tagged(scope, send, artifact.ref, content, headers)

    async def delete(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Remove an artifact."""
        await self._artifacts.delete(read(ArtifactQuery, scope).workspace, _name(scope))
        await respond(send, 204, b"", [])

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """List artifacts, newest first."""
        query = read(ShelfQuery, scope)
        shelf = await self._artifacts.listed(query.workspace, query.kind, query.session, query.limit)
        listed = {
            "artifacts": [shown_artifact(artifact) for artifact in shelf.artifacts],
            "bytes": shelf.bytes,
            "limit_bytes": self._artifacts.limit_bytes,
            "more": shelf.more,
        }
        await respond_json_tagged(scope, send, listed)


def _name(scope: Scope) -> str:
    try:
        return msgspec.convert(scope["path_params"]["name"], Subject)
    except msgspec.ValidationError:
        raise wrong(FieldError("name", "a name of 1 to 4096 characters without control characters")) from None


def _content_type(scope: Scope) -> str:
    given = header(scope, b"content-type") or CONTENT_TYPE
    if len(given) > CONTENT_TYPE_MAX or not given.isascii() or not given.isprintable():
        raise wrong(FieldError("content-type", "a media type such as text/plain"))
    return given
