"""Pure: artifacts and sessions as the API and the bus show them."""

from typing import Any

import msgspec

from herdr.clock import rfc3339
from herdr.context.artifacts import Artifact
from herdr.context.histories import Session
from herdr.context.sessions.window import Window


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


def shown_window(window: Window) -> dict[str, Any]:
    """Return a window's parts, its times as text."""
    kinds = ("decisions", "files", "questions", "outcomes", "errors")
    summary: dict[str, Any] = {kind: [_timed(item) for item in getattr(window, kind)] for kind in kinds}
    more = msgspec.structs.asdict(window.more)
    newest_more = more.pop("messages")
    return {
        "summary": {**summary, "more": more},
        "newest": [_timed(message) for message in window.newest],
        "more_messages": newest_more,
        "text": window.text,
    }


def _timed(item: msgspec.Struct) -> dict[str, Any]:
    fields = msgspec.structs.asdict(item)
    time_us = fields.pop("time_us", None)
    return fields if time_us is None else {**fields, "time": rfc3339(time_us)}
