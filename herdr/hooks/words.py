"""Pure: what tools are told through their hooks, as facts; what they do about it is theirs."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from herdr.event import Event
from herdr.hooks.call import Call
from herdr.hooks.changes import Change

CONTEXT_MAX = 2000  # characters; the least that a client shows is 10,000, and models read every one of them
CHANGES_SAID, SIGNATURES_SAID, CALLERS_SAID, NEWS_SAID = 10, 5, 5, 8


class _Body(msgspec.Struct):
    """What is told of an event."""

    type: str
    subject: str | None = None
    data: Any = None


_decode = msgspec.json.Decoder(_Body).decode


def bodies_of(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return what was addressed to somebody, for `news`; what cannot be read is left out."""
    found = []
    for event in events:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            found.append(msgspec.structs.asdict(_decode(event.body)))
    return found


def denied(call: Call, detail: str) -> str:
    """Return why a file must not be written now."""
    return f"Herdr: {_seen(call.tool, 100)} was not run. {_seen(detail, CONTEXT_MAX)}."


def introduced(call: Call, workspace: str) -> str:
    """Return what a model should know once in a session."""
    return (
        f"Herdr: in this project's shared gateway this agent is known as `{call.name}` (workspace `{workspace}`, "
        f"session `{call.conversation}`); that is also its name for the tool `register`. Files that other agents "
        "are writing are locked; edits are reported by hooks."
    )


def lacking(scopes: Sequence[str]) -> str:
    """Return what is said when a hook's token may not do what the hook is for."""
    missing = " and ".join(scopes)
    return f"Herdr: the token of this hook lacks {missing}; nothing was locked or told. Add it under auth.tokens."


def dropped() -> str:
    """Return what is said when an edit could not be told of."""
    return "Herdr: the gateway has more to write than it can, and did not record this edit; others do not hear of it."


def unknown_folder(call: Call) -> str:
    """Return what to do about a folder that is not watched."""
    return (
        f"Herdr does not watch {call.cwd[:200] or 'this folder'}, so nothing here is locked or reported. To add it: "
        f"`herdr workspace add {call.cwd[:200] or 'PATH'}`; if the gateway runs in a container, name the path that "
        "the tool sees under workspaces[].roots."
    )


def changed(changes: Sequence[Change]) -> list[str]:
    """Return lines about what others changed, the newest last."""
    files: dict[str, str] = {}
    lines = []
    for change in changes:
        if change.by is not None:
            files.pop(change.path, None)
            files[change.path] = change.by
    if files:
        said = list(files.items())[-CHANGES_SAID:]
        named = ", ".join(f"{path} (by {by})" for path, by in said)
        more = f" and {len(files) - len(said)} more" if len(files) > len(said) else ""
        lines.append(f"Changed by others meanwhile: {named}{more}.")
    signatures = [s for change in changes for s in change.signatures]
    lines.extend(_signature(signature) for signature in signatures[-SIGNATURES_SAID:])
    return lines


def _signature(signature: Mapping[str, Any]) -> str:
    callers = signature.get("callers")
    called = [str(c) for c in callers[:CALLERS_SAID]] if isinstance(callers, list) else []
    by = f"; called in {', '.join(called)}" if called else ""
    return f"{signature.get('symbol')} is now `{signature.get('new')}` (was `{signature.get('old')}`){by}."


def news(events: Sequence[Mapping[str, Any]], more: int) -> list[str]:
    """Return lines about what was addressed to a tool."""
    lines = [line for event in events[:NEWS_SAID] if (line := _news(event))]
    left = more + max(0, len(events) - NEWS_SAID)
    return [*lines, f"{left} more events are waiting."] if left else lines


def lost(count: int) -> list[str]:
    """Return a line about what was addressed to a tool and is not kept any more."""
    return [f"{count} older events for this agent were too many to be kept."] if count else []


def _news(event: Mapping[str, Any]) -> str:
    kind, data = str(event.get("type")), event.get("data")
    data = data if isinstance(data, dict) else {}
    paths = data.get("paths")
    subject = event.get("subject") or (", ".join(map(str, paths)) if isinstance(paths, list) else "")
    if kind == "conflict.detected":
        current = data.get("current")
        other = current.get("source") if isinstance(current, dict) else None
        by = (
            f", newer version by {other}" if other else f", written by {data['by']}" if data.get("by") else ""
        )
        return f"Conflict on {subject}: {data.get('reason') or data.get('status') or 'see the event'}{by}."
    if kind.startswith("handoff."):
        return f"Task {data.get('task')} ({data.get('title')}): {kind.removeprefix('handoff.')}, by {data.get('by')}."
    said = data.get("detail") or data.get("reason") or data.get("summary") or ""
    return f"{kind} {subject} {said}".strip() + "."


def context(lines: Sequence[str]) -> str | None:
    """Return the lines as one text of bounded length, or None for nothing."""
    kept: list[str] = []
    size = len("Herdr: ")
    for line in lines:
        clean = _seen(line, CONTEXT_MAX // 2)
        if size + len(clean) + 1 > CONTEXT_MAX:
            break
        kept.append(clean)
        size += len(clean) + 1
    return "Herdr: " + "\n".join(kept) if kept else None


def _seen(text: str, most: int) -> str:
    """Return at most so many characters, without those that a person would not see and a model would read."""
    return "".join(c if c.isprintable() else " " for c in text[:most])
