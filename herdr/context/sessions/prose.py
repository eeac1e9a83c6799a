# ruff: noqa: RUF001 - the marks and words of Chinese
"""Pure: what somebody said in plain words: sentences without code, quotations, tables and the notes of clients."""

import re
from collections.abc import Iterator
from typing import Self

PROSE_MAX = 24_000  # characters of one message that are read as prose, from its two ends; an essay has less
SENTENCES_MAX = 300  # of one message; what comes after is not looked at
SENTENCE_MAX = 600  # characters; what is longer is cut: no sentence, but pasted text

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
# Notes that clients put beside the user's words: `<system-reminder>…</system-reminder>`, `<command-name>…`.
_NOTE = re.compile(r"<([a-z]+[-_][a-z_-]{1,40})>")
_NUMBER = re.compile(r"\d{1,2}\.")
_LIST_MARK = re.compile(r"^(?:[-*•+]|\(?\d{1,2}[.)、]|\(?[a-z]\))\s+", re.I)
_EMPHASIS = re.compile(r"\*\*|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)")
_SPACE = re.compile(r"\s+")
# A stop ends a sentence if a blank follows; `2.4.0`, `e.g. this` and `i.e. that` have none or are none.
_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)[\"')\]]*\s+|(?<=[。！？；])|;\s+"
)
# Lines that were pasted: of a diff, of code, of a log, of a terminal.
_PASTED = re.compile(
    r"^(?:https?://\S+$|\[[^\]]+\]$|\+|@@|-(?!-?[a-z])\S|//|/\*|\$ |>>>|[\])}]|\[\d|[~./]\S*/\S*$"
    r"|\d+(?:[\t|→]|:\d)|\W?\"[\w-]+\"\s*:"
    r"|[\w.]+\(.*\)\s*[;{:]?$|import (?:\S+$|\{|.* from ['\"])|from \S+ import "
    r"|(?:async )?(?:def|func|function) \w*\("
    r"|(?:const|let|var) \w+ *(?:[:=]|\w+ //)|return (?:\S+[;({]|(?:nil|null|None)$)|class \w+[:({]"
    r"|[\u2139\u2600-\u27bf\U0001f300-\U0001faff]|\d{4}-\d\d-\d\d[ T]\d"
    r"|(?:both )?(?:modified|new file|deleted|renamed): |\(use \"git )"
    r"|(?:[;{\\]|=>|\):)$|:=|^\W*$"
)
_ASKS = re.compile(
    r"^(?:and |so |but |or )?(?:(?:what|why|how|where|who)(?:'s| is| are| do| does| did| would| can"
    r"| could| should"
    r"| about)\b|(?:is|are|does|did) (?!not\b)\w+ )|为什么|怎么(?:办|样|做|回事)|是不是|有没有|要不要"
    r"|(?:吗|呢)$"
    r"|是[^，]{1,12}吧$|[^，]可能吗",
    re.I,
)
_CJK = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[a-z0-9_](?:[a-z0-9_.+-]*[a-z0-9_+])?|[\u3400-\u9fff]+")


class Sentence(str):
    """One sentence of a message, its white space made plain."""

    __slots__ = ("listed",)

    listed: bool
    """It begins an item of a list."""

    def __new__(cls, text: str, *, listed: bool = False) -> Self:
        """Make one of plain text."""
        self = super().__new__(cls, text)
        self.listed = listed
        return self

    @property
    def asks(self) -> bool:
        """Whether it is a question, by its mark or, as people write in haste, by its words alone."""
        return self.rstrip("\"')]）”* ").endswith(("?", "？")) or _ASKS.search(self) is not None


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a message in order."""
    return list(_sentences(_cleaned(text)))[:SENTENCES_MAX]


def plain(text: str) -> str:
    """Return a text on one line, without marks of emphasis."""
    return _SPACE.sub(" ", _EMPHASIS.sub("", text)).strip()


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, which ends in `…` where more was; never a `Sentence`."""
    return str(text) if len(text) <= most else f"{text[: most - 1]}…"


def is_chinese(text: str) -> bool:
    """Say whether a text has any Chinese character."""
    return _CJK.search(text) is not None


def words(text: str) -> set[str]:
    """Return what a text is about: its words that mean something, and pairs of Chinese characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.lower()):
        if _CJK.match(word):
            found.update(pair for i in range(len(word) - 1) if not _IDLE_HAN & set(pair := word[i : i + 2]))
        elif word not in _IDLE and (len(word) > 2 or word.isdigit()):
            found.add(_stem(word))
    return found


def _cleaned(text: str) -> str:
    if len(text) > PROSE_MAX:
        text = f"{text[: PROSE_MAX * 2 // 3]}\n{text[-PROSE_MAX // 3 :]}"
    return _FENCE.sub("\n", _without_notes(text))


def _without_notes(text: str) -> str:
    """Take out what stands between a tag with a dash and its end; a tag without an end is a word: `<session-uri>`."""
    parts: list[str] = []
    at = 0
    endless: set[str] = set()  # names that have no end from here on, so that each is looked for once
    while found := _NOTE.search(text, at):
        end = -1 if found[1] in endless else text.find(f"</{found[1]}>", found.end())
        if end < 0:
            endless.add(found[1])
            parts.append(text[at : found.end()])
            at = found.end()
        else:
            parts.append(f"{text[at : found.start()]}\n")
            at = end + len(found[1]) + 3
    return "".join([*parts, text[at:]])


def _sentences(text: str) -> Iterator[Sentence]:
    for raw in text.splitlines():
        line = raw.strip()
        indented = raw.startswith(("\t", "    ")) and not _LIST_MARK.match(line)
        if not line or indented or line.startswith(("|", ">", "#", "---")) or _PASTED.search(line):
            continue
        bare = _LIST_MARK.sub("", line)
        for place, piece in enumerate(_END.split(bare)):
            said = plain(piece)[:SENTENCE_MAX].rstrip("；;")
            if said and not _NUMBER.fullmatch(said):
                yield Sentence(said, listed=place == 0 and bare != line)


def _stem(word: str) -> str:
    """Take the commonest endings off, so that `retries` and `retry` are one."""
    for ending, instead in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and word.isalpha():
            return word[: -len(ending)] + instead
    return word


_IDLE = frozenset(
    """the and for with that this then than from into onto not but are was were will would should could can may might
    must have has had does did done doing its it's our your you they them their there here what which who whom why how
    when where all any each every some more most much many very just only also too now one two use used using let lets
    want need make makes made keep get gets got put set yes okay please i'd i'll i'm we'll we'd we're don't doesn't
    isn't won't can't about after before again because since instead rather over under out off per via same other
    like good fine thing things way still yet already first last next never always don doesn isn won didn let
    hmm hmmm mmm uhh meanwhile anyway
    """.split()  # noqa: SIM905 - a table of words reads better as a text
)
_IDLE_HAN = frozenset(
    "的了是在不我你他它们这那就也都要和与或把被让会能可以个一先再还没有吧吗呢啊么为所因此但对到用来去上下里"
)
