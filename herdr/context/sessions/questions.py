"""Pure: questions that stay open until the other side answers them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from herdr.context.sessions import wording
from herdr.context.sessions.decisions import is_request
from herdr.context.sessions.message import Message
from herdr.context.sessions.prose import Sentence, cut, is_chinese, words
from herdr.context.sessions.state import Question

QUESTION_MAX = 300  # characters
LEAST_WORDS = 3  # fewer are "really?" and "what?", which say nothing alone
LEAST_HAN = 4
ANSWER_MIN = 60  # characters of an assistant's answer that names nothing of the question
ANSWER_MIN_HAN = 25  # the same in Chinese characters
SHORT_REPLY_WORDS = 12  # a user's reply so short is about what was just asked
SHORT_REPLY_HAN = 24


class _Statement(NamedTuple):
    """What a reply says beside its own questions; read once for all questions that it may answer."""

    text: Sentence
    words: set[str]
    deferred: bool


def asked_in(message: Message, said: Sequence[Sentence]) -> Iterator[Question]:
    """Yield the questions of a message to the other side; requests and asides of a step are none."""
    if message.role == "assistant" and message.calls:
        return
    for sentence in said:
        if sentence.asks and not is_request(sentence) and _says_something(sentence):
            yield Question(
                cut(sentence, QUESTION_MAX), message.seq, message.time_us, message.source, message.role
            )


def still_open(
    questions: Sequence[Question], message: Message, said: Sequence[Sentence], *, user_seq: int
) -> tuple[Question, ...]:
    """Return the questions that are open after a message; `user_seq`: the user's message before it."""
    if not questions or not said or message.role not in ("user", "assistant"):
        return tuple(questions)
    asked = sum(q.by == "assistant" and q.seq > user_seq for q in questions)
    statements = [_Statement(s, words(s), bool(wording.DEFERRED.search(s))) for s in said if not s.asks]
    return tuple(q for q in questions if not _is_over(q, message, said, statements, user_seq, asked))


def _is_over(
    question: Question,
    message: Message,
    said: Sequence[Sentence],
    statements: Sequence[_Statement],
    user_seq: int,
    asked: int,
) -> bool:
    if question.by == message.role:
        return False
    if message.role == "user" and wording.OFFER.search(question.text):
        return True  # an offer that is not taken up
    about = words(question.text)
    shared = max((len(s.words & about) for s in statements if not s.deferred), default=0)
    deferred = any(s.deferred and (place == 0 or s.words & about) for place, s in enumerate(statements))
    if message.role == "assistant":
        return not message.calls and not deferred and _is_answer([s.text for s in statements], shared > 0)
    if (
        question.seq <= user_seq or deferred
    ):  # asked some time ago, or put off: only an answer that names it counts
        return shared >= 2 and 2 * shared >= len(about)
    if (
        shared
        or (_is_short(said) and len(statements) == len(said))
        or wording.VAGUE_ASK.search(question.text)
    ):
        return bool(statements)
    return len(statements) >= asked and not said[0].asks  # a sentence for each question


def _is_answer(said: Sequence[Sentence], answers: bool) -> bool:
    """Say whether an assistant's statements answer anything: no lead-in, and long enough or about what was asked."""
    spoken = [
        sentence for sentence in said if not wording.LEAD_IN.search(sentence) or len(sentence) > ANSWER_MIN
    ]
    enough = ANSWER_MIN_HAN if any(map(is_chinese, spoken)) else ANSWER_MIN
    return bool(spoken) and (answers or sum(map(len, spoken)) >= enough)


def _is_short(said: Sequence[Sentence]) -> bool:
    text = " ".join(said)
    return len(text) <= SHORT_REPLY_HAN if is_chinese(text) else len(text.split()) <= SHORT_REPLY_WORDS


def _says_something(sentence: Sentence) -> bool:
    return len(sentence) >= LEAST_HAN if is_chinese(sentence) else len(sentence.split()) >= LEAST_WORDS
