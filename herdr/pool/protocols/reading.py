"""Pure: JSON of clients into typed structs; whatever is wrong is said with the path of the field."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec

from herdr.errors import FieldError, InvalidInput

T = TypeVar("T")

SHOWN_MAX = 60  # characters; the longest known names of types are half of that
NO_ADVICE: Mapping[str, str] = MappingProxyType({})

_PLACE = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_LAST_NAME = re.compile(r"([A-Za-z_]+)((?:\[\d+\])*)$")
_JSON_TYPES: Mapping[type, str] = MappingProxyType(
    {dict: "object", list: "array", bool: "bool", int: "int", float: "float", type(None): "null", str: "str"}
)


class InvalidJson(InvalidInput):
    """The body is no JSON at all."""


def refuse(field: str, message: str) -> InvalidInput:
    """Return the error that says what is wrong with one field of a request."""
    return InvalidInput(f"{field}: {message}" if field else message, errors=[FieldError(field, message)])


def missing_field(field: str) -> InvalidInput:
    """Return the error for a field that has to be there."""
    return refuse(field, "Required, but missing.")


def shown(text: str) -> str:
    """Return a client's word for an error message, which must not grow with it."""
    return repr(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…")


def decode_body(decoder: msgspec.json.Decoder[T], body: bytes, advice: Mapping[str, str] = NO_ADVICE) -> T:
    """Decode a whole body; raises InvalidInput, of the kind InvalidJson for what is no JSON.

    `advice` says what a field should hold, by the last name of its path; with `[]`, what a list of that name.
    The encoding is checked first: in what it skips or keeps raw, `msgspec` checks everything but that.
    """
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise refuse("", f"The body is not UTF-8 (byte {error.start}); send JSON in UTF-8.") from None
    return decode(decoder, body, advice=advice)


def decode(
    decoder: msgspec.json.Decoder[T],
    data: bytes | msgspec.Raw,
    at: str = "",
    advice: Mapping[str, str] = NO_ADVICE,
) -> T:
    """Decode the value that stands at the path `at` of a body; raises InvalidInput."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise _refuse_shape(str(error), at, advice) from None
    except msgspec.DecodeError as error:
        message = f"The body is not valid JSON: {error}; send one JSON object."
        raise InvalidJson(message, errors=[FieldError(at, message)]) from None
    except RecursionError:
        raise refuse(at, "The body is nested too deeply; flatten it.") from None


def _refuse_shape(said: str, at: str, advice: Mapping[str, str]) -> InvalidInput:
    place = _PLACE.search(said)
    if place is not None:
        at = f"{at}{place[1]}"
        said = said[: place.start()]
    lacking = _MISSING.match(said)
    if lacking is not None:
        at, said = f"{at}.{lacking[1]}", "Required, but missing"
    at, said = at.lstrip("."), said.replace("`", "")
    if not at:
        return refuse("", f"The body is of the wrong form: {said}; send a JSON object.")
    wanted = _wanted(at, advice)
    return refuse(at, f"{said}; send {wanted}." if wanted else f"{said}.")


def _wanted(at: str, advice: Mapping[str, str]) -> str:
    name = _LAST_NAME.search(at)
    if name is None:
        return ""
    return advice.get(f"{name[1]}[]" if name[2] else name[1], "")


def one_of(word: str, known: Mapping[str, T], at: str, what: str) -> T:
    """Return what a word stands for; raises InvalidInput with those that are known. `what` they are: a role, …"""
    if word in known:
        return known[word]
    raise refuse(at, f"Unknown {what} {shown(word)}; it must be one of {', '.join(known)}.")


def given(raw: msgspec.Raw) -> bool:
    """Tell whether a field was there and not null."""
    return bytes(raw) not in (b"", b"null")


def object_text(raw: msgspec.Raw, at: str) -> str:
    """Return the JSON text of an object exactly as the client wrote it; raises InvalidInput for another kind."""
    data = bytes(raw)
    if not data.startswith(b"{"):
        raise refuse(at, "Expected a JSON object.")
    return data.decode()


def text_at(value: object, at: str) -> str:
    """Return a string that must be one; raises InvalidInput."""
    if isinstance(value, str):
        return value
    if value is msgspec.UNSET:
        raise missing_field(at)
    raise refuse(at, f"Expected a string, got {_JSON_TYPES.get(type(value), 'another value')}.")


def name_at(value: object, at: str) -> str:
    """Return a string that must be one and not empty; raises InvalidInput."""
    if text := text_at(value, at):
        return text
    raise refuse(at, "It is empty; send a string of at least one character.")
