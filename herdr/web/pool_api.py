"""What people and tools may ask about the pool: its state, the calls it made, its models, the size of a prompt."""

from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import parse_qsl

import msgspec

from herdr.clock import Clock
from herdr.errors import FieldError, InvalidInput
from herdr.pool.canonical import canonical
from herdr.pool.generation import Place
from herdr.pool.pool import Pool
from herdr.pool.protocols import anthropic
from herdr.pool.protocols.openai.models import models_body
from herdr.web.asgi import JSON, Receive, Reply, Scope, read_body, respond, respond_json
from herdr.web.auth import Caller
from herdr.web.model_stream import call_headers
from herdr.web.models import BODY_ADVICE, MODEL_BODY_MAX

CALLS_DEFAULT, CALLS_MAX = 100, 1000


class Rows(Protocol):
    """The records of calls."""

    def rows(
        self, limit: int, *, agent: str | None = None, route: str | None = None, after: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the newest calls first; `after`: only those newer than this call."""
        ...


class CallsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/calls`."""

    limit: int = CALLS_DEFAULT
    agent: str | None = None
    route: str | None = None
    after: str | None = None


class PoolApi:
    """The handlers."""

    def __init__(self, pool: Pool, calls: Rows, clock: Clock, new_id: Callable[[], str]) -> None:
        self._pool = pool
        self._calls = calls
        self._clock = clock
        self._new_id = new_id

    async def pool(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with every backend: its state, slots, queue and shares."""
        await respond_json(send, 200, self._pool.snapshot())

    async def calls(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the newest calls first."""
        query = _calls_query(scope["query_string"])
        rows = self._calls.rows(query.limit, agent=query.agent, route=query.route, after=query.after)
        await respond_json(send, 200, {"calls": rows})

    async def models(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the names that a client may ask for, in OpenAI's and Anthropic's form at once."""
        await respond(send, 200, models_body(self._pool.models(), self._clock.wall_us() // 1_000_000), JSON)

    async def count_tokens(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer how many tokens a prompt has; no slot is taken for it."""
        request = anthropic.parse(await read_body(scope, receive, MODEL_BODY_MAX, BODY_ADVICE))
        counted = await self._pool.count(canonical(request).request)
        headers = call_headers(self._new_id(), Place(None, 0))
        await respond(send, 200, anthropic.count_body(counted), [*JSON, *headers])


def _calls_query(query: bytes) -> CallsQuery:
    fields = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    try:
        found = msgspec.convert(fields, CallsQuery, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the query does not fit: {error}; see GET /v1/calls in the reference") from None
    if not 1 <= found.limit <= CALLS_MAX:
        what = f"must be from 1 to {CALLS_MAX}"
        raise InvalidInput(f"limit {what}", errors=[FieldError("limit", what)])
    return found
