# ruff: noqa: RUF001 - the marks of Chinese
"""Pure: the decisions in one message, by its wording and by what it answers.

A decision is what binds later work: what a user lays down (what to build and how, what must not happen), a choice
between ways that either side announces, or the user's yes to a proposal. The next step ("let me run the tests"), a
possibility, a report and a quotation are none.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from herdr.context.sessions import wording
from herdr.context.sessions.message import Message
from herdr.context.sessions.prose import Sentence, cut, is_chinese, plain, words

TEXT_MAX = 300  # characters of a decision; two lines on a screen
REASON_MAX = 240
ABOUT_MAX = 200
A_MESSAGE_MAX = 12  # decisions that are taken from one message; a pasted specification is no session
LAST_SENTENCES = 3  # of a message, which a "do it" may mean though they propose nothing
ASKED_MAX = 6  # proposals and questions of the last answer that are remembered until the user's reply

OPTIONS_MAX = 8  # ways that are listed at once
OPTION_MAX = 160  # characters of each

REPLY_SENTENCES = 12  # so far into a user's message a short sentence may answer what was asked
REPLY_WORDS = 7  # a longer answer answers nothing by being short
ITEM_WORDS, ITEM_HAN = 3, 5  # words or Chinese characters of an item in a list of requests
NAME_WORDS = 3  # of the name of a way
REPLY_HAN = 14  # the same in Chinese characters
REPLY_WORDS_MOST, REPLY_HAN_MOST = 25, 40  # a longer sentence is a story
OWN_WORDS = 2  # words that mean something; with fewer an assistant has named no choice
REASON_AFTER = 8  # characters (4 in Chinese) that stand before a reason, or the decision would be nothing

_LISTING = re.compile(
    r"\b(?:options?|ways?|choices|alternatives?|either|variants)\b|方案|办法|做法|选择|方式|[两二三四]种",
    re.I,
)
_OPTION = re.compile(
    r"^(?:[-*•]\s+)?(?:\*\*)?(?:option )?\(?([A-D]|[1-9])(?:\*\*)?[.):：、](?:\*\*)?\s*(\S.*)$", re.I
)
_SAYS = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|will|would|can|could|did|does|do|got|get|i|we|you|they|he"
    r"|she|it|thanks?|please)\b"
    r"|'(?:s|re|ll|ve|m|d)\b|^\w+ing\b",
    re.I,
)
_CLAUSE = re.compile(r"[,;:(，：；（] ?")


class Found(msgspec.Struct, frozen=True, gc=False):
    """A decision as it stands in one message."""

    text: str
    reason: str = ""
    about: str = ""
    """The question or proposal that a short answer belongs to."""
    options: tuple[str, ...] = ()
    """The ways that it chose among."""
    weighed: tuple[str, ...] = ()
    """All that had been laid before the user."""


class Before(msgspec.Struct, frozen=True, gc=False):
    """What the assistant laid before the user, to which a message may reply."""

    asked: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def decisions_in(message: Message, said: Sequence[Sentence], before: Before, *, edits: bool) -> list[Found]:
    """Return the decisions of a message that says `said`.

    `edits`: the message calls a tool that changes files, so that what it says is being done.
    """
    if message.role == "user":
        found = [
            msgspec.structs.replace(_choosing(one, before.options), weighed=before.asked)
            for one in islice(_of_user(said, before.asked), A_MESSAGE_MAX)
        ]
    elif message.role == "assistant":
        labelled = [s for s in said if wording.OWN_LABEL.search(s)]
        found = [_parted(s) for s in said if _is_own(s, edits) or labelled == [s]]
    else:
        found = []
    return found[:A_MESSAGE_MAX]


def proposals_in(said: Sequence[Sentence]) -> tuple[str, ...]:
    """Return what an assistant's message lays before the user, in order."""
    proposed = [cut(s, ABOUT_MAX) for s in said if s.asks or wording.PROPOSED.search(s)]
    last = [cut(s, ABOUT_MAX) for s in said[-LAST_SENTENCES:]]
    return tuple([*(s for s in proposed if s not in last), *last][-ASKED_MAX:])


def options_in(text: str) -> tuple[str, ...]:
    """Return the ways that an assistant's message lists, if it lists several: `B: a second file`."""
    options: list[str] = []
    listing = False
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _OPTION.match(line)
        if found and listing:
            options.append(f"{found[1]}: {plain(found[2])}"[:OPTION_MAX])
        elif len(options) > 1:
            break
        else:
            listing, options = _LISTING.search(line) is not None, []
    return tuple(options[:OPTIONS_MAX]) if len(options) > 1 else ()


def is_request(sentence: Sentence) -> bool:
    """Say whether a question only asks politely for something to be done, or for a nod to it."""
    return wording.ASKED_TO.search(sentence) is not None or wording.NOD.search(sentence) is not None


def _of_user(said: Sequence[Sentence], asked: Sequence[str]) -> Iterator[Found]:
    requested = False  # within a list of requests
    taken = -1  # the place of a sentence that was taken as the reason of the one before
    for place, sentence in enumerate(said):
        requested = (sentence.listed and requested) or wording.REQUESTS.search(sentence) is not None
        if (sentence.asks and not is_request(sentence)) or place == taken:
            continue
        near = place < REPLY_SENTENCES
        asks = sentence.asks and wording.ASKED_TO.search(sentence) is not None
        ruled = (requested and _is_item(sentence)) or asks or _lays_down(sentence)
        if not ruled and not (near and _answers(sentence, asked)) and not _is_explained(sentence):
            continue
        if not ruled and wording.NO.search(sentence) and near and _is_laid_down(said[place + 1 :]):
            continue  # what is wanted instead says it better
        about = _about(sentence, asked) if near and (not ruled or _is_short(sentence)) else ""
        found = _parted(sentence)
        after = said[place + 1] if place + 1 < len(said) else None
        if after is not None and not found.reason and _gives_reason(found, after):
            found, taken = msgspec.structs.replace(found, reason=cut(after, REASON_MAX)), place + 1
        yield msgspec.structs.replace(found, about="" if about in found.text else about)


def _is_laid_down(rest: Sequence[Sentence]) -> bool:
    return any(not other.asks and _lays_down(other) for other in rest)


def _choosing(found: Found, options: tuple[str, ...]) -> Found:
    """Add the option that a decision chooses, by its label or else by its words."""
    if labelled := wording.LABEL.search(found.text):
        label = next(filter(None, labelled.groups())).lower()
        chosen = [option for option in options if option.partition(":")[0].lower() == label]
        about = chosen[0].partition(": ")[2] if chosen else ""  # what else was proposed is not what was meant
        return msgspec.structs.replace(found, about=about, options=options if chosen else ())
    fits = [bool(words(found.text) & words(option)) for option in options]
    return msgspec.structs.replace(found, options=options) if fits.count(True) == 1 else found


def _lays_down(sentence: Sentence) -> bool:
    bare = _bare(sentence.rstrip(".!。！ "))
    if wording.POINTS.search(bare):
        return False
    if not wording.USER_RULE.search(bare) or not (words(sentence) or wording.LABEL.search(sentence)):
        return False
    return not wording.USER_STEP.search(bare) or wording.STRONG_RULE.search(bare) is not None


def _answers(sentence: Sentence, asked: Sequence[str]) -> bool:
    """Say whether a sentence near the start of a reply answers what was asked or proposed.

    Whatever it says is taken for an answer unless it puts the matter off, is a step, or tells what was seen.
    """
    if not asked or sentence.endswith((":", "：")) or wording.DEFERRED.search(sentence):
        return False
    bare = _bare(sentence.rstrip(".!。！ "))
    if wording.DO_IT.search(sentence) or wording.POINTS.search(bare):
        return True
    chosen = (wording.YES, wording.NO, wording.PICK, wording.LABEL)
    if any(table.search(sentence) for table in chosen) and any(map(_is_choice, asked)):
        return _is_short(Sentence(_CLAUSE.split(sentence, maxsplit=1)[0]))
    if wording.USER_STEP.search(bare) or wording.REPORT.search(bare) or not words(sentence):
        return False
    return (
        len(sentence) <= REPLY_HAN_MOST if is_chinese(sentence) else len(sentence.split()) <= REPLY_WORDS_MOST
    )


def _is_choice(line: str) -> bool:
    return line.endswith(("?", "？")) or wording.PROPOSED.search(line) is not None


def _is_explained(sentence: Sentence) -> bool:
    """Say whether a sentence lays something down without a verb and says why: `host from env, we have it there`."""
    found = _parted(sentence)
    head = Sentence(found.text)
    return (
        bool(found.reason)
        and _is_fragment(head)
        and len(words(head)) >= OWN_WORDS
        and not wording.REPORT.search(head)
    )


def _is_short(sentence: Sentence) -> bool:
    if is_chinese(sentence):
        return len(sentence) <= REPLY_HAN
    return len(sentence.split()) <= REPLY_WORDS


def _about(answer: Sentence, asked: Sequence[str]) -> str:
    """Return the question or proposal that an answer fits best; of equals the last, and rather what is proposed.

    Empty if it fits none: only a yes, a no, a choice by its place, or a word to go on may mean what it does not name.
    """
    mine = words(answer)
    choices = [line for line in asked if _is_choice(line)]
    telling = [line for line in choices if not wording.VAGUE_ASK.search(line)] or choices
    if wording.DO_IT.search(answer) or wording.POINTS.search(_bare(answer.rstrip(".!。！ "))):
        telling = telling or list(asked)
    if not telling:
        return ""
    ranked = sorted(
        enumerate(telling), key=lambda at: (len(mine & words(at[1])), not at[1].endswith(("?", "？")), at[0])
    )
    best = ranked[-1][1]
    bare = any(table.search(answer) for table in (wording.YES, wording.NO, wording.PICK, wording.DO_IT))
    return best if bare or mine & words(best) or len(mine) <= NAME_WORDS else ""


def _gives_reason(found: Found, after: Sentence) -> bool:
    """Say whether the sentence after a decision gives its reason, or a detail of it."""
    if after.asks or after.listed or _lays_down(after):
        return False
    begins = wording.REASON.match(f", {after.lower()}") or wording.REASON.match(after)
    if begins or wording.YES.search(found.text):  # beyond a yes comes something else
        return bool(begins)
    return len(found.text.split()) <= NAME_WORDS + 1 or _is_fragment(after)


def _is_item(sentence: Sentence) -> bool:
    """Say whether an item of a list says enough to be a request: more than a name."""
    return sentence.listed and (
        len(sentence) >= ITEM_HAN if is_chinese(sentence) else len(sentence.split()) >= ITEM_WORDS
    )


def _is_fragment(sentence: Sentence) -> bool:
    """Say whether a sentence has no verb that says so: `bytes sent / total per file`, a detail of the one before."""
    return (
        not is_chinese(sentence) and not _SAYS.search(sentence) and len(sentence.split()) <= REPLY_WORDS_MOST
    )


def _is_own(sentence: Sentence, edits: bool) -> bool:
    """Say whether an assistant's sentence announces a choice: by a word of choice, or a commitment and its reason."""
    head = _bare(wording.OWN_HEAD.split(sentence, maxsplit=1)[0])
    if sentence.asks or wording.HYPOTHETICAL.search(head) or len(words(sentence)) < OWN_WORDS:
        return False
    if wording.OWN_CHOICE.search(sentence) or wording.OWN_DESIGN.search(head):
        return True
    bare = _bare(sentence)
    if wording.OWN_COMMITMENT.search(bare):
        return wording.OWN_REASON.search(bare) is not None
    return edits and wording.OWN_CONTRAST.search(bare) is not None


def _bare(text: str) -> str:
    """Return a sentence without what may look like a rule and is none; code stands as one word."""
    return wording.ASIDE.sub(" ", wording.QUOTED.sub("code", text))


def _parted(sentence: Sentence) -> Found:
    """Part a sentence into what was decided and why."""
    least = REASON_AFTER // 2 if is_chinese(sentence) else REASON_AFTER
    for begins in wording.REASON.finditer(sentence):
        if begins.start() >= least:
            reason = re.sub(
                r"^(?:because|since)\s+|^因为", "", sentence[begins.start() :].lstrip(" ,;:(.，；")
            )
            return Found(
                cut(sentence[: begins.start()].rstrip(" ,;:("), TEXT_MAX),
                cut(reason.rstrip(".。"), REASON_MAX),
            )
    return Found(cut(sentence, TEXT_MAX))
