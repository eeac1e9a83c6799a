"""Pure: what is said about a field of a body that is not as it should be."""

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from herdr.errors import FieldError, InvalidInput

SHOWN_MAX = 80  # characters of a client's own text that an error repeats; enough to find it

EXPECTED: Mapping[str, str] = MappingProxyType(
    {
        "": "a JSON object",
        "messages": 'a list of at least one message, as in [{"role": "user", "content": "Hello"}]',
        "role": "user, assistant or system",
        "content": "a string or a list of content blocks, each an object with a type",
        "model": "a string",
        "system": "a string or a list of text blocks",
        "tools": "a list of objects with name, description and input_schema",
        "name": "a string",
        "tool_choice": "an object whose type is auto, any, tool or none",
        "stop_sequences": "a list of strings",
        "temperature": "a number from 0 to 2",
        "top_p": "a number from 0 to 1",
        "top_k": "a whole number, 0 or more",
        "max_tokens": "a whole number of tokens, 0 or more",
        "thinking": "an object whose type is enabled, adaptive or disabled",
        "output_config": 'an object such as {"effort": "medium"}',
        "format": 'an object such as {"type": "json_schema", "schema": {…}}',
        "metadata": 'an object such as {"user_id": "…"}',
        "stream": "true or false",
    }
)
"""What a field, by the last name of its path, should hold."""

_PLACE = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_GOT = re.compile(r", got `(?P<type>\w+)`")
_NAME = re.compile(r"([A-Za-z_]+)(?:\[\d+\])*$")
_IN_LIST = re.compile(r"(?<=\w)\[\d+\]$")


def refuse(path: str, message: str) -> InvalidInput:
    """Return the error for the field at `path`; `message` says what it is and what it should be."""
    detail = f"{path}: {message}" if path else message
    return InvalidInput(detail, errors=[FieldError(path, message)])


def explain(error: Exception) -> InvalidInput:
    """Turn a decoder's complaint about a whole body into ours."""
    if isinstance(error, RecursionError):
        return refuse("", "the body is nested too deeply; send flatter JSON")
    if isinstance(error, UnicodeDecodeError):
        return refuse("", f"the body is not UTF-8 (byte {error.start}); send JSON encoded as UTF-8")
    if not isinstance(error, msgspec.ValidationError):
        return refuse("", f"the body is not valid JSON: {error}; send one JSON object")
    text = str(error)
    place = _PLACE.search(text)
    path, text = (place["path"], text[: place.start()]) if place else ("", text)
    if missing := _MISSING.fullmatch(text):
        path = f"{path}.{missing['name']}".lstrip(".")
    got = _GOT.search(text)
    seen = "it is missing" if missing else f"got {got['type']}" if got else text[:SHOWN_MAX]
    return refuse(path, f"{seen}; send {_expected(path)}")


def _expected(path: str) -> str:
    name = _NAME.search(path)
    wanted = EXPECTED.get(name[1] if name else path, "what the Messages API defines")
    if not _IN_LIST.search(path):
        return wanted
    return "a content block, an object with a type" if name and name[1] in _BLOCKS else f"{wanted} here"


_BLOCKS = frozenset({"content", "system"})


def text_at(value: object, path: str) -> str:
    """Return a string that must be one; raises InvalidInput."""
    if isinstance(value, str):
        return value
    raise refuse(path, f"{_seen(value)}; send a string")


def name_at(value: object, path: str) -> str:
    """Return a string that must be one and not empty; raises InvalidInput."""
    if text := text_at(value, path):
        return text
    raise refuse(path, "it is empty; send a string of at least one character")


def _seen(value: object) -> str:
    if value is msgspec.UNSET:
        return "it is missing"
    return f"got {_JSON_NAMES.get(type(value), 'another value')}"


_JSON_NAMES: Mapping[type, str] = MappingProxyType(
    {dict: "object", list: "array", bool: "bool", int: "int", float: "float", type(None): "null", str: "str"}
)
