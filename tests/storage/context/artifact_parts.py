"""Drafts of artifacts, and the model that the storage is compared with: a dict."""

from typing import Any

from msgspec.structs import replace

from herdr.context.artifacts import Artifact, Draft, Gone, Shelf, Stored
from herdr.context.blobs import ref_of


def draft(name: str, ttl_s: int = 100, workspace: str = "default", **fields: Any) -> Draft:
    """An artifact to store; every field has a value."""
    fields = {"kind": "patch", "content_type": "text/x-diff", "by": "editor"} | fields
    return Draft(name=name, ttl_s=ttl_s, workspace=workspace, **fields)


class ModelArtifacts:
    """All artifacts in a dict, the rules written down as plainly as they can be."""

    def __init__(self, clock: Any, limit_bytes: int, count_max: int) -> None:
        self.clock = clock
        self.limit_bytes = limit_bytes
        self.count_max = count_max
        self.held: dict[tuple[str, str], tuple[Artifact, bytes]] = {}

    def put(self, one: Draft, content: bytes) -> Stored:
        now = self.clock.wall
        gone = self.expire()
        old = self.held.pop((one.workspace, one.name), None)
        while self.held and (
            self.total() + len(content) > self.limit_bytes or len(self.held) + 1 > self.count_max
        ):
            oldest = min(self.held, key=lambda key: self.held[key][0].used_us)
            gone.append(Gone(self.held.pop(oldest)[0], "size"))
        artifact = Artifact(
            workspace=one.workspace, name=one.name, kind=one.kind, ref=ref_of(content), bytes=len(content),
            content_type=one.content_type, created_us=now, expires_us=now + one.ttl_s * 1_000_000, used_us=now,
            by=one.by, session=one.session, based_on=one.based_on, redacted=one.redacted,
        )  # fmt: skip
        self.held[one.workspace, one.name] = artifact, content
        return Stored(artifact, old is not None, gone)

    def total(self) -> int:
        return sum(artifact.bytes for artifact, _ in self.held.values())

    def alive(self, workspace: str, name: str) -> tuple[Artifact, bytes] | None:
        found = self.held.get((workspace, name))
        return found if found is not None and found[0].expires_us > self.clock.wall else None

    def get(self, workspace: str, name: str) -> tuple[Artifact, bytes] | None:
        found = self.alive(workspace, name)
        if found is not None:
            self.held[workspace, name] = replace(found[0], used_us=self.clock.wall), found[1]
            return found
        return None

    def shelf(self, workspace: str, kind: str | None, session: str | None, limit: int) -> Shelf:
        found = [
            artifact
            for artifact, _ in reversed(self.held.values())
            if artifact.workspace == workspace
            and kind in (None, artifact.kind)
            and session in (None, artifact.session)
            and artifact.expires_us > self.clock.wall
        ]
        return Shelf(found[:limit], len(found[limit:]), self.total())

    def delete(self, workspace: str, name: str) -> Artifact | None:
        found = self.alive(workspace, name)
        self.held.pop((workspace, name), None)
        return None if found is None else found[0]

    def expire(self) -> list[Gone]:
        ended = [one for one, _ in self.held.values() if one.expires_us <= self.clock.wall]
        for one in ended:
            del self.held[one.workspace, one.name]
        return [Gone(one, "ttl") for one in sorted(ended, key=lambda one: one.expires_us)]

    def next_expiry(self) -> int | None:
        return min((one.expires_us for one, _ in self.held.values()), default=None)
