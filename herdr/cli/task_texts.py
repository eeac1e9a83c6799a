"""Tasks in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from herdr.cli.holders import from_now, moment_of
from herdr.cli.listing import cell, cells

HEADER = ("task", "state", "role", "holder", "changed", "title")
_LISTS = ("decisions", "files", "artifacts", "open_questions")
_TEXTS = ("question", "answer", "reason")


def listed(task: Mapping[str, Any], now_us: int) -> list[str]:
    """Return a task as a row under `HEADER`."""
    changed = from_now(moment_of(task.get("updated")), now_us)
    return [*cells(task, "task", "state", "role", "holder"), changed, cell(task.get("title"))]


def one_line(task: Mapping[str, Any]) -> str:
    """Return how a task is now."""
    held = f" by {task['holder']}" if task.get("holder") else f" for {task.get('role')}"
    state = str(task.get("state")).replace("_", " ")
    return f"{task.get('task')}: {state}" + (
        held if state in ("submitted", "working", "input required") else ""
    )


def describe(task: Mapping[str, Any], now_us: int) -> Iterator[str]:
    """Yield a task with its history, line by line."""
    yield f"{task.get('title')}"
    yield f"  {one_line(task)}"
    if task.get("expires"):
        yield f"  its lease ends {from_now(moment_of(task['expires']), now_us)} unless it is renewed"
    if task.get("question"):
        yield f"  {task.get('asked')} is asked: {task['question']}"
    where = [f"{name} {task[name]}" for name in ("workspace", "session") if task.get(name)]
    yield f"  created by {task.get('created_by')}, {', '.join(where)}"
    yield from _paragraphs(task.get("description"), "  ")
    yield ""
    for step in task.get("steps") or ():
        yield from _step(step, now_us)


def _step(step: Mapping[str, Any], now_us: int) -> Iterator[str]:
    what = str(step.get("type")).removeprefix("handoff.").replace("_", " ")
    to = step.get("to") or (step.get("role") if what in ("created", "handed over") else None)
    whom = f" {'for' if what == 'created' else 'to' if what == 'handed over' else 'of'} {to}" if to else ""
    yield f"{from_now(moment_of(step.get('time')), now_us)}: {what}{whom} by {step.get('by')}"
    for name in _TEXTS:
        yield from _paragraphs(step.get(name), "  ")
    note = step.get("note") or {}
    yield from _paragraphs(note.get("summary"), "  ")
    for name in _LISTS:
        for item in note.get(name) or ():
            yield f"  {name.replace('_', ' ').removesuffix('s')}: {item}"


def _paragraphs(text: object, indent: str) -> Iterator[str]:
    for line in str(text).splitlines() if text else ():
        yield indent + line
