import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from herdr.errors import InvalidInput
from herdr.event import Name
from herdr.web.mcp.arguments import Arguments
from herdr.web.mcp.schemas import missing, read_arguments, schema_of

WORDS = {
    **{"agent": "who", "workspace": "where", "name": "a name", "count": "a count", "action": "what"},
    **{"inner": "more", "tags": "labels"},
}


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    texts: tuple[str, ...] = ()


class Asked(Arguments):
    action: Literal["do", "undo"]
    name: Name | None = None
    count: Annotated[int, Meta(ge=1, le=9)] = 3
    inner: Inner | None = None
    tags: tuple[str, ...] = ()


def test_a_schema_is_flat_described_and_says_no_more_than_a_model_needs() -> None:
    schema = schema_of(Asked, WORDS)
    assert schema == {
        "type": "object",
        "properties": {
            "action": {"description": "what", "type": "string", "enum": ["do", "undo"]},
            "name": {"description": "a name", "type": "string"},
            "count": {"description": "a count", "type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "inner": {
                "description": "more",
                "type": "object",
                "properties": {"texts": {"type": "array", "items": {"type": "string"}}},
                "required": [],
                "additionalProperties": False,
            },
            "tags": {"description": "labels", "type": "array", "items": {"type": "string"}},
            "agent": {"description": "who", "type": "string"},
            "workspace": {"description": "where", "type": "string"},
        },
        "required": ["action"],
        "additionalProperties": False,
    }
    json.dumps(schema)


def test_nothing_required_is_not_said() -> None:
    assert "required" not in schema_of(Arguments, WORDS)


def test_null_is_left_out_and_a_number_may_be_a_text() -> None:
    found = read_arguments(Asked, {"action": "do", "name": None, "count": "4"}, WORDS)
    assert (found.action, found.name, found.count) == ("do", None, 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "action: required: what"),
        ({"action": "redo"}, "action: expected what"),
        ({"action": "do", "count": 0}, "count: expected a count"),
        ({"action": "do", "colour": 1}, "colour: unknown field; there are"),
        ({"action": "do", "name": "a\nb"}, "name: expected a name"),
        ({"action": "do", "inner": {"mood": 1}}, "inner.mood: unknown field"),
    ],
)
def test_what_is_wrong_names_the_field_and_what_it_takes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_arguments(Asked, given, WORDS)


def test_what_an_action_needs_is_named() -> None:
    error = missing(WORDS, "name", "count")
    assert error.detail == "name: required here: a name; count: required here: a count"
