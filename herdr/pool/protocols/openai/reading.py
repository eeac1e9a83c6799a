"""Pure: JSON of clients into typed structs; whatever is wrong is said with the path of the field."""

import re
from typing import TypeVar

import msgspec

from herdr.errors import FieldError, InvalidInput

T = TypeVar("T")

SHOWN_MAX = 60  # characters; the longest known names of types are half of that

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])

_PLACE = re.compile(r" - at `\$(.*)`$")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")


def refuse(field: str, message: str) -> InvalidInput:
    """Return the error that says what is wrong with one field of a request."""
    return InvalidInput(f"{field}: {message}" if field else message, errors=[FieldError(field, message)])


def missing_field(field: str) -> InvalidInput:
    """Return the error for a field that has to be there."""
    return refuse(field, "Required, but missing.")


def shown(text: str) -> str:
    """Return a client's word for an error message, which must not grow with it."""
    return repr(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…")


def decode_body(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decode a whole body; raises InvalidInput.

    The encoding is checked first: in what it skips or keeps raw, `msgspec` checks everything but that.
    """
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise refuse("", f"The body is not UTF-8 (byte {error.start}); send JSON in UTF-8.") from None
    return decode(decoder, body)


def decode(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw, at: str = "") -> T:
    """Decode the value that stands at the path `at` of a body; raises InvalidInput."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise _refuse_shape(str(error), at) from None
    except msgspec.DecodeError as error:
        raise refuse(at, f"The body is not valid JSON: {error}.") from None
    except RecursionError:
        raise refuse(at, "The body is nested too deeply; flatten it.") from None


def _refuse_shape(said: str, at: str) -> InvalidInput:
    place = _PLACE.search(said)
    if place is not None:
        at = f"{at}{place[1]}"
        said = said[: place.start()]
    lacking = _MISSING.match(said)
    if lacking is not None:
        return missing_field(f"{at}.{lacking[1]}".lstrip("."))
    said = said.replace("`", "")
    return refuse(at.lstrip("."), f"{said}.") if at else refuse("", f"The body is of the wrong form: {said}.")


def given(raw: msgspec.Raw) -> bool:
    """Tell whether a field was there and not null."""
    return bytes(raw) not in (b"", b"null")


def object_text(raw: msgspec.Raw, at: str) -> str:
    """Return the JSON text of an object exactly as the client wrote it; raises InvalidInput for another kind."""
    data = bytes(raw)
    if not data.startswith(b"{"):
        raise refuse(at, "Expected a JSON object.")
    return data.decode()


def is_object(text: str) -> bool:
    """Tell whether a text is a JSON object."""
    try:
        _object.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
