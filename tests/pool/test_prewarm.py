import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from scripted_backend import Desk, desk, failing, inquiry, request, until
from virtual_time import VirtualClock, run

from herdr.errors import InvalidInput
from herdr.pool.canonical import canonical
from herdr.pool.failures import ModelError
from herdr.pool.prewarm import RETRY_FIRST_S, RETRY_MAX_S, prewarm, prompt_of
from herdr.pool.request import Message, Text, Tool

SAYS_NOTHING = Message("user", (Text("."),))


@pytest.mark.parametrize(
    "text", ["You are kind.\n", "", '"quoted"', "[1, 2]", '{"role": "system"}', "[" * 5000]
)
def test_text_is_a_system_prompt(text: str) -> None:
    assert prompt_of(text.encode()).messages == (Message("system", (Text(text),)), SAYS_NOTHING)


def test_a_body_of_chat() -> None:
    body = {
        "model": "small",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "tools": [{"name": "ls", "input_schema": {"type": "object"}}],
    }
    found = prompt_of(json.dumps(body).encode())
    assert found.model == "small"
    assert [message.role for message in found.messages] == ["system", "user"]
    assert [tool.name for tool in found.tools] == ["ls"]


@pytest.mark.parametrize("system", ["Be kind.", [{"type": "text", "text": "Be kind."}]])
def test_a_body_with_a_system_prompt_of_its_own(system: object) -> None:
    body = {
        "model": "claude",
        "system": system,
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"name": "ls", "description": "d", "input_schema": {"type": "object"}}],
    }
    found = prompt_of(json.dumps(body).encode())
    assert found.messages == (Message("system", (Text("Be kind."),)), Message("user", (Text("Hi"),)))
    assert found.tools == (Tool("ls", "d", '{"type": "object"}'),)


@pytest.mark.parametrize("data", [b"\xff\xfe", b'{"messages": 7}', b'{"system": 7, "messages": []}'])
def test_what_is_no_prompt(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        prompt_of(data)


def play(main: Callable[[Desk], Awaitable[None]]) -> None:
    clock = VirtualClock()
    it = desk(clock)

    async def whole() -> None:
        await it.open_up()
        await main(it)
        await it.pool.stop()

    run(whole(), clock)


PROMPT = prompt_of(b"You are kind.")


def test_a_prompt_is_evaluated_and_its_slot_left_to_whoever_goes_on_from_it() -> None:
    async def main(it: Desk) -> None:
        await prewarm(it.pool, {"kind": PROMPT})
        (job,) = it.backend.jobs
        assert job.max_tokens == 1 and job.request.messages == canonical(PROMPT).request.messages
        (outcome,) = it.outcomes
        assert outcome.inquiry.caller.agent == "prewarm" and outcome.error is None
        (view,) = it.line.schedule.snapshot(it.clock.now).slots
        assert (view.state, view.cached_tokens) == ("free", 11)
        message = Message("user", (Text("Hello"),))
        asked = request()
        asked = type(asked)("any", (PROMPT.messages[0], message))
        await it.read(inquiry(asked, "agent"))
        assert it.outcomes[-1].slot == outcome.slot

    play(main)


def test_it_is_tried_until_a_backend_takes_it() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.extend([failing("backend_failed")] * 6)
        began = it.clock.now
        await prewarm(it.pool, {"kind": PROMPT})
        assert len(it.backend.jobs) == 7
        waits = [b - a for a, b in pairwise(it.backend.asked_at)]
        assert waits[0] == pytest.approx(RETRY_FIRST_S, abs=0.1)
        assert max(waits) == pytest.approx(RETRY_MAX_S, abs=0.1)
        assert it.clock.now - began < 6 * RETRY_MAX_S

    play(main)


def test_a_prompt_that_is_refused_is_left_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    async def main(it: Desk) -> None:
        it.backend.to_say.append(failing("prompt_too_long"))
        await prewarm(it.pool, {"long": PROMPT, "empty": request(""), "good": request("Hi")})
        assert len(it.backend.jobs) == 2

    with caplog.at_level(logging.INFO, "herdr.pool"):
        play(main)
    assert "the prompt long was not evaluated: scripted: prompt_too_long" in caplog.text
    assert "the prompt empty was not evaluated" in caplog.text
    assert "the prompt good is warm" in caplog.text


def test_a_backend_that_is_away_is_waited_for() -> None:
    async def main(it: Desk) -> None:
        it.backend.to_look.extend([ModelError("backend_unreachable", "gone")] * 8)
        await it.line._lookout.look()
        warming = asyncio.create_task(prewarm(it.pool, {"kind": PROMPT}))
        await until(lambda: it.outcomes)
        assert it.outcomes[0].error == "backend_unreachable"
        await warming
        assert it.outcomes[-1].error is None

    play(main)
