"""Pure: decoding bodies and queries into structs, with the wrong field and what it should be in the error."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from herdr.errors import FieldError, InvalidInput
from herdr.web.drafts import check_text, explain

FIELDS_MAX = 100  # of a query

Body = TypeVar("Body", bound=msgspec.Struct)


def read_body_as(type_: type[Body], body: bytes, expected: Mapping[str, str]) -> Body:
    """Decode a body; an empty one is an empty object. Raises InvalidInput.

    `expected` says in words what each field takes.
    """
    check_text(body)
    try:
        return msgspec.json.decode(body if body.strip() else b"{}", type=type_)
    except (msgspec.ValidationError, RecursionError) as error:
        raise wrong(explained(error, type_, expected)) from None
    except msgspec.DecodeError as error:
        raise InvalidInput(f"the body is not JSON: {error}", "invalid_json") from None


def read_query_as(
    type_: type[Body], query: bytes, expected: Mapping[str, str], repeated: frozenset[str] = frozenset()
) -> Body:
    """Decode a query whose names each stand once, but for the repeated ones; raises InvalidInput."""
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise InvalidInput("the query is not percent-encoded UTF-8, or has too many fields") from None
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in repeated:
            fields.setdefault(name, []).append(value)
        elif name in fields:
            raise wrong(FieldError(name[:128], "stands twice in the query"))
        else:
            fields[name] = value
    try:
        return msgspec.convert(fields, type_, strict=False)
    except msgspec.ValidationError as error:
        raise wrong(explained(error, type_, expected)) from None


def explained(error: Exception, type_: type[msgspec.Struct], expected: Mapping[str, str]) -> FieldError:
    """Turn a decoder's message into the wrong field, and what it should be."""
    return explain(error, None, {name: expected[name] for name in type_.__struct_fields__})


def wrong(*errors: FieldError) -> InvalidInput:
    """Return the error for wrong fields."""
    said = "; ".join(f"{error.field}: {error.message}" if error.field else error.message for error in errors)
    return InvalidInput(said, errors=list(errors))
