"""Pure: whether a file's bytes are source text that people write, and that text as UTF-8."""

import codecs
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

SOURCE_BYTES_MAX = 4 << 20
"""Beyond it a file is data. The largest that people write by hand stay below: TypeScript's checker.ts and LLVM's
X86ISelLowering.cpp have 3 MB. 4 MiB of Python take a second and 160 MB to parse, of dense C++ 4 s and 330 MB."""

BINARY_HEAD = (
    8000  # bytes in which a NUL tells that this is no text; the same as git's rule (xdiff-interface.c)
)
LINE_MAX = 5000  # bytes; if lines above this are most of a file, nobody wrote it
AVERAGE_LINE_MAX = 500  # bytes; source text has 30 to 60, prose with one paragraph a line up to 400
SMALL = 4096  # bytes; in less than that, one long line is no sign of anything
HEADER_LINES = 40  # in which a generator says what it is: licences stand above that, and have up to 30 lines

Reason = Literal["too_large", "binary", "minified", "generated"]


class Skip(NamedTuple):
    """Why a file is not read."""

    reason: Reason


_BOMS = (  # UTF-32's begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_COOKIE = re.compile(rb"^[ \t\f]*(?:#|//|/\*|;|\*).*?coding[:=][ \t]*([-\w.]+)")
"""https://peps.python.org/pep-0263/, which Ruby and Emacs share, behind any comment sign"""

_MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs)$", re.IGNORECASE)
_PROSE = (".md", ".markdown", ".mdx")
_COMMENT = re.compile(r'\s*(?:#|//|/\*|\*|<!--|--|;|"""|\'\'\'|<\?php\s*$|$)')
_BLOCKS = (("/*", "*/"), ("<!--", "-->"), ('"""', '"""'), ("'''", "'''"))
_MARKERS = re.compile(
    r"""^\W*(?:
        @generated\b
      | <auto-?generated\b
      | (?:this|the\ following)\ (?:file|code|module|class|source)\ (?:is|was|has\ been|were)\ +
        (?:@generated | (?:automatically|auto|machine|programmatically)?[- ]?(?:generated|created)\ (?:by|from|with)\b
        | (?:automatically|auto|machine|programmatically)[- ]?generated\b)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_MADE = re.compile(
    r"\b(?:auto-?)?generated\b(?! (?:files|code|output|sources)\b)|\bauto-?gen\b", re.IGNORECASE
)
_HANDS_OFF = re.compile(r"\bdo(?: not|n'?t) (?:edit|modify|change|make (?:direct )?changes)\b", re.IGNORECASE)
_NEAR = 3  # lines between "generated" and "do not edit"


def source_text(path: str, data: bytes) -> bytes | Skip:
    """Return a file's text as UTF-8 with the same lines, or why it is not read.

    An encoding is told by a byte order mark, by being valid UTF-8, by a coding cookie, in this order; anything
    else is read as Windows-1252, in which every line break and ASCII character of other encodings of one to two
    bytes is right at least.
    """
    if len(data) > SOURCE_BYTES_MAX:
        return Skip("too_large")
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "")
    if not encoding and b"\0" in data[:BINARY_HEAD]:
        return Skip("binary")
    source = _as_utf8(data, encoding)
    if _MINIFIED_NAME.search(path) or is_minified(path, source):
        return Skip("minified")
    return Skip("generated") if is_generated(source) else source


def _as_utf8(data: bytes, encoding: str) -> bytes:
    if encoding in ("utf-16", "utf-32"):
        data = data.decode(encoding, errors="replace").encode()
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        data.decode()
    except UnicodeDecodeError:
        data = _decoded(data).encode(errors="replace")
    if b"\r" in data and b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    return data.replace(b"\0", b" ")  # to a grammar it is the end of the file


def _decoded(data: bytes) -> str:
    if (name := _cookie(data)) and name.lower().replace("_", "-") not in ("utf-8", "utf8"):
        try:
            return data.decode(name, errors="replace")
        except (LookupError, ValueError):  # no such encoding, or one that is not for text
            pass
    text = data.decode(errors="replace")
    damaged = text.count("\ufffd")
    foreign = len(text) - len(text.encode("ascii", errors="ignore"))
    return text if foreign > 2 * damaged else data.decode("cp1252", errors="replace")


def _cookie(data: bytes) -> str:
    for line in data[:1024].splitlines()[:2]:
        if found := _COOKIE.match(line):
            return found[1].decode("ascii", errors="replace")
    return ""


def is_minified(path: str, source: bytes) -> bool:
    """Tell whether most of a file stands in lines that nobody writes."""
    if len(source) < SMALL:
        return False
    if source.count(b"\n") * AVERAGE_LINE_MAX < len(source) and not path.lower().endswith(_PROSE):
        return True
    if len(source) < 2 * LINE_MAX and b"\n" in source:
        return False
    return 2 * sum(len(line) for line in source.split(b"\n") if len(line) > LINE_MAX) > len(source)


def is_generated(source: bytes) -> bool:
    """Tell whether the comments at a file's beginning say that a program wrote it, and that it will again.

    https://go.dev/s/generatedcode, `@generated`, C#'s `<auto-generated>`, and the usual sentences. A file that
    only says what it was generated with (a database migration) is read: people go on from there.
    """
    made = hands_off = -HEADER_LINES
    for number, line in enumerate(_header(source)):
        if _MARKERS.search(line):
            return True
        made = number if _MADE.search(line) else made
        hands_off = number if _HANDS_OFF.search(line) else hands_off
        if min(made, hands_off) >= 0 and abs(made - hands_off) <= _NEAR:
            return True
    return False


def _header(source: bytes) -> Iterator[str]:
    """Yield the lines of comments with which a file begins."""
    until = ""
    for raw in source[:BINARY_HEAD].split(b"\n")[:HEADER_LINES]:
        line = raw.decode(errors="replace").rstrip()
        if not until and not _COMMENT.match(line):
            return
        yield line
        until = _still_open(line, until)


def _still_open(line: str, until: str) -> str:
    """Return what ends the comment that a line leaves open; empty when none is open."""
    if until:
        return "" if until in line else until
    text = line.lstrip()
    for start, end in _BLOCKS:
        if text.startswith(start):
            return "" if end in text[len(start) :] else end
    return ""
