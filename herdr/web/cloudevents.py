"""Pure: CloudEvents 1.0 as drafts, in the three modes of the HTTP binding (structured, batch, binary).

Attributes become fields of the same name; ours are extension attributes without underscores: `workspace`,
`session`, `task`, `priority`, `tags` (separated by commas), `basedon`, `ifstale`, and `traceparent` for
`trace`. All others, `datacontenttype` and `dataschema` among them, are kept under `ext`.

Payloads that are JSON stay the bytes that came. Others depend on their content type, the same in every
mode: text (`text/*`, XML) in UTF-8 becomes a JSON string, anything else `{"base64": "..."}`. No body at all
is `null`. In structured mode `data` is taken as it stands and `data_base64` is treated as a binary body.

Sources: https://github.com/cloudevents/spec, v1.0.2: spec.md, formats/json-format.md and
bindings/http-protocol-binding.md.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Raw

from herdr.errors import FieldError, InvalidInput
from herdr.event import Draft
from herdr.web.asgi import Scope
from herdr.web.drafts import ERRORS_SHOWN_MAX, check_all, check_text, explain, invalid, split_array

SPEC_VERSION = "1.0"
REQUIRED = ("id", "source", "specversion", "type")

_FIELDS = {
    **{
        name: name
        for name in (
            *("type", "source", "id", "subject", "time"),
            *("workspace", "session", "task", "priority", "tags"),
        )
    },
    "basedon": "based_on",
    "ifstale": "if_stale",
    "traceparent": "trace",
}
_ATTRIBUTES = {field: attribute for attribute, field in _FIELDS.items()}
_NULL = Raw(b"null")
_PREFIX = b"ce-"
_STRUCTURED = b"application/cloudevents"

_ATTRIBUTE_NAME = re.compile(r"[a-z0-9]+")
_QUOTE, _BACKSLASH = b'"\\'
_WHOLE_NUMBER = re.compile(r"[0-9]{1,19}")

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_raw = msgspec.json.Decoder(Raw).decode
_value = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def is_binary(scope: Scope) -> bool:
    """Tell whether a request is a CloudEvent in binary mode; structured ones may repeat `ce-` headers."""
    for name, _ in scope["headers"]:
        if name.startswith(_PREFIX):
            return not _content_type(scope).lower().startswith(_STRUCTURED)
    return False


def parse_structured(body: bytes, data_max: int) -> list[Draft]:
    """Return the one draft of an `application/cloudevents+json` body; raises InvalidInput."""
    check_text(body)
    return check_all([_from_json(body, None)], data_max)


def parse_batch(body: bytes, data_max: int) -> list[Draft]:
    """Return the drafts of an `application/cloudevents-batch+json` body, maybe none; raises InvalidInput."""
    check_text(body)
    drafts: list[Draft] = []
    errors: list[FieldError] = []
    for index, raw in enumerate(split_array(body)):
        try:
            drafts.append(_from_json(raw, index))
        except InvalidInput as error:
            errors.extend(error.errors)
            if len(errors) >= ERRORS_SHOWN_MAX:
                break
    if errors:
        raise invalid(errors)
    return check_all(drafts, data_max)


def parse_binary(scope: Scope, body: bytes, data_max: int) -> list[Draft]:
    """Return the one draft whose attributes are in `ce-` headers and whose payload is the body."""
    attributes: dict[str, Any] = {}
    for header, value in scope["headers"]:
        if header.startswith(_PREFIX):
            name = header[len(_PREFIX) :].decode("latin-1")
            if name in attributes:
                raise _wrong(f"ce-{name}", "the header stands twice", None)
            attributes[name] = _decode_header(name, value)
    if "datacontenttype" in attributes:
        raise _wrong("ce-datacontenttype", "there is no such header; Content-Type is the payload's", None)
    content_type = _content_type(scope)
    if content_type:
        attributes["datacontenttype"] = content_type.decode("utf-8", "replace")
    data = _payload(attributes.get("datacontenttype", "application/json"), body, None)
    return check_all([_draft(attributes, data, None)], data_max)


def _content_type(scope: Scope) -> bytes:
    return next((bytes(value).strip() for name, value in scope["headers"] if name == b"content-type"), b"")


def _decode_header(name: str, value: bytes) -> str:
    """Undo quoting, then percent-encoding once (HTTP binding 3.1.3.2); refuse what is not strict UTF-8."""
    try:
        return unquote_to_bytes(_unquote(value)).decode("utf-8")
    except UnicodeDecodeError:
        raise _wrong(f"ce-{name}", "the value is not percent-encoded UTF-8", None) from None


def _unquote(value: bytes) -> bytes:
    """Undo the quoting of quoted sections (RFC 9110, 5.6.4), in one pass; a quote without an end is a character."""
    out = bytearray()
    place = 0
    while (begin := value.find(b'"', place)) >= 0:
        section = bytearray()
        at = begin + 1
        while at < len(value) and value[at] != _QUOTE:
            at += value[at] == _BACKSLASH and at + 1 < len(value)
            section.append(value[at])
            at += 1
        if at >= len(value):
            break
        out += value[place:begin] + section
        place = at + 1
    return bytes(out) + value[place:]


def _from_json(raw: bytes | Raw, index: int | None) -> Draft:
    try:
        members = _members(raw)
        data, encoded = members.pop("data", None), members.pop("data_base64", None)
        # a null attribute is an absent one, says the JSON format
        attributes = {name: value for name, text in members.items() if (value := _value(text)) is not None}
        binary = None if encoded is None else _value(encoded)
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid([explain(error, index)]) from None
    if binary is None:
        return _draft(attributes, _NULL if data is None else data, index)
    if data is not None:
        raise _wrong("data_base64", "stands beside data; an event has one of them", index)
    try:
        body = base64.b64decode(binary, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _wrong("data_base64", "expected bytes in base64", index) from None
    content_type = str(attributes.get("datacontenttype", "application/octet-stream"))
    return _draft(attributes, _payload(content_type, body, index), index)


def _payload(content_type: str, body: bytes, index: int | None) -> Raw:
    if not body:
        return _NULL
    kind, _, parameters = content_type.lower().partition(";")
    kind = kind.strip()
    if kind.endswith(("/json", "+json")):
        try:
            check_text(body)
            return _raw(body)
        except (msgspec.DecodeError, RecursionError, InvalidInput) as error:
            raise _wrong(
                "data", f"the body is not JSON, though its content type says so: {error}", index
            ) from None
    if kind.startswith("text/") or kind.endswith(("/xml", "+xml")):
        charset = re.search(r'charset="?([^";\s]+)', parameters)
        if charset is None or charset[1] in ("utf-8", "us-ascii"):
            try:
                return Raw(_encode(body.decode("utf-8")))
            except UnicodeDecodeError:
                raise _wrong(
                    "data", "the text is not UTF-8; name its charset to have it kept as bytes", index
                ) from None
    return Raw(b'{"base64":"%s"}' % base64.b64encode(body))


def _draft(attributes: Mapping[str, Any], data: Raw, index: int | None) -> Draft:
    """Build a draft from decoded attributes; raises InvalidInput that names the attribute."""
    errors = [
        FieldError(name, "required by CloudEvents 1.0", index) for name in REQUIRED if name not in attributes
    ]
    if attributes.get("specversion", SPEC_VERSION) != SPEC_VERSION:
        errors.append(FieldError("specversion", f'expected "{SPEC_VERSION}"', index))
    fields: dict[str, Any] = {}
    ext: dict[str, str | int | bool] = {}
    for name, value in attributes.items():
        if name == "specversion":
            continue
        if name in _FIELDS:
            fields[_FIELDS[name]] = _field_value(name, value)
        elif not _ATTRIBUTE_NAME.fullmatch(name):
            known = f"; it is {_ATTRIBUTES[name]!r} here" if name in _ATTRIBUTES else ""
            errors.append(FieldError(name[:128], f"attribute names are a-z and 0-9 only{known}", index))
        elif not isinstance(value, str | int):
            errors.append(FieldError(name[:128], "expected a text, a whole number or a boolean", index))
        else:
            ext[name] = value
    if errors:
        raise invalid(errors)
    try:
        draft = msgspec.convert(fields, Draft)
    except msgspec.ValidationError as error:
        found = explain(error, index)
        raise _wrong(_ATTRIBUTES.get(found.field, found.field), found.message, index) from None
    draft.data = data
    draft.ext = ext or None
    return draft


def _field_value(name: str, value: Any) -> Any:
    """Read what CloudEvents can only say as text: lists, and numbers beyond 32 bits or in a header."""
    if not isinstance(value, str):
        return value
    if name == "tags":
        return [tag for part in value.split(",") if (tag := part.strip())]
    if name == "basedon" and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    return value


def _wrong(field: str, message: str, index: int | None) -> InvalidInput:
    return invalid([FieldError(field, message, index)])
