"""Pure: artifacts and sessions as the API and the bus show them."""

from typing import Any

import msgspec

from herdr.clock import rfc3339
from herdr.context.artifacts import Artifact
from herdr.context.histories import Session


def shown_artifact(artifact: Artifact) -> dict[str, Any]:
    """Return an artifact without its content, its times as text."""
    kept = msgspec.to_builtins(artifact)
    shown = {name: value for name, value in kept.items() if not name.endswith("_us")}
    times = {"created": artifact.created_us, "expires": artifact.expires_us, "used": artifact.used_us}
    return {**shown, **{name: rfc3339(us) for name, us in times.items()}}


def told_artifact(artifact: Artifact) -> dict[str, Any]:
    """Return what an event says of an artifact."""
    names = ("name", "workspace", "kind", "ref", "bytes", "by", "session", "based_on")
    return {name: getattr(artifact, name) for name in names}


def shown_session(session: Session) -> dict[str, Any]:
    """Return a session's row in a list."""
    return {
        "session": session.session,
        "workspace": session.workspace,
        "messages": session.messages,
        "full_tokens": session.full_tokens,
        "first": rfc3339(session.first_us),
        "updated": rfc3339(session.updated_us),
        "sources": list(session.sources),
    }
