"""Pure: the decisions in one message, by its wording and by what it answers.

A decision is what binds later work: what a user lays down (what to build and how, what must not happen), a choice
between ways that either side announces, or the user's yes to a proposal. The next step ("let me run the tests"), a
possibility, a report and a quotation are none.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from herdr.context.sessions import wording
from herdr.context.sessions.message import Message
from herdr.context.sessions.prose import Sentence, is_chinese, words

TEXT_MAX = 300  # characters of a decision; two lines on a screen
REASON_MAX = 240
ABOUT_MAX = 200
A_MESSAGE_MAX = 12  # decisions that are taken from one message; a pasted specification is no session
ASKED_MAX = 6  # proposals and questions of the last answer that are remembered until the user's reply

REPLY_SENTENCES = 3  # so far into a user's message a short sentence may answer what was asked
REPLY_WORDS = 7  # a longer sentence answers nothing by being short
REPLY_HAN = 14  # the same in Chinese characters
REASON_AFTER = 12  # characters (6 in Chinese) that stand before a reason, or the decision would be nothing


class Found(msgspec.Struct, frozen=True, gc=False):
    """A decision as it stands in one message."""

    text: str
    reason: str = ""
    about: str = ""
    """The question or proposal that a short answer belongs to."""


def decisions_in(
    message: Message, said: Sequence[Sentence], asked: Sequence[str], *, edits: bool
) -> list[Found]:
    """Return the decisions of a message that says `said`, after the other side has asked or proposed `asked`.

    `edits`: the message calls a tool that changes files, so that what it says is being done.
    """
    if message.role == "user":
        found = list(_of_user(said, asked))
    elif message.role == "assistant":
        found = [_parted(s) for s in said if _is_own(s, edits)]
    else:
        found = []
    return found[:A_MESSAGE_MAX]


def proposals_in(said: Sequence[Sentence]) -> tuple[str, ...]:
    """Return what an assistant's message lays before the user, in order."""
    found = [s[:ABOUT_MAX] for s in said if s.asks or wording.PROPOSED.search(s)]
    return tuple(found[-ASKED_MAX:])


def is_request(sentence: Sentence) -> bool:
    """Say whether a question only asks politely for something to be done."""
    return wording.ASKED_TO.search(sentence) is not None


def _of_user(said: Sequence[Sentence], asked: Sequence[str]) -> Iterator[Found]:
    taken = False
    for place, sentence in enumerate(said):
        if sentence.asks and not is_request(sentence):
            continue
        if _lays_down(sentence):
            found = _parted(sentence)
            short = place < REPLY_SENTENCES and _is_short(sentence)
            yield _with_reason(found, said, place, _about(sentence, asked) if short else "")
            taken = True
        elif place < REPLY_SENTENCES and asked and _answers(sentence, asked):
            more = any(_lays_down(other) for other in said[place + 1 :] if not other.asks)
            if not (more and wording.NO.search(sentence)) and not taken:
                yield _with_reason(Found(_cut(sentence, TEXT_MAX)), said, place, _about(sentence, asked))


def _lays_down(sentence: Sentence) -> bool:
    bare = wording.ASIDE.sub(" ", sentence.rstrip(".!。！ "))
    if not wording.USER_RULE.search(bare):
        return False
    return not wording.USER_STEP.search(bare) or wording.STRONG_RULE.search(bare) is not None


def _answers(sentence: Sentence, asked: Sequence[str]) -> bool:
    """Say whether a short sentence chooses among what was asked; a fact that was asked for is no decision."""
    if not _is_short(sentence) or wording.DEFERRED.search(sentence):
        return False
    choices = [line for line in asked if wording.PROPOSED.search(line)]
    if not choices:
        return False
    if wording.YES.search(sentence) or wording.NO.search(sentence) or wording.PICK.search(sentence):
        return True
    return any(words(sentence) & words(line) for line in choices)


def _is_short(sentence: Sentence) -> bool:
    if is_chinese(sentence):
        return len(sentence) <= REPLY_HAN
    return len(sentence.split()) <= REPLY_WORDS


def _about(answer: str, asked: Sequence[str]) -> str:
    """Return the question or proposal that an answer fits best; of equals the last one that says something."""
    mine = words(answer)
    choices = [line for line in asked if wording.PROPOSED.search(line)] or list(asked)
    telling = [line for line in choices if not wording.VAGUE_ASK.search(line)] or choices
    ranked = sorted(enumerate(telling), key=lambda at: (len(mine & words(at[1])), at[0]))
    return ranked[-1][1] if ranked else ""


def _with_reason(found: Found, said: Sequence[Sentence], place: int, about: str) -> Found:
    """Add what the decision answers, and the sentence after it if that gives the reason."""
    reason = found.reason
    after = said[place + 1] if place + 1 < len(said) else None
    if not reason and after is not None and not after.asks and not _lays_down(after):
        begins = wording.REASON.match(f", {after.lower()}") or wording.REASON.match(after)
        if begins or (_is_short(found_text := Sentence(found.text)) and len(found_text.split()) <= 4):
            reason = _cut(after, REASON_MAX)
    return msgspec.structs.replace(found, reason=reason, about="" if about in found.text else about)


def _is_own(sentence: Sentence, edits: bool) -> bool:
    if sentence.asks:
        return False
    if wording.OWN_CHOICE.search(sentence) and not wording.HYPOTHETICAL.search(sentence):
        return True
    bare = wording.ASIDE.sub(" ", sentence)
    if wording.HYPOTHETICAL.search(bare):
        return False
    if wording.OWN_DESIGN.search(bare):
        return True
    commits = wording.OWN_COMMITMENT.search(bare) is not None or edits
    return commits and wording.OWN_REASON.search(bare) is not None


def _parted(sentence: Sentence) -> Found:
    """Part a sentence into what was decided and why."""
    least = REASON_AFTER // 2 if is_chinese(sentence) else REASON_AFTER
    for begins in wording.REASON.finditer(sentence):
        if begins.start() >= least:
            reason = re.sub(r"^(?:because|since)\s+|^因为", "", sentence[begins.start() :].lstrip(" ,;:(.，；"))
            return Found(
                _cut(sentence[: begins.start()].rstrip(" ,;:("), TEXT_MAX), _cut(reason.rstrip(".。"), REASON_MAX)
            )
    return Found(_cut(sentence, TEXT_MAX))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
