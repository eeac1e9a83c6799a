"""Several agents at once on a real llama.cpp: each keeps a slot of its own."""

import asyncio

import anthropic
from gateway import GatewayProcess

AGENTS = {
    "zoo": {"X-Claude-Code-Session-Id": "zoo"},
    "zoo/helper": {"X-Claude-Code-Session-Id": "zoo", "x-claude-code-agent-id": "helper"},
    "farm": {"X-Claude-Code-Session-Id": "farm"},
}


async def test_two_agents_and_a_sub_agent_keep_three_slots(real: GatewayProcess) -> None:
    """As Claude Code names them: a sub-agent comes under its parent's session."""
    client = anthropic.AsyncAnthropic(base_url=real.url, api_key="local", timeout=100, max_retries=0)

    async def turn(agent: str, *said: str) -> tuple[str, int, str]:
        raw = await client.messages.with_raw_response.create(
            model="any",
            max_tokens=6,
            system=f"You are {agent}, a short-spoken helper.",
            messages=[{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)],  # type: ignore[misc]
            tools=[{"name": "look", "input_schema": {"type": "object"}}],
            extra_headers=AGENTS[agent],
        )
        message = await raw.parse()
        text = "".join(block.text for block in message.content if block.type == "text")
        return raw.headers["x-herdr-slot"], message.usage.cache_read_input_tokens or 0, text

    async with client:
        first = await asyncio.gather(*(turn(agent, f"I am {agent}.") for agent in AGENTS))
        again = await asyncio.gather(
            *(
                turn(agent, f"I am {agent}.", text, "And you?")
                for agent, (_, _, text) in zip(AGENTS, first, strict=True)
            )
        )
    assert sorted(slot for slot, _, _ in first) == ["0", "1", "2"]
    assert [slot for slot, _, _ in again] == [slot for slot, _, _ in first]
    assert all(cached > 20 for _, cached, _ in again), again
