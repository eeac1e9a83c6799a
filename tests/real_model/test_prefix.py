"""A conversation that grew begins, byte for byte, as it did: rendered by llama.cpp's own template."""

import json
import urllib.request
from typing import Any

import pytest

from herdr.pool.canonical import canonical
from herdr.pool.protocols import anthropic, openai, responses
from herdr.pool.protocols import herdr as chat
from herdr.pool.protocols.backend.body import chat_body
from herdr.pool.protocols.dialect import Dialect

Json = dict[str, Any]
SCHEMA: Json = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}
MARK: Json = {"cache_control": {"type": "ephemeral"}}


def rendered(backend: str, dialect: Dialect, body: Json, *, open_ended: bool) -> str:
    """The prompt that a client's body ends up as, with or without what asks the model to speak."""
    request = canonical(dialect.parse(json.dumps(body).encode())).request
    sent = json.loads(
        chat_body(request, model="m", max_tokens=9, kind="llamacpp", slot=0, lower_schema=False, vision=False)
    )
    asked = {**sent, "add_generation_prompt": open_ended}
    message = urllib.request.Request(
        f"{backend}/apply-template", json.dumps(asked).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(message, timeout=20) as answer:
        prompt: str = json.load(answer)["prompt"]
    return prompt


def claude_code(turn: int) -> Json:
    """What Claude Code sends in a turn, as it was recorded: billing, markers, notes in the middle."""
    mark = MARK if turn == 0 else {}
    note: Any = [{"type": "text", "text": "folder: /zoo\n", **MARK}] if turn == 0 else "folder: /zoo\n"
    messages: list[Json] = [
        {"role": "user", "content": [{"type": "text", "text": "Größe? 你好 🐕", **mark}]},
        {"role": "system", "content": note},
    ]
    for n in range(turn):
        calls = [
            {"type": "tool_use", "id": f"toolu_{n}{i}", "name": "Read", "input": {"z": "ü", "a": i}}
            for i in range(2)
        ]
        results = [
            {"type": "tool_result", "tool_use_id": f"toolu_{n}{i}", "content": "line\n", "is_error": i == 1}
            for i in range(2)
        ]
        last = MARK if n == turn - 1 else {}
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *calls]},
            {"role": "user", "content": [*results, {"type": "text", "text": "Go on.", **last}]},
        ]
    billing = f"x-anthropic-billing-header: cc_version=2.1.328.b{turn}f; cc_entrypoint=cli; cch=0{turn};"
    system = [{"type": "text", "text": billing}, {"type": "text", "text": "You are an agent.", **mark}]
    tools = [{"name": "Read", "description": "Reads", "input_schema": SCHEMA, **mark}]
    return {"model": "m", "max_tokens": 9 + turn, "system": system, "messages": messages, "tools": tools}


def codex(turn: int) -> Json:
    """What Codex sends: items with ids that are new each time."""
    items: list[Json] = [
        {"type": "message", "id": f"msg_{turn}", "role": "developer", "content": [_text("Rules.")]},
        {"type": "message", "id": f"msg_{turn}", "role": "user", "content": [_text("你好")]},
    ]
    for n in range(turn):
        items += [
            {"type": "function_call", "name": "Read", "arguments": '{"z": "ü",  "a": 1}', "call_id": f"c{n}"},
            {"type": "function_call_output", "id": f"o{turn}", "call_id": f"c{n}", "output": "line\n"},
        ]
    tools = [{"type": "function", "name": "Read", "description": "Reads", "parameters": SCHEMA}]
    return {"model": "m", "input": items, "tools": tools, "stream": True, "prompt_cache_key": f"k{turn}"}


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}


def opencode(turn: int) -> Json:
    """What a client of chat completions sends."""
    messages: list[Json] = [{"role": "system", "content": "Rules."}, {"role": "user", "content": "你好"}]
    for n in range(turn):
        call = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "Read", "arguments": '{"z": "ü",  "a": 1}'},
        }
        messages += [
            {"role": "assistant", "content": "" if turn % 2 else None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": "line\n"},
        ]
    tools = [{"type": "function", "function": {"name": "Read", "description": "Reads", "parameters": SCHEMA}}]
    return {"model": "m", "messages": messages, "tools": tools}


def plain(turn: int) -> Json:
    """What a client of `/v1/chat` sends."""
    said = [{"role": ("user", "assistant")[n % 2], "content": f" turn {n}\n"} for n in range(2 * turn + 1)]
    return {"messages": [{"role": "system", "content": "Rules."}, *said], "session": f"s{turn}"}


@pytest.mark.parametrize(
    ("dialect", "body"),
    [(anthropic, claude_code), (responses, codex), (openai, opencode), (chat, plain)],
    ids=["claude_code", "codex", "opencode", "plain"],
)
def test_a_turn_begins_as_the_turn_before(backend: str, dialect: Dialect, body: Any) -> None:
    for turn in range(3):
        before = rendered(backend, dialect, body(turn), open_ended=False)
        after = rendered(backend, dialect, body(turn + 1), open_ended=True)
        assert len(before) > 40 and after.startswith(before), (before, after)
        assert "billing" not in after and "cache_control" not in after and "msg_" not in after
