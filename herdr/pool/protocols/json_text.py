"""Pure: JSON that stays text, above all the arguments of calls, which nobody may rewrite."""

import msgspec

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_TO_SPACES = bytes.maketrans(b"\r\n", b"  ")
_BREAKS = tuple((char.encode(), b"\\u%04x" % ord(char)) for char in "\x85\u2028\u2029")


def is_object(text: str) -> bool:
    """Tell whether a text is one JSON object."""
    try:
        _fields.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def as_object(text: str) -> str:
    """Return the text of a JSON object as it is; blank text becomes `{}`, any other an object that holds it.

    An answer that was cut off leaves half an object in the history, and some models write broken arguments.
    Templates and APIs refuse the whole conversation for it, and so they would for ever.
    """
    if not text.strip():
        return "{}"
    return text if is_object(text) else _encode({"arguments": text}).decode()


def object_raw(text: str) -> msgspec.Raw | None:
    """Return the text of a JSON object as it is, ready to be encoded; `{}` for blank text, None for any other."""
    if not text.strip():
        return msgspec.Raw(b"{}")
    return msgspec.Raw(text.encode()) if is_object(text) else None


def on_one_line(json: bytes) -> bytes:
    """Return the same JSON without anything that a client's line splitter may take for a line break.

    CR and LF are white space between tokens; strings may hold the others raw, and there they are escaped.
    """
    if b"\n" in json or b"\r" in json:
        json = json.translate(_TO_SPACES)
    if json.isascii():
        return json
    for raw, escaped in _BREAKS:
        json = json.replace(raw, escaped)
    return json
