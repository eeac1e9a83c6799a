"""Pure: the summary of a session, message by message, by rules over structure and wording; no model.

Kept: decisions with their reasons, files touched, open questions, outcomes, errors still open. Not kept: reasoning in
between, and what tools printed beyond the line that says how it went.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from herdr.context.sessions import wording
from herdr.context.sessions.decisions import Before, decisions_in, options_in, proposals_in
from herdr.context.sessions.ledger import decide
from herdr.context.sessions.message import Call, Message
from herdr.context.sessions.outcomes import after_result, after_words
from herdr.context.sessions.prose import Sentence, sentences
from herdr.context.sessions.questions import asked_in, still_open
from herdr.context.sessions.state import (
    CALLS_MAX,
    FILES_MAX,
    QUESTIONS_MAX,
    SOURCES_MAX,
    File,
    Summary,
)
from herdr.context.sessions.tools import Action, kind_of, paths_in, touched

T = TypeVar("T")

_SAID_ACTIONS: tuple[tuple[Action, re.Pattern[str]], ...] = (
    (
        "deleted",
        re.compile(r"\b(?:deleted|removed the file|dropped the file)\b|已?删除了?(?!.*(?:行|列|字段))", re.I),
    ),
    ("created", re.compile(r"\b(?:created|wrote|added the file|new file)\b|新建了?|创建了?", re.I)),
    (
        "edited",
        re.compile(
            r"\b(?:edited|updated|changed|rewrote|rewritten|modified|patched)\b|修改了?|更新了?|改了", re.I
        ),
    ),
)


def summarise(messages: Iterable[Message]) -> Summary:
    """Return the summary of a whole session."""
    summary = Summary()
    for message in messages:
        summary = fold(summary, message)
    return summary


def fold(summary: Summary, message: Message) -> Summary:
    """Return the summary after one more message. Costs the same however long the session is."""
    said = sentences(message.text) if message.role in ("user", "assistant") else []
    summary = _counted(summary, message)
    if message.role == "tool":
        return _after_tool(summary, message)
    edits = any(kind_of(call.name) in ("edit", "write") for call in message.calls)
    for found in decisions_in(message, said, Before(summary.asked, summary.options), edits=edits):
        summary = decide(summary, found, message)
    summary = _with_questions(summary, message, said)
    summary = after_words(summary, message, said)
    return _after_calls(_with_files(summary, message, said), message, said)


def _counted(summary: Summary, message: Message) -> Summary:
    sources = summary.sources
    if message.source not in sources and len(sources) < SOURCES_MAX:
        sources = (*sources, message.source)
    return msgspec.structs.replace(
        summary,
        messages=summary.messages + 1,
        seq=message.seq,
        first_us=summary.first_us or message.time_us,
        last_us=message.time_us,
        sources=sources,
    )


def _with_questions(summary: Summary, message: Message, said: Sequence[Sentence]) -> Summary:
    still = still_open(summary.questions, message, said, user_seq=summary.user_seq)
    asked = {question.text for question in still}
    new = [question for question in asked_in(message, said) if question.text not in asked]
    questions, gone = newest((*still, *new), QUESTIONS_MAX)
    more = (
        msgspec.structs.replace(summary.more, questions=summary.more.questions + gone)
        if gone
        else summary.more
    )
    return msgspec.structs.replace(summary, questions=questions, more=more)


def _with_files(summary: Summary, message: Message, said: Sequence[Sentence]) -> Summary:
    """Add the files that an assistant says it has worked on, where no tool shows it."""
    if message.role != "assistant" or message.calls:
        return summary
    done: list[tuple[str, Action]] = []
    for sentence in said:
        action = next((action for action, pattern in _SAID_ACTIONS if pattern.search(sentence)), None)
        if action is not None and not sentence.asks and not wording.HYPOTHETICAL.search(sentence):
            done.extend(
                (path, action) for path in paths_in(sentence) if _is_known(summary, path) or "/" in path
            )
    return _touch(summary, done, message)


def _after_calls(summary: Summary, message: Message, said: Sequence[Sentence]) -> Summary:
    for call in message.calls:
        summary = _touch(summary, touched(call), message)
    calls = (*summary.calls, *message.calls)[-CALLS_MAX:] if message.calls else summary.calls
    summary = msgspec.structs.replace(summary, calls=calls)
    if message.role == "user":
        return msgspec.structs.replace(summary, asked=(), options=(), user_seq=message.seq)
    if said and not (message.calls and summary.asked and not any(s.asks for s in said)):
        return msgspec.structs.replace(summary, asked=proposals_in(said), options=options_in(message.text))
    return summary


def _after_tool(summary: Summary, message: Message) -> Summary:
    call, left = _answered(summary, message)
    if left is not summary.calls:
        summary = msgspec.structs.replace(summary, calls=left)
    else:
        summary = _touch(summary, touched(call), message)
    return after_result(summary, message, call)


def _answered(summary: Summary, message: Message) -> tuple[Call, tuple[Call, ...]]:
    """Return the call that a tool's message answers, and those that still wait; it may bring its call along."""
    own = message.calls[0] if message.calls else Call(message.tool)
    if own.command or own.files:
        return own, summary.calls
    for place in range(len(summary.calls) - 1, -1, -1):
        call = summary.calls[place]
        if (message.answers and call.id == message.answers) or (
            not message.answers and (call.name == own.name or not own.name)
        ):
            return call, (*summary.calls[:place], *summary.calls[place + 1 :])
    return own, summary.calls


def _touch(summary: Summary, done: Iterable[tuple[str, Action]], message: Message) -> Summary:
    files = {file.path: file for file in summary.files}
    before = len(files)
    for path, action in done:
        path = path.removeprefix("./")
        old = files.pop(path, None)
        if old is not None and action == "created" and "deleted" not in old.actions:
            action = "edited"  # written anew, but it was there
        actions = old.actions if old is not None else ()
        files[path] = File(
            path, actions if action in actions else (*actions, action), message.seq, message.time_us
        )
    if len(files) == before and not any(file.seq == message.seq for file in files.values()):
        return summary
    kept, gone = newest(tuple(files.values()), FILES_MAX)
    more = msgspec.structs.replace(summary.more, files=summary.more.files + gone) if gone else summary.more
    return msgspec.structs.replace(summary, files=kept, more=more)


def _is_known(summary: Summary, path: str) -> bool:
    return any(file.path == path or file.path.endswith(f"/{path}") for file in summary.files)


def newest(items: tuple[T, ...], most: int) -> tuple[tuple[T, ...], int]:
    """Return the last `most` items, and how many went."""
    gone = max(0, len(items) - most)
    return items[gone:], gone
