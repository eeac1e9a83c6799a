"""Several agents on a real llama.cpp: each keeps a slot of its own, whatever they have in common."""

import asyncio
from typing import cast

import anthropic
from anthropic.types import MessageParam, ToolParam
from gateway import GatewayProcess

AGENTS = {  # as Claude Code names them: a sub-agent comes under its parent's session
    "zoo": {"X-Claude-Code-Session-Id": "zoo"},
    "helper": {"X-Claude-Code-Session-Id": "zoo", "x-claude-code-agent-id": "helper"},
    "farm": {"X-Claude-Code-Session-Id": "farm"},
}
SHARED = (
    "You are a short-spoken helper who keeps to facts about animals, the weather of cities, and the time."
)
TOOLS: list[ToolParam] = [{"name": "look", "description": "Looks at it", "input_schema": {"type": "object"}}]


async def test_two_agents_and_a_sub_agent_keep_three_slots(real: GatewayProcess) -> None:
    """Left to itself, llama.cpp puts the second into the slot of the first, as they begin alike."""
    client = anthropic.AsyncAnthropic(base_url=real.url, api_key="local", timeout=100, max_retries=0)

    async def turn(agent: str, *said: str) -> tuple[str, anthropic.types.Message]:
        messages = [
            cast(MessageParam, {"role": ("user", "assistant")[n % 2], "content": text})
            for n, text in enumerate(said)
        ]
        raw = await client.messages.with_raw_response.create(
            model="any",
            max_tokens=6,
            system=SHARED,
            messages=messages,
            tools=TOOLS,
            extra_headers=AGENTS[agent],
        )
        return raw.headers["x-herdr-slot"], await raw.parse()

    def again(agent: str) -> list[str]:
        message = first[agent][1]
        answer = "".join(block.text for block in message.content if block.type == "text")
        return [f"I am {agent}, and I have a question.", answer, "And you?"]

    async with client:
        first = {agent: await turn(agent, f"I am {agent}, and I have a question.") for agent in AGENTS}
        second = await asyncio.gather(*(turn(agent, *again(agent)) for agent in AGENTS))
    assert sorted(slot for slot, _ in first.values()) == ["0", "1", "2"]
    for (slot, before), (slot_then, after) in zip(first.values(), second, strict=True):
        assert slot_then == slot
        held = before.usage.input_tokens + (before.usage.cache_read_input_tokens or 0)
        assert (after.usage.cache_read_input_tokens or 0) >= held, (held, after.usage)
