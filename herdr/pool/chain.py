"""Pure: where two prompts part, told by a chain of hashes with one entry for each section of a prompt.

Sections are `system`, `tools`, then `message 1`, `message 2` and so on. Each entry is a digest of the entry
before it and of what its own section renders, so two prompts with one entry in common are equal up to there.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from herdr.pool.request import ChatRequest, Tool, split_system

Chain = tuple[bytes, ...]

DIGEST_BYTES = 32  # the last entry decides who shares an answer (joins.py), so no collision may be made
FINGERPRINT_DIGITS = (
    32  # 64 bits against accidental collisions; it only tells one agent's conversations apart
)
SETUP = 2  # entries that stand before the messages: system and tools
SHARED_MESSAGES_MIN = 2  # a greeting alone is no conversation to continue

_encode = msgspec.msgpack.Encoder().encode


def chain_of(request: ChatRequest) -> Chain:
    """Return the chain of a canonical request."""
    system, messages = split_system(request.messages)
    contents = [_encode(system), _encode([_rendered(tool) for tool in request.tools])]
    contents += [_encode(message) for message in messages]
    chain: list[bytes] = []
    previous = b""
    for content in contents:
        previous = _digest(previous, content)
        chain.append(previous)
    return tuple(chain)


def section(index: int) -> str:
    """Return the name of the section that stands at a place of a chain."""
    return ("system", "tools")[index] if index < SETUP else f"message {index - SETUP + 1}"


def shared(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    """Return how many entries two chains have in common at their beginning."""
    pairs = zip(a, b, strict=False)
    return next((index for index, (left, right) in enumerate(pairs) if left != right), min(len(a), len(b)))


def first_change(old: Sequence[bytes], new: Sequence[bytes]) -> str | None:
    """Return the name of the first section that is not as it was.

    None: the conversation only grew. Where the new one ends inside the old one, it is the message that would
    have come next.
    """
    same = shared(old, new)
    return None if same == len(old) else section(same)


def setup(chain: Sequence[bytes]) -> str:
    """Return the fingerprint of system prompt and tool set, FINGERPRINT_DIGITS hex digits."""
    return chain[SETUP - 1].hex()[:FINGERPRINT_DIGITS]


def continues(held: Sequence[bytes], asked: Sequence[bytes]) -> bool:
    """Tell whether a prompt goes on with the conversation that a slot holds, where no one says who asks.

    It does when it begins with all of it. Its last message may differ (a notice there is rewritten on every
    turn) where enough messages before it are the same.
    """
    if not held:
        return False
    same = shared(held, asked)
    return same == len(held) or (same == len(held) - 1 and same - SETUP >= SHARED_MESSAGES_MIN)


def _rendered(tool: Tool) -> tuple[str, str, str]:
    return tool.name, tool.description, tool.parameters


def _digest(previous: bytes, content: bytes) -> bytes:
    digest = blake2b(previous, digest_size=DIGEST_BYTES)
    digest.update(content)
    return digest.digest()
