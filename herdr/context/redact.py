"""Pure: takes secrets out of text before it is stored. Best effort: what looks like none of these stays.

Providers' tokens are known by their prefixes; the shapes are those that the providers and the public rule
sets of secret scanners describe. Everything else needs a name that says what it is (`password=`, `api_key:`)
and a value that no person would choose as an example. Time is linear in the text: prefixes are looked up as
plain strings, and no pattern can run over the same stretch again and again.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

_ROUNDS = 5
"""A secret that went may have stood so close to another that this one was not seen as a word. One round is
the rule, two where something is found; five are for texts made to need more.
"""


class Redacted(NamedTuple):
    """The text without secrets, and how many were taken out."""

    text: str
    secrets: int


class Span(NamedTuple):
    """Where a secret stands in the text, and what it is."""

    start: int
    end: int
    kind: str


def redact(text: str) -> Redacted:
    """Replace each secret by `[redacted: kind]`; a second time changes nothing."""
    total = 0
    for _ in range(_ROUNDS):
        text, found = _once(text)
        total += found
        if not found:
            break
    return Redacted(text, total)


def redact_tree(value: Any) -> tuple[Any, int]:
    """Return a copy of a JSON value with each text redacted, and how many secrets there were.

    A text under a name that says what it is (`{"api_key": "..."}`) is judged as an assignment. Without
    recursion: a value may be nested deeper than calls may be.
    """
    root: dict[Any, Any] = {"": value}
    left: list[tuple[Any, Any, str]] = [(root, "", "")]
    total = 0
    while left:
        holder, key, name = left.pop()
        item = holder[key]
        if isinstance(item, str):
            holder[key], found = _named(name, item)
            total += found
        elif isinstance(item, dict):
            holder[key] = item = dict(item)
            left.extend((item, inner, str(inner)) for inner in item)
        elif isinstance(item, list | tuple):
            holder[key] = item = list(item)
            left.extend((item, place, name) for place in range(len(item)))
    return root[""], total


def _named(name: str, text: str) -> Redacted:
    result = redact(text)
    if not result.secrets and _IS_SECRET_NAME.search(_fold(name)) and _is_random(text) and " " not in text:
        return Redacted("[redacted: secret]", 1)
    return result


def _once(text: str) -> Redacted:
    parts: list[str] = []
    done = found = 0
    for span in _merged(_spans(text)):
        parts += text[done : span.start], f"[redacted: {span.kind}]"
        done = span.end
        found += 1
    return Redacted("".join(parts) + text[done:], found) if found else Redacted(text, 0)


def _spans(text: str) -> Iterator[Span]:
    folded = _fold(text)
    yield from _private_keys(text)
    for kind, prefix, rest in _TOKENS:
        yield from _tokens(text, kind, prefix, rest)
    yield from _urls(text)
    yield from _headers(text, folded)
    yield from _assignments(text, folded)


def _merged(spans: Iterator[Span]) -> Iterator[Span]:
    """Put overlapping ones together; the first rule that found something names it."""
    current: Span | None = None
    for span in sorted(spans, key=lambda one: one.start):
        if current is None or span.start >= current.end:
            if current is not None:
                yield current
            current = span
        else:
            current = current._replace(end=max(current.end, span.end))
    if current is not None:
        yield current


def _fold(text: str) -> str:
    """Return the text in lower case, each character in its place."""
    folded = text.replace("\u0130", "I").lower()  # the one letter whose lower case is two
    return folded if len(folded) == len(text) else text


# --- private keys ---

_MARKER = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=\s\\,.:\"'-]*+")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{20}")
_KEY_LINES = re.compile(r"(?:(?:[\s\"',]|\\[nr])*+[A-Za-z0-9+/=]{20,}+)++")


def _private_keys(text: str) -> Iterator[Span]:
    """A key between its markers; of one that was cut off, the lines that are surely its own."""
    for begin, following in pairwise([*_MARKER.finditer(text), None]):
        if begin is None or begin[1] != "BEGIN":
            continue
        between = begin.end(), len(text) if following is None else following.start()
        if following is not None and following[1] == "END" and _KEY_BODY.fullmatch(text, *between):
            # Without a line of key it is source code that speaks of keys.
            if _KEY_LINE.search(text, *between):
                yield Span(begin.start(), following.end(), "private key")
        elif lines := _KEY_LINES.match(text, *between):
            yield Span(begin.start(), lines.end(), "private key")


# --- providers' tokens ---

_WORD = r"[A-Za-z0-9]"
_WIDE = r"[A-Za-z0-9_-]"


def _row(kind: str, prefix: str, rest: str) -> tuple[str, str, re.Pattern[str]]:
    return kind, prefix, re.compile(re.escape(prefix) + rest)


_TOKENS = (
    *(_row("aws key", prefix, r"[A-Z2-7]{16}(?![A-Za-z0-9])") for prefix in ("AKIA", "ASIA", "ABIA", "ACCA")),
    *(_row("github", f"gh{letter}_", _WORD + r"{36,}+") for letter in "pousr"),
    _row("github", "github_pat_", r"\w{22,}+"),
    *(
        _row("gitlab", f"gl{part}-", _WIDE + r"{20,}+")
        for part in ("pat", "dt", "rt", "cbt", "ptt", "ft", "soat")
    ),
    *(_row("slack", f"xox{letter}-", r"[A-Za-z0-9-]{10,}+") for letter in "abeoprs"),
    _row("slack", "xapp-", r"[0-9]-[A-Za-z0-9-]{10,}+"),
    _row("slack", "https://hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9+/]{24,}+"),
    _row("google", "AIza", _WIDE + r"{35}(?![A-Za-z0-9_-])"),
    _row("google", "ya29.", _WIDE + r"{20,}+"),
    _row("google", "GOCSPX-", _WIDE + r"{20,}+"),
    *(
        _row("stripe", f"{kind}_{mode}_", _WORD + r"{16,}+")
        for kind in ("sk", "rk")
        for mode in ("live", "test")
    ),
    _row("stripe", "whsec_", r"[A-Za-z0-9+/=]{24,}+"),
    _row("anthropic", "sk-ant-", _WIDE + r"{32,}+"),
    *(_row("openai", f"sk-{part}-", _WIDE + r"{20,}+") for part in ("proj", "svcacct", "admin", "None")),
    _row("openai", "sk-", _WORD + r"{32,}+"),
    _row("openrouter", "sk-or-", _WIDE + r"{20,}+"),
    _row("npm", "npm_", _WORD + r"{36,}+"),
    _row("pypi", "pypi-AgE", _WIDE + r"{40,}+"),
    _row("hugging face", "hf_", _WORD + r"{30,}+"),
    _row("groq", "gsk_", _WORD + r"{40,}+"),
    _row("xai", "xai-", _WORD + r"{40,}+"),
    _row("docker", "dckr_pat_", _WIDE + r"{20,}+"),
    _row("digitalocean", "dop_v1_", r"[a-f0-9]{64}(?![A-Za-z0-9])"),
    _row("sendgrid", "SG.", _WIDE + r"{22}\." + _WIDE + r"{43}(?![A-Za-z0-9_-])"),
    _row("vault", "hvs.", _WIDE + r"{24,}+"),
    _row("tailscale", "tskey-", r"[a-z]+-[A-Za-z0-9-]{16,}+"),
    _row("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}(?![A-Za-z0-9])"),
    _row("jwt", "eyJ", _WIDE + r"{10,}+\.eyJ" + _WIDE + r"{10,}+\." + _WIDE + r"{10,}+"),
)
_INSIDE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def _tokens(text: str, kind: str, prefix: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    start = text.find(prefix)
    while start >= 0:
        found = None if start and text[start - 1] in _INSIDE else pattern.match(text, start)
        if found is not None and not _is_example(found[0][len(prefix) :]):
            yield Span(start, found.end(), kind)
        start = text.find(prefix, start + 1 if found is None else found.end())


# --- URLs and headers ---

_URL = re.compile(r"://([^\s/@:\"'<>`\\]{0,64}+):([^\s/@\"'<>`\\]{1,256}+)@")
_PORT = re.compile(r"[0-9]{1,5}")
_AUTHORIZATION = re.compile(r"(bearer|basic|token)[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,}+)")


def _urls(text: str) -> Iterator[Span]:
    for found in _URL.finditer(text):
        user, password = found[1], found[2]
        if (
            password != user
            and not _PORT.fullmatch(password)
            and not _is_reference(password)
            and not _is_example(password)
        ):
            yield Span(*found.span(2), "password")


def _headers(text: str, folded: str) -> Iterator[Span]:
    for found in _AUTHORIZATION.finditer(folded):
        start, end = found.span(2)
        named = "authorization" in folded[max(0, found.start() - 24) : found.start()]
        value = text[start:end]
        if found[1] == "basic":
            if named and _is_user_and_password(value):
                yield Span(start, end, "basic")
        elif (named or found[1] == "bearer") and _is_random(value):
            yield Span(start, end, "bearer")


def _is_user_and_password(value: str) -> bool:
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(colon and user.isprintable() and password.isprintable()) and not _is_example(password)


# --- assignments ---

_NAME = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?"
    r"|(?:api|access|account|auth|encryption|private|secret|signing)[_-]?key)"
)
# `: str =`, `:=`, `=>`, `=`, `:`; not `==`
_SIGN = r"(?::[ \t]{0,4}+[a-z_][a-z0-9_.\[\]|? ]{0,40}=(?!=)|:=|=>|=(?!=)|:)"
_ASSIGNMENT = re.compile(
    _NAME + r"([a-z0-9_-]{0,32}+)\\{0,3}+[\"'`]?\]?[ \t]{0,8}+" + _SIGN + r"[ \t]{0,8}+"
    r"(?:(\\{0,3}+[\"'`])([^\s\"'`\\]{8,512}+)(?=\\{0,3}+[\"'`])|([^\s\"'`,;:=&\\]{8,512}+={0,2}+))"
)
_IS_SECRET_NAME = re.compile(_NAME + r"s?[a-z0-9]{0,2}$")
_NOT_THE_THING = re.compile(
    r"(?:file|path|url|uri|name|id|ids|env|type|count|limit|max|min|ttl|expires|header|length|size|hash|prefix)$"
)


def _assignments(text: str, folded: str) -> Iterator[Span]:
    found = _ASSIGNMENT.search(folded)
    while found is not None:
        group = 3 if found[2] else 4
        start, end = found.span(group)
        value = text[start:end].rstrip(").]}")
        named = _NOT_THE_THING.search(found[1]) is None
        if named and not (group == 4 and _CODE.search(value)) and _is_random(value):
            yield Span(start, start + len(value), "secret")
        # What is no secret may begin with the next name.
        found = _ASSIGNMENT.search(folded, start)


# --- what a value looks like ---

_REFERENCE = re.compile(r"^(?:[$%{<&*!@]|\[redacted|env[.:]|secrets\.|process\.env|os\.environ|vault:)", re.I)
_EXAMPLE = re.compile(
    r"example|change.?me|placeholder|your|redacted|dummy|insert|replace|sample|xxxx|\*\*\*|\.\.\.|0000|1234567"
    r"|^(?:pass(?:w(?:or)?d)?|pwd|secret|token|test|user|admin|root|postgres|guest|foo|bar|key|none|null|p|pw|x)[0-9]{0,3}$",
    re.I,
)
_CODE = re.compile(r"[()\[\]{}<>$|]|^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+$|://|^[./~]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LOOKS_WRITTEN = re.compile(r"[a-z]{4,}|[A-Z]{4,}|[A-Z][a-z]{3,}")
_PUNCTUATION = frozenset("_-./:")


def _is_reference(value: str) -> bool:
    """Tell whether a value only says where the secret is."""
    return _REFERENCE.match(value) is not None


def _is_example(value: str) -> bool:
    return _EXAMPLE.search(value) is not None


def _is_random(value: str) -> bool:
    """Tell whether a value was made by a machine or is a careful password: mixed kinds, hardly any words."""
    if len(value) < 8 or _is_reference(value) or _is_example(value) or _DATE.match(value):
        return False
    kinds = {_kind_of(letter) for letter in value} - {""}
    written = sum(len(word) for word in _LOOKS_WRITTEN.findall(value))
    if "digit" not in kinds or len(set(value)) < 6 or written > 0.4 * len(value):
        return False
    return len(kinds) >= (2 if len(value) >= 16 else 3)


def _kind_of(letter: str) -> str:
    if letter.isdigit():
        return "digit"
    if letter.isalpha():
        return "lower" if letter.islower() else "upper"
    return "" if letter in _PUNCTUATION else "other"


PIECE = 64 * 1024
"""Characters that are searched in one go: some 5 ms."""

KEY_BLOCK_MAX = 16 * 1024  # characters of a private key with its markers


def pieces_of(text: str) -> Iterator[str]:
    """Cut a long text at ends of lines, outside of private keys; redacting the pieces redacts the text.

    A secret on a line of more than PIECE characters may be cut in two and missed.
    """
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
            begin = text.rfind("-----BEGIN ", start, end)
            if begin > start and "-----END " not in text[begin:end]:
                end = begin if begin - start > KEY_BLOCK_MAX else min(len(text), end + KEY_BLOCK_MAX)
        yield text[start:end]
        start = end
