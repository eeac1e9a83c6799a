"""What llama.cpp and the servers that speak OpenAI's chat completions have in common: the request and its reader."""

from collections.abc import Callable
from typing import Literal

from herdr.pool.chunk import ToolCalls
from herdr.pool.protocols.backend.body import chat_body
from herdr.pool.protocols.backend.decode import ChatDecoder
from herdr.pool.request import ChatRequest


class Chat:
    """How one backend is asked: its model's name, and what has to be done for it."""

    def __init__(
        self,
        kind: Literal["llamacpp", "openai"],
        *,
        model: str | None,
        tool_calls: ToolCalls,
        recover: bool,
        lower_schema: bool,
        new_id: Callable[[], str],
    ) -> None:
        self._kind = kind
        self._model = model
        self._tool_calls = tool_calls
        self._recover = recover
        self._lower_schema = lower_schema
        self._new_id = new_id

    def body(self, request: ChatRequest, max_tokens: int, *, slot: int | None, vision: bool) -> bytes:
        """Return the body of one request."""
        return chat_body(
            request,
            model=self._model or request.model,
            max_tokens=max_tokens,
            kind=self._kind,
            slot=slot,
            lower_schema=self._lower_schema,
            vision=vision,
        )

    def decoder(self, request: ChatRequest, prompt_estimate: int, context: int | None) -> ChatDecoder:
        """Return the reader of one answer."""
        return ChatDecoder(
            stop=request.sampling.stop,
            tool_calls=self._tool_calls,
            recover=self._recover,
            tool_names=frozenset(tool.name for tool in request.tools),
            prompt_estimate=prompt_estimate,
            context=context,
            new_id=self._new_id,
            schemas={tool.name: tool.parameters for tool in request.tools} if self._recover else None,
        )
