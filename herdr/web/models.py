"""The model endpoints: four protocols, one way through. Each answers, and fails, in its own client's terms."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from herdr.clock import Clock
from herdr.errors import HerdrError
from herdr.pool.canonical import canonical
from herdr.pool.failures import ModelError, stopping
from herdr.pool.generation import Place
from herdr.pool.identity import identify
from herdr.pool.pool import Pool
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.protocols.dialect import Dialect
from herdr.pool.request import ChatRequest
from herdr.pool.run import Inquiry
from herdr.pool.shared_context import SharedContext
from herdr.pool.turns import last_user_text
from herdr.web.asgi import JSON, Headers, Receive, Reply, Scope, read_body
from herdr.web.auth import ANYONE, Caller
from herdr.web.model_stream import Answering, ModelStream, call_headers
from herdr.web.problems import CONTENT_TYPE, Refused, headers_of, problem_of, status_of
from herdr.web.streams import Streams

MODEL_BODY_MAX = 32 * 1024 * 1024  # bytes; the bound of Anthropic's own API, images included
BODY_ADVICE = "send less: smaller images, or a shorter history"
LARGE_BODY = 256 * 1024  # bytes; reading a larger one takes milliseconds (20 MB: 180), and so it has a thread
CONTEXT = "context"  # the scope that a call needs too when its prompt should hold what is shared
PROBLEM: Headers = [(b"content-type", CONTENT_TYPE.encode())]


class ModelEndpoint:
    """The handler of one protocol's generating endpoint."""

    def __init__(
        self,
        dialect: Dialect,
        pool: Pool,
        streams: Streams,
        clock: Clock,
        new_id: Callable[[], str],
        *,
        passes_verbatim: bool = False,
        errors_are_problems: bool = False,
        shared: SharedContext | None = None,
    ) -> None:
        """`passes_verbatim`: its bodies can go to a backend of kind `anthropic` as they are.

        `shared`: of the protocol whose requests may ask for the shared context.
        """
        self._dialect = dialect
        self._pool = pool
        self._streams = streams
        self._clock = clock
        self._new_id = new_id
        self._passes_verbatim = passes_verbatim
        self._errors_are_problems = errors_are_problems
        self._shared = shared

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one call."""
        body = await read_body(scope, receive, MODEL_BODY_MAX, BODY_ADVICE)
        if len(body) > LARGE_BODY:
            request, inquiry = await asyncio.to_thread(self._inquire, scope, body, caller)
        else:
            request, inquiry = self._inquire(scope, body, caller)
        _check_scope(request, caller)
        stream = ModelStream(self._streams, send, scope)
        error_type = PROBLEM if self._errors_are_problems else JSON
        answering = Answering(self._dialect, request, inquiry, self._clock, error_type)
        if self._streams.stopping:
            raise stopping()
        if not self._streams.enter(stream):
            raise ModelError("overloaded", "as many streams as max_connections allows are open; ask again")
        try:
            # Who lacks the scope must not go on with what others of that name were given
            if self._shared is not None and caller.may(CONTEXT):
                inquiry, answering.context = await self._shared.put_in(inquiry, request.context)
            with self._pool.open(inquiry) as reader:
                await stream.serve(reader, receive, answering)
        finally:
            self._streams.leave(stream)

    def _inquire(self, scope: Scope, body: bytes, caller: Caller) -> tuple[ChatRequest, Inquiry]:
        request = self._dialect.parse(body)
        asked = canonical(request)
        headers = _text_headers(scope)
        token_name = None if caller is ANYONE else caller.name
        inquiry = Inquiry(
            asked,
            identify(headers, request, asked, token_name),
            estimate_tokens(asked.request),
            last_user_text(request),
            body if self._passes_verbatim else None,
            headers,
        )
        return request, inquiry

    def refuse(self, error: HerdrError) -> tuple[int, bytes, Headers]:
        """Return an error's status, body and headers in the protocol's own form."""
        status, call = status_of(error), self._new_id()
        headers = [*headers_of(error), *call_headers(call, Place(None, 0))]
        if self._errors_are_problems:
            return status, msgspec.json.encode(problem_of(error)), headers
        body = self._dialect.error_body(status, error.code, error.detail, call)
        return status, body, [*JSON, *(header for header in headers if header[0] != b"content-type")]


def _check_scope(request: ChatRequest, caller: Caller) -> None:
    if request.context is not None and not caller.may(CONTEXT):
        raise Refused(
            "missing_scope",
            f"the token {caller.name!r} lacks the scope {CONTEXT!r}, which `context` asks for; add it under "
            "auth.tokens, or leave `context` out",
        )


def _text_headers(scope: Scope) -> Mapping[str, str]:
    return {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in scope["headers"]}
