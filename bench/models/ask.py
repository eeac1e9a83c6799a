"""What is asked of a model, directly and through the gateway."""

import random

import msgspec

from bench.stub_model import WORD

DIRECT, HERDR = "/v1/chat/completions", "/v1/messages"
TOKENS = 64  # that an answer may have; the stub's has 32
SYSTEM = "You are a careful engineer. " * 72  # 2 KiB: what a gateway has to read, hash and pass on
END_MARKS = {DIRECT: b"data: [DONE]", HERDR: b"event: message_stop"}
MARK = WORD.encode()
"""Stands in each piece of the stub's answer, and nowhere else in a stream."""


def request(path: str, port: int, agent: int, number: int, priority: int = 5) -> bytes:
    """Return one whole streaming request; agents differ from their first message on, so that none share a slot."""
    body = direct_body(agent, number) if path == DIRECT else herdr_body(agent, number)
    data = msgspec.json.encode(body)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"x-agent-id: agent{agent}\r\nx-priority: {priority}\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def direct_body(agent: int, number: int) -> dict[str, object]:
    """Return what the gateway itself would send."""
    messages = [{"role": "system", "content": _system(agent)}, {"role": "user", "content": _user(number)}]
    options = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return {
        "messages": messages,
        "max_tokens": TOKENS,
        "id_slot": agent,
        "cache_prompt": True,
        **options,
    }


def herdr_body(agent: int, number: int) -> dict[str, object]:
    """Return the same for `/v1/messages`."""
    messages = [{"role": "user", "content": _user(number)}]
    return {
        "model": "stub",
        "system": _system(agent),
        "messages": messages,
        "max_tokens": TOKENS,
        "stream": True,
    }


def _system(agent: int) -> str:
    return f"You are agent {agent}. {SYSTEM}"


def _user(number: int) -> str:
    return f"Question {number}: what is next?"


def long_prompt(agent: int, words: int) -> str:
    """Return a prompt of an agent's own, of short and common words: most of them are one token."""
    choice = random.Random(agent).choice
    common = (
        "the",
        "a",
        "of",
        "and",
        "to",
        "in",
        "is",
        "on",
        "by",
        "it",
        "or",
        "be",
        "at",
        "as",
        "an",
        "are",
    )
    return f"Agent {agent}. " + " ".join(choice(common) for _ in range(words))
