"""Pure: the schema of a tool's arguments as models see it, and the arguments that came, checked against it."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from herdr.errors import FieldError, InvalidInput
from herdr.web.bodies import explained, wrong

# Lengths and patterns: models keep to them untold, pay for every word, and errors say them as well
LEFT_OUT = frozenset({"title", "pattern", "minLength", "maxLength"})

Given = TypeVar("Given", bound=msgspec.Struct)


def schema_of(type_: type[msgspec.Struct], words: Mapping[str, str]) -> dict[str, Any]:
    """Return a JSON Schema without references; `words` describe each field."""
    whole = msgspec.json.schema(type_)
    defs = whole["$defs"]
    schema: dict[str, Any] = _plain(defs[type_.__name__], defs)
    schema.pop("description", None)
    schema["properties"] = {
        name: {"description": words[name], **{k: v for k, v in field.items() if k != "description"}}
        for name, field in schema["properties"].items()
    }
    if not schema["required"]:
        del schema["required"]
    return schema


def _plain(schema: Any, defs: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(one, defs) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:  # only ever "or null", which a field that is left out says already
        (only,) = [one for one in schema["anyOf"] if one != {"type": "null"}]
        return _plain({**only, **{k: v for k, v in schema.items() if k not in ("anyOf", "default")}}, defs)
    found = {}
    for name, value in schema.items():
        if name == "properties":
            found[name] = {field: _plain(one, defs) for field, one in value.items()}
        elif name not in LEFT_OUT and not (name == "default" and value in ("", [], (), None)):
            found[name] = _plain(value, defs)
    return {"type": "string", **found} if "enum" in found else found


def read_arguments(type_: type[Given], given: Mapping[str, Any], words: Mapping[str, str]) -> Given:
    """Return a call's arguments; null is as good as left out, and "3" as 3. Raises InvalidInput."""
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(fields, type_, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise wrong(explained(error, type_, words)) from None


def missing(words: Mapping[str, str], *names: str) -> InvalidInput:
    """Return the error for arguments that an action needs."""
    return wrong(*(FieldError(name, f"required here: {words[name]}") for name in names))
