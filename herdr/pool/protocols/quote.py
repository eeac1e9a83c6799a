"""Pure: what a backend said, fit to be shown: one short line without keys."""

import re

QUOTE_MAX = 400  # characters: room for llama.cpp's complaint about a tool schema, not for a page of HTML
_KEYS = re.compile(r"(?i)\b(bearer\s+|(?:sk|pk|key|token|gsk|hf|xai)[-_])[a-z0-9_\-.]{6,}")
_HTML = re.compile(r"(?is)^\s*<(!doctype|html|head|body|\?xml)\b")


def quoted(said: bytes | str, limit: int = QUOTE_MAX) -> str:
    """Return text of a backend as one line of at most `limit` characters, anything like a key hidden.

    An HTML page is only named, for it says nothing to people; nothing at all becomes `(nothing)`.
    """
    text = said[: limit * 8].decode(errors="replace") if isinstance(said, bytes) else said[: limit * 8]
    if _HTML.match(text):
        return "(an HTML page)"
    text = "".join([char if char.isprintable() else " " for char in text])
    text = _KEYS.sub(r"\1***", " ".join(text.split()))
    if not text:
        return "(nothing)"
    return text if len(text) <= limit else text[: limit - 1] + "…"
