"""Blanks macros that stand where C's and C++'s grammar has no place for a word.

`UV_EXTERN size_t uv_total(void);` is two types to a parser that knows no macros, and what follows is lost. Such
words are overwritten with spaces, so every other byte keeps its place. What is a macro is told by its spelling
and its position alone; a wrong guess costs a word of a signature.
"""

import re

_WORD = rb"[A-Za-z_]\w*"
_CAPS = rb"[A-Z_][A-Z0-9_]{2,99}"
_ARGUMENTS = rb"\((?:[^()\n]|\([^()\n]{0,200}\)){0,200}\)"
_REMARK = rb"(?:/\*[^\n]{0,300}+|//[^\n]{0,300}+)?"
_BETWEEN = rb"(?:\s|/\*(?:[^*]|\*(?!/)){0,4000}\*/|//[^\n]{0,300}\n){0,40}"
"""Every repetition that could start at many places has a bound, so that no text takes more than linear time."""

_HEAD = re.compile(
    rb"^[ \t]*((?:%(WORD)b(?:\([^()\n]{0,200}\))?[ \t\n*&]+){2,6})(~?%(WORD)b)(?=[ \t]*\()"
    % {b"WORD": _WORD},
    re.MULTILINE,
)
"""What stands before a function's name, where that is more than one word."""

_PART = re.compile(rb"(%b)(\([^()\n]*\))?" % _WORD)
_ALONE = re.compile(
    rb"^(?:[ \t]*%(CAPS)b|%(CAPS)b%(ARGS)b)(?=[ \t]*%(REMARK)b\n%(BETWEEN)b[A-Za-z_#~])"
    % {b"CAPS": _CAPS, b"ARGS": _ARGUMENTS, b"REMARK": _REMARK, b"BETWEEN": _BETWEEN},
    re.MULTILINE,
)
"""A line of its own before another declaration: `ABSL_NAMESPACE_BEGIN`, `Q_OBJECT`, `UV_HANDLE_FIELDS`."""

_LAST = re.compile(
    rb"(?:;[ \t]*%b\n|\b(?:struct|union|class)\s+\w+\s*\{)\s*(%b)(?=\s*\})" % (_REMARK, _CAPS),
)
"""The same as the last or only line of a body; an enumerator stands behind a comma or a brace of `enum`."""

_BEFORE_TAG = re.compile(
    rb"\b(class|struct|union|enum class|enum)((?:[ \t]+(?:alignas%(ARGS)b|%(CAPS)b(?:%(ARGS)b)?))+)"
    rb"(?=[ \t]+%(WORD)b(?:::\w+)*(?:[ \t]+final)?\s*(?::(?!:)|\{))"
    % {b"ARGS": _ARGUMENTS, b"CAPS": _CAPS, b"WORD": _WORD}
)
"""`class LEVELDB_EXPORT Cache {`."""

_BEHIND = re.compile(
    rb"(?<=[\w)\]>])[ \t\n]+([A-Z0-9_]{0,30}?(?:LOCK|GUARDED_BY|REQUIRE|EXCLUDE|ACQUIRE|RELEASE|ATTR"
    rb"|NOEXCEPT|OVERRIDE|FINAL|UNUSED|NONNULL|NORETURN|PRINTF|FORMAT|DEPRECATED|NOTHROW|LIFETIME|CAPABILITY"
    rb"|MUST_USE)[A-Z0-9_]{0,30}(?:%b)?)(?=\s*(?:[;{=]|(?:const|override|noexcept)\b))" % _ARGUMENTS
)
"""`int total_ GUARDED_BY(mutex_);`: only by words that such macros are made of, for it may be a statement."""

_LONG_DEFINE = re.compile(
    rb"^[ \t]*#[ \t]*define[^\n]*\\\r?\n(?:[^\n]*\\\r?\n)*[^\n]*", re.MULTILINE
)  # fmt: skip
_LONG_CONDITION = re.compile(
    rb"^([ \t]*#[ \t]*(?:el)?if )([^\n]*\\\r?\n(?:[^\n]*\\\r?\n)*[^\n]*)", re.MULTILINE
)
"""A condition of several lines; what it says is not asked."""

_LINKAGE = re.compile(
    rb"(#[ \t]*if[^\n]{0,200}__cplusplus[^\n]{0,200}\n\s*)"
    rb"(extern[ \t]*\"C\"[ \t\n]*\{(?=[^\n]{0,200}\n\s*#[ \t]*(?:endif|else))|\}(?=[ \t]*(?:\n|/|;)))"
)
"""`extern "C" {` and its brace under conditions of their own."""

_QUALIFIERS = frozenset(
    b"static extern inline const volatile register virtual explicit constexpr friend typedef __inline "
    b"__inline__ __forceinline __extension__ mutable consteval thread_local _Thread_local".split()
)
_STATEMENTS = frozenset(
    b"return else case goto new delete throw co_return co_yield co_await using namespace operator".split()
)
_CONVENTIONS = re.compile(rb"WINAPI|CALLBACK|APIENTRY|JNICALL|\w*(?:CALL|CDECL|API)$")
_IS_CAPS = re.compile(_CAPS)


def without_macros(source: bytes) -> bytes:
    """Return the source with the macros blanked that would make its grammar lose its way."""
    source = _BEFORE_TAG.sub(lambda m: m[1] + _blank(m[2]), source)
    source = _LINKAGE.sub(lambda m: m[1] + _blank(m[2]), source)
    source = _LONG_CONDITION.sub(lambda m: m[1] + b"1" + _blank(m[2])[1:], source)
    source = _LONG_DEFINE.sub(_without_comments, source)
    source = _ALONE.sub(lambda m: _blank(m[0]), source)
    source = _LAST.sub(lambda m: m[0][: -len(m[1])] + _blank(m[1]), source)
    source = _BEHIND.sub(lambda m: _blank(m[0]), source)
    return _HEAD.sub(_plain_head, source)


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\s]", b" ", text)


def _without_comments(define: re.Match[bytes]) -> bytes:
    """Blank the comments in a macro's body, which would end a `#define` of several lines."""
    text = bytearray(define[0])
    start = text.find(b"/*")
    while start >= 0 and (end := text.find(b"*/", start + 2)) >= 0:
        text[start : end + 2] = b" " * (end + 2 - start)
        start = text.find(b"/*", end)
    return bytes(text)


def _plain_head(head: re.Match[bytes]) -> bytes:
    """Leave one type and the qualifiers before a function's name."""
    whole, start = head[0], head.start()
    parts = list(_PART.finditer(whole, 0, head.end(1) - start))
    words = [part[1] for part in parts]
    if not any(map(_IS_CAPS.fullmatch, words)) and not any(part[2] for part in parts):
        return whole
    if not _STATEMENTS.isdisjoint(words):
        return whole
    kept = _type_among(parts)
    for place, part in enumerate(parts):
        if place != kept and part[1] not in _QUALIFIERS and (part[2] or _IS_CAPS.fullmatch(part[1])):
            whole = whole[: part.start()] + _blank(part[0]) + whole[part.end() :]
    return whole


def _type_among(parts: list[re.Match[bytes]]) -> int:
    """Return the place of the word that is the type: one that is not all capitals, or else the likeliest."""
    words = [(n, part) for n, part in enumerate(parts) if part[1] not in _QUALIFIERS]
    plain = [n for n, part in words if not part[2] and not _IS_CAPS.fullmatch(part[1])]
    capitals = [n for n, part in words if not part[2] and not _CONVENTIONS.fullmatch(part[1])]
    if plain:
        return plain[-1]
    return capitals[-1] if capitals else words[-1][0] if words else -1
