"""Pure: artifacts and sessions as the API and the bus show them."""

from collections.abc import Mapping
from types import MappingProxyType
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


_SHOWN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "decisions": ("text", "reason", "about", "files", "seq", "time", "source", "by", "superseded"),
        "files": ("path", "actions", "seq", "time"),
        "questions": ("text", "seq", "time", "source", "by"),
        "outcomes": ("text", "seq", "time", "source"),
        "errors": ("text", "seq", "time", "source", "subject"),
        "newest": ("seq", "role", "source", "time", "text", "whole"),
    }
)
"""What of each kind is told; the rest is the rules' own memory. Older decisions have a text and a `seq` only."""


def shown_window(window: Window) -> dict[str, Any]:
    """Return a window's parts, its times as text."""
    parts = {kind: [_picked(item, names) for item in getattr(window, kind)] for kind, names in _SHOWN.items()}
    more = msgspec.structs.asdict(window.more)
    more_messages, newest = more.pop("messages"), parts.pop("newest")
    return {
        "summary": {**parts, "more": more},
        "newest": newest,
        "more_messages": more_messages,
        "text": window.text,
    }


def _picked(item: msgspec.Struct, names: tuple[str, ...]) -> dict[str, Any]:
    fields = msgspec.structs.asdict(item)
    if "time_us" in fields:
        fields["time"] = rfc3339(fields.pop("time_us"))
    return {name: fields[name] for name in names if name in fields}
