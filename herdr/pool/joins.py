"""Pure: which requests ask for the same generation, and which of them may share one.

A client that hears nothing for some minutes sends its request again, and each copy would be generated anew
for no one. The copy may differ in how it wants the answer (`stream`), never in what is asked.
"""

from hashlib import blake2b

import msgspec

from herdr.pool.canonical import Canonical
from herdr.pool.request import ChatRequest

KEY_BYTES = 32  # equal keys get one answer, other clients' too: no collision can be made

_encode = msgspec.msgpack.Encoder().encode


def join_key(canonical: Canonical, backend: str) -> bytes:
    """Return a hash of all that decides the answer: prompt, tools, sampling, form, limits, model and backend.

    No part of it: `stream`, `include_usage`, `hide_thinking`, session, agent, route, priority.
    """
    asked = canonical.request
    strict = [tool.strict for tool in asked.tools]  # all else of the prompt is in its chain
    what = (backend, asked.model, canonical.chain[-1], strict, asked.tool_choice, asked.sampling)
    limits = (asked.response_format, asked.max_tokens, asked.thinking, asked.effort)
    return blake2b(_encode((what, limits)), digest_size=KEY_BYTES).digest()


def may_join(request: ChatRequest, caller_retry: bool, same_client: bool) -> bool:
    """Tell whether a request may share a running generation with its key.

    At temperature 0 the answer would be the same anyway. Above it, or where the model's default counts, two
    clients want two answers; only a client that says that it asks again wants the one it asked for.
    """
    return request.sampling.temperature == 0 or (caller_retry and same_client)


def retry_key(key: bytes, agent: str | None) -> bytes:
    """Return what a client's repeated request is known by, so that it keeps its place in the queue."""
    return blake2b(_encode((key, agent)), digest_size=KEY_BYTES).digest()
