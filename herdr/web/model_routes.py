"""The surface of the model pool: its methods and paths, like `herdr.web.routes` for the rest."""

from collections.abc import Callable

from herdr.clock import Clock
from herdr.pool.pool import Pool
from herdr.pool.protocols import anthropic, herdr, openai, responses
from herdr.pool.protocols.dialect import Dialect
from herdr.pool.shared_context import SESSION_TOKENS, Contexts, SharedContext
from herdr.web.models import ModelEndpoint
from herdr.web.pool_api import PoolApi, Rows
from herdr.web.streams import Streams
from herdr.web.surface import Endpoint

MODELS = "models"

ANSWERS = {
    400: "the request is wrong, or longer than a slot: the protocol's own error says how",
    404: "no backend has this model",
    429: "the backend's quota is used up",
    502: "the backend cannot be reached, or failed",
    503: "no slot was free in time; try again after Retry-After",
    504: "the backend took too long",
}


def model_endpoints(
    pool: Pool,
    calls: Rows,
    streams: Streams,
    clock: Clock,
    new_id: Callable[[], str],
    contexts: Contexts | None = None,
    session_tokens: int = SESSION_TOKENS,
) -> list[Endpoint]:
    """Return the HTTP endpoints of the pool.

    `contexts`: what `/v1/chat` may put into prompts, with windows of `session_tokens`; None: nothing is served.
    """

    def generates(path: str, dialect: Dialect, summary: str) -> Endpoint:
        handler = ModelEndpoint(
            dialect,
            pool,
            streams,
            clock,
            new_id,
            passes_verbatim=dialect is anthropic,
            errors_are_problems=dialect is herdr,
            shared=SharedContext(contexts, session_tokens) if dialect is herdr else None,
        )
        return Endpoint("POST", path, MODELS, handler, summary, answers=ANSWERS, refuse=handler.refuse)

    api = PoolApi(pool, calls, clock, new_id)
    messages = generates("/v1/messages", anthropic, "Ask a model (Anthropic Messages)")
    completions = generates("/v1/chat/completions", openai, "Ask a model (OpenAI chat completions)")
    return [
        generates("/v1/chat", herdr, "Ask a model"),
        messages,
        Endpoint(
            "POST",
            "/v1/messages/count_tokens",
            MODELS,
            api.count_tokens,
            "Count a prompt's tokens (Anthropic)",
            answers={400: ANSWERS[400]},
            refuse=messages.refuse,
        ),
        completions,
        generates("/v1/responses", responses, "Ask a model (OpenAI Responses)"),
        Endpoint("GET", "/v1/models", MODELS, api.models, "List the models", refuse=completions.refuse),
        Endpoint("GET", "/v1/pool", MODELS, api.pool, "Show backends, slots and queues"),
        Endpoint("GET", "/v1/calls", MODELS, api.calls, "List the newest model calls"),
    ]
