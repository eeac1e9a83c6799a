"""OpenAPI 3.1 from what the gateway is made of: its endpoints, and the structs that it decodes and encodes.

What neither can say (query parameters, other media types, the answer to a batch) stands in `_MORE`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from http import HTTPStatus
from operator import or_
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Raw

from herdr.event import Envelope, Receipt
from herdr.web.openapi_context import MORE as CONTEXT_MORE
from herdr.web.problems import CONTENT_TYPE as PROBLEM
from herdr.web.problems import Problem
from herdr.web.query import LIMIT_DEFAULT, LIMIT_MAX
from herdr.web.surface import Endpoint

JSON = "application/json"
_REF = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


class ContextPart(msgspec.Struct):
    """A text beside an event, or why there is none."""

    text: str | msgspec.UnsetType = msgspec.UNSET
    tokens: int | msgspec.UnsetType = msgspec.UNSET
    tokenizer: str | msgspec.UnsetType = msgspec.UNSET
    ref: str | msgspec.UnsetType = msgspec.UNSET
    unavailable: str | msgspec.UnsetType = msgspec.UNSET
    """The code of the reason; only `too_large` has a `ref` beside it."""


class EventContext(msgspec.Struct):
    """What a rule puts beside an event for its target."""

    session: ContextPart | msgspec.UnsetType = msgspec.UNSET
    """The window of the event's session."""
    graph: ContextPart | msgspec.UnsetType = msgspec.UNSET
    """The outline of the file that the event is about."""


class FollowedEvent(Envelope, kw_only=True):
    """An event as followers get it."""

    seq: int
    epoch: str
    accepted: str
    context: EventContext | msgspec.UnsetType = msgspec.UNSET


class GapNotice(msgspec.Struct, rename={"from_": "from"}):
    """Events between two seqs, both included, that were asked for and are not there."""

    reason: str
    """`retention`, `epoch` or `rewound`."""
    from_: int
    to: int


class EventPage(msgspec.Struct):
    """A page of events; the cursor asks for the next one."""

    events: list[FollowedEvent]
    cursor: str
    head: int
    gap: GapNotice | msgspec.UnsetType = msgspec.UNSET


class Receipts(msgspec.Struct):
    """The answer to an array, to NDJSON and to a batch: one receipt an event, in order."""

    results: list[Receipt]


def _query(name: str, description: str, *, repeats: bool = False, **schema: Any) -> dict[str, Any]:
    one = {"type": "string", **schema}
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": "array", "items": one} if repeats else one,
    }


_GLOB = "exact or a glob; may stand several times, any of them fits"
_EVENT_LINES = "one event a line"
_WITH_BODY = frozenset({200, 201, 202})
_TOKEN = _query("token", "of the holder; here or in the body", type="integer")
_MORE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("POST", "/v1/events"): {
        "bodies": {
            "application/x-ndjson": {"schema": {"type": "string", "description": _EVENT_LINES}},
            "application/cloudevents+json": {"schema": {"type": "object"}},
            "application/cloudevents-batch+json": {"schema": {"type": "array", "items": {"type": "object"}}},
        },
        "answers": Receipts,
        "receipts": (202, 409, 503),
    },
    ("GET", "/v1/events"): {
        "parameters": [
            *(
                _query(name, _GLOB, repeats=True)
                for name in ("type", "class", "priority", "source", "workspace", "session", "subject")
            ),
            _query("as", "follow as this named target"),
            _query("after", "a cursor or a seq; 0 is the oldest retained event"),
            _query(
                "limit",
                "events of a page",
                type="integer",
                minimum=1,
                maximum=LIMIT_MAX,
                default=LIMIT_DEFAULT,
            ),
            {
                "name": "attr",
                "in": "query",
                "description": "attributes of this subscriber, as attr.NAME=VALUE",
                "style": "form",
                "explode": True,
                "schema": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "a cursor; wins over `after`",
                "schema": {"type": "string"},
            },
        ],
        "answers": EventPage,
        "media": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    ("GET", "/v1/events/{seq}"): {"answers": FollowedEvent},
    ("GET", "/v1/locks"): {
        "parameters": [
            _query("workspace", "of this workspace only"),
            _query("path", "only what overlaps this path"),
            _query("owner", "of this owner only"),
        ]
    },
    ("PUT", "/v1/locks/{lock}"): {
        "is_optional": True,
        "parameters": [
            _TOKEN,
            _query("ttl_s", "seconds, for as long as before where left out", type="number"),
        ],
    },
    ("DELETE", "/v1/locks/{lock}"): {
        "is_optional": True,
        "parameters": [
            _TOKEN,
            _query("force", "release it though one is not its holder; scope `admin`", type="boolean"),
            _query("reason", "what the holder is told; needed with `force`"),
        ],
    },
    ("DELETE", "/v1/waits"): {
        "is_optional": True,
        "parameters": [_query("owner", "who waits"), _query("on", "for whom")],
    },
    ("GET", "/v1/tasks"): {
        "parameters": [
            _query("workspace", "of this workspace only"),
            _query("role", "that this role is to work on"),
            _query("state", "in this state; may stand several times", repeats=True),
            _query("holder", "that this one holds"),
            _query("limit", "at most so many", type="integer", minimum=1, maximum=1000, default=100),
        ]
    },
    ("GET", "/metrics"): {"media": {"text/plain": {"schema": {"type": "string"}}}},
    **CONTEXT_MORE,
}


def describe(endpoints: Iterable[Endpoint], version: str) -> dict[str, Any]:
    """Return the OpenAPI document for these endpoints."""
    listed = list(endpoints)
    schemas = _Schemas(listed)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in listed:
        operations = paths.setdefault(_PARAMETER.sub(r"{\1}", endpoint.path), {})
        operations[endpoint.method.lower()] = _operation(endpoint, schemas)
    problem = {"description": "A problem (RFC 9457).", "content": {PROBLEM: {"schema": schemas.of(Problem)}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Herdr gateway",
            "version": version,
            "description": "Tokens are needed where the configuration has some; see each operation's scope. "
            "Any call may carry `X-Herdr-Lock-Token`, the token of a lock or several with commas between them: it "
            "renews these leases, and is refused with 409 when one of them is not held any more.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {"Problem": problem},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


class _Schemas:
    """The schemas of all types that the endpoints name, made in one go so that they share components."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        named = [t for e in endpoints for t in (e.request, e.response) if t is not None]
        named += [Problem, *(more["answers"] for more in _MORE.values() if "answers" in more)]
        self._types = list({repr(t): t for t in named}.values())
        structs: dict[Any, Any] = {}
        shown = [_without_raw(t, structs) for t in self._types]
        self._schemas, self.components = msgspec.json.schema_components(shown, ref_template=_REF)
        for component in self.components.values():
            for field in component.get("properties", {}).values():
                if field.get("default") == "":  # how structs say "none"; the field's own schema may refuse it
                    del field["default"]

    def of(self, type_: Any) -> dict[str, Any]:
        """Return one type's schema."""
        return self._schemas[[repr(t) for t in self._types].index(repr(type_))]


def _without_raw(type_: Any, structs: dict[Any, Any]) -> Any:
    """Return the type with any JSON in place of raw bytes: msgspec cannot write a default of them down."""
    origin = get_origin(type_)
    if origin in (Union, UnionType):
        return reduce(or_, [_without_raw(part, structs) for part in get_args(type_)])
    if origin is list:
        return list[_without_raw(get_args(type_)[0], structs)]  # type: ignore[misc]
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return type_
    fields = msgspec.structs.fields(type_)
    if not any(field.type is Raw and not field.required for field in fields):
        return type_
    if type_ not in structs:
        structs[type_] = msgspec.defstruct(
            type_.__name__,
            [_shown_field(field) for field in fields],
            rename={field.name: field.encode_name for field in fields},
            forbid_unknown_fields=type_.__struct_config__.forbid_unknown_fields,
            kw_only=True,
            namespace={"__doc__": type_.__doc__},
        )
    return structs[type_]


def _shown_field(field: msgspec.structs.FieldInfo) -> Any:
    type_ = Any if field.type is Raw else field.type
    if field.required:
        return field.name, type_
    if field.type is Raw:
        return field.name, type_, None
    if field.default is NODEFAULT:
        return field.name, type_, msgspec.field(default_factory=field.default_factory)
    return field.name, type_, msgspec.field(default=field.default)


def _operation(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    more = _MORE.get((endpoint.method, endpoint.path), {})
    names = _PARAMETER.findall(endpoint.path)
    parameters = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]
    operation: dict[str, Any] = {
        "operationId": "_".join(
            [endpoint.method.lower(), *re.findall(r"\w+", _PARAMETER.sub(r"\1", endpoint.path))]
        ),
        "summary": endpoint.summary,
        "security": []
        if endpoint.scope is None
        else [{"bearer": [endpoint.scope]}, {"key": [endpoint.scope]}],
        "parameters": [*parameters, *more.get("parameters", ())],
        "responses": _responses(endpoint, more, schemas),
    }
    if endpoint.request is not None:
        content = {JSON: {"schema": schemas.of(endpoint.request)}, **more.get("bodies", {})}
        operation["requestBody"] = {"required": not more.get("is_optional", False), "content": content}
    elif "takes" in more:
        operation["requestBody"] = {"required": True, "content": more["takes"]}
    return operation


def _responses(endpoint: Endpoint, more: Mapping[str, Any], schemas: _Schemas) -> dict[str, Any]:
    single = None if endpoint.response is None else schemas.of(endpoint.response)
    whole = schemas.of(more["answers"]) if "answers" in more else None
    answers = [schema for schema in (single, whole) if schema is not None]
    content = dict(more.get("media", {}))
    if answers:
        content[JSON] = {"schema": answers[0] if len(answers) == 1 else {"anyOf": answers}}
    responses: dict[str, Any] = {}
    if endpoint.method == "DELETE" and not content:
        responses["204"] = {"description": "Done."}
    elif endpoint.method != "POST" or 201 not in endpoint.answers:
        done = str(more.get("status", 200))
        responses[done] = {"description": "Done.", **({"content": content} if content else {})}
    for status, meaning in endpoint.answers.items():
        told = {} if status < 400 else {PROBLEM: {"schema": schemas.of(Problem)}}
        if single is not None and (status in _WITH_BODY or status in more.get("receipts", ())):
            told[JSON] = {"schema": single}
        elif status < 300:
            told = content
        responses[str(status)] = {"description": meaning, **({"content": told} if told else {})}
    for status in (400,) if endpoint.scope is None else (400, 401, 403):
        responses.setdefault(str(status), _problem(HTTPStatus(status).phrase, schemas))
    responses["default"] = {"$ref": "#/components/responses/Problem"}
    return responses


def _problem(description: str, schemas: _Schemas) -> dict[str, Any]:
    return {"description": description, "content": {PROBLEM: {"schema": schemas.of(Problem)}}}
