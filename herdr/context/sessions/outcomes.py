"""Pure: what came about, and the errors that nothing has shown to be over."""

from collections.abc import Sequence

import msgspec

from herdr.context.sessions import wording
from herdr.context.sessions.message import Call, Message
from herdr.context.sessions.prose import Sentence, cut, is_chinese
from herdr.context.sessions.results import LINE_MAX, Verdict, commits_in, reported, verdict
from herdr.context.sessions.state import ERRORS_MAX, OUTCOMES_MAX, Error, Outcome, Summary, Trouble
from herdr.context.sessions.tools import commit_message, is_check, kind_of, subject_of

ONE_OFF_MESSAGES = 40  # messages after which an error of a command that is no check is taken to be given up
TELLING_WORDS = 4  # "Done." says nothing without what
TELLING_HAN = 8  # the same in Chinese characters


def after_result(summary: Summary, message: Message, call: Call) -> Summary:
    """Return the summary after a tool has answered `call`."""
    kind = kind_of(call.name)
    if kind == "shell" or not call.name:
        return _after_command(summary, message, call)
    if kind in ("edit", "write") and call.files:
        if message.failed:
            text = f"{call.name} {call.files[0]}: {_first_line(message.text)}"
            return _fails(summary, message, "edit", call.files[0], Verdict(failed=True, line=text))
        return _over(summary, "edit", call.files[0])
    return summary


def after_words(summary: Summary, message: Message, said: Sequence[Sentence]) -> Summary:
    """Return the summary after what somebody said: errors that users report or call over, and things done."""
    summary = _without_one_offs(summary)
    if message.role == "user":
        if any(wording.FIXED_SAID.search(sentence) for sentence in said if not sentence.asks):
            summary = _over(summary, "reported", None)
        if line := reported(message.text):
            summary = _fails(summary, message, "reported", line, Verdict(failed=True, line=line))
    for sentence in said:
        if _tells_success(sentence):
            summary = _comes_about(summary, message, sentence, "")
    return summary


def _after_command(summary: Summary, message: Message, call: Call) -> Summary:
    subject, targets = subject_of(call.command)
    seen = verdict(message.text, message.failed)
    for commit in commits_in(message.text):
        summary = _comes_about(summary, message, f"committed {commit}", "")
    if not seen.failed and (said := commit_message(call.command)) and not commits_in(message.text):
        summary = _comes_about(summary, message, f"committed: {said}"[:LINE_MAX], "")
    trouble: Trouble = "check" if is_check(subject) else "command"
    if not subject or not (seen.failed or seen.passed or trouble == "command"):
        return summary
    if seen.failed:
        return _fails(summary, message, trouble, subject, seen, targets)
    summary = _over(summary, trouble, subject, targets)
    if trouble == "check" and seen.line:
        text = f"{' '.join([subject, *targets])}: {seen.line}"[:LINE_MAX]
        summary = _comes_about(summary, message, text, f"{subject} {' '.join(targets)}")
    return summary


def _fails(
    summary: Summary,
    message: Message,
    trouble: Trouble,
    subject: str,
    seen: Verdict,
    targets: tuple[str, ...] = (),
) -> Summary:
    """Add an error; it takes the place of what the same check said before."""
    named = f" ({', '.join(seen.names[:3])})" if seen.names and seen.names[0] not in seen.line else ""
    text = f"{subject}: {seen.line}{named}" if trouble in ("check", "command") else seen.line
    new = Error(
        text[: 2 * LINE_MAX], message.seq, message.time_us, message.source, trouble, subject, targets, seen.names,
        summary.messages,
    )  # fmt: skip
    others = [e for e in summary.errors if (e.trouble, e.subject) != (trouble, subject)]
    errors = (*others, new)
    gone = max(0, len(errors) - ERRORS_MAX)
    more = msgspec.structs.replace(summary.more, errors=summary.more.errors + gone) if gone else summary.more
    return msgspec.structs.replace(summary, errors=errors[gone:], more=more)


def _over(summary: Summary, trouble: Trouble, subject: str | None, targets: tuple[str, ...] = ()) -> Summary:
    """Drop the errors that a success of `subject` has shown to be over; None: all of the kind."""
    left = tuple(
        e
        for e in summary.errors
        if e.trouble != trouble or not (subject is None or (e.subject == subject and _covers(targets, e)))
    )
    return summary if len(left) == len(summary.errors) else msgspec.structs.replace(summary, errors=left)


def _covers(targets: tuple[str, ...], error: Error) -> bool:
    """Say whether a run of `targets` ran what had failed: everything, the same, or all tests that failed by name."""
    if not targets or targets == error.targets:
        return True
    return bool(error.names) and all(
        any(name.startswith(target) or target in name for target in targets) for name in error.names
    )


def _without_one_offs(summary: Summary) -> Summary:
    left = tuple(
        e
        for e in summary.errors
        if e.trouble not in ("command", "edit") or summary.messages - e.count <= ONE_OFF_MESSAGES
    )
    return summary if len(left) == len(summary.errors) else msgspec.structs.replace(summary, errors=left)


def _comes_about(summary: Summary, message: Message, text: str, key: str) -> Summary:
    others = [o for o in summary.outcomes if o.text != text and not (key and o.key == key)]
    outcomes = (*others, Outcome(cut(text, LINE_MAX), message.seq, message.time_us, message.source, key))
    gone = max(0, len(outcomes) - OUTCOMES_MAX)
    more = (
        msgspec.structs.replace(summary.more, outcomes=summary.more.outcomes + gone) if gone else summary.more
    )
    return msgspec.structs.replace(summary, outcomes=outcomes[gone:], more=more)


def _tells_success(sentence: Sentence) -> bool:
    if sentence.asks or not wording.DONE.search(sentence) or wording.NOT_DONE.search(sentence):
        return False
    return len(sentence) >= TELLING_HAN if is_chinese(sentence) else len(sentence.split()) >= TELLING_WORDS


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:LINE_MAX]
