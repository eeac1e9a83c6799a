"""Starts a llama.cpp server as a child, starts it again when it dies, and ends it with the gateway."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import aiohttp

from herdr.errors import StartupError
from herdr.local_model import keeper
from herdr.local_model.program import check_model, find_program, options, script

SLOTS_FOLDER = "slots"  # in the data folder
KEY_VARIABLE = "LLAMA_API_KEY"  # of llama-server; a command line is visible to others
READY_MAX_S = 600.0  # 70 GB from a slow disk; a start that hangs must still end
STEADY_S = 60.0  # ready for so long means that the next death is a new trouble
PAUSE_MAX_S = 60.0  # tried for ever, but at this pace: memory may come free, and a try costs one load
END_MAX_S = keeper.GRACE_S + 3.0
_HEALTH_EVERY_S, _HEALTH_MAX_S = 0.2, 5.0
_TAIL_MAX = 4096  # bytes of what the server said last; a failure names itself in the last lines
_LINES_SHOWN = 3
_STAMP = re.compile(r"^[\d.]+ [A-Z] ")  # of llama.cpp: time since the start, level
_TELLING = re.compile(r"\berror\b|assert|terminate called|out of memory", re.IGNORECASE)
_KEEPER = Path(keeper.__file__)


class _Call(NamedTuple):
    """How the server is called: each time the same."""

    command: Sequence[str]
    environ: Mapping[str, str]


@contextlib.asynccontextmanager
async def local_model(
    path: Path,
    slots: int,
    context: int,
    data_folder: Path,
    log: logging.Logger,
    *,
    api_key: str | None = None,
    pause_s: float = 1.0,
) -> AsyncIterator[str]:
    """Run a llama.cpp server with this model and yield its address once it answers; it ends with the block.

    `context`: tokens of each slot. `api_key`: what its callers have to present, as other users of the machine and
    web pages in a browser reach loopback too. `pause_s`: before the first restart; it doubles. Saved slots go to
    `data_folder/slots`. Raises StartupError when there is no server to run, the file is no model, or the first
    start fails; later ends are told to `log` and mended, at the same address.
    """
    check_model(path)
    program, name = find_program()
    folder = _make_folder(data_folder / SLOTS_FOLDER)
    port = _free_port()
    command = [*program, *options(path, slots, context, port, folder)]
    url = f"http://127.0.0.1:{port}"
    log.info("loading %s with %s at %s: slots %d, tokens in each %d", path.name, name, url, slots, context)
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    watching = asyncio.create_task(_keep_running(_Call(command, _environ(api_key)), url, log, ready, pause_s))
    try:
        await asyncio.wait({watching, ready}, return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            await watching  # raises
        yield url
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError, StartupError):
            await watching


def _environ(api_key: str | None) -> dict[str, str]:
    """Return our environment, with `LLAMA_ARG_…` that people tune their server by, and no other key than this."""
    environ = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    return environ if api_key is None else {**environ, KEY_VARIABLE: api_key}


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the saved slots are what people wrote
    except OSError as error:
        raise StartupError(
            f"{folder}, for the model's saved slots, cannot be made: {error.strerror}; choose another data "
            "folder with --data"
        ) from error
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def pause_after(deaths: int, first_s: float) -> float:
    """Return the seconds to wait after so many deaths in a row: doubled each time, up to the bound."""
    doublings = min(deaths - 1, 16)  # 2 ** 16 is past every bound
    return min(PAUSE_MAX_S, first_s * 2.0**doublings)


async def _keep_running(
    call: _Call, url: str, log: logging.Logger, ready: "asyncio.Future[None]", pause_s: float
) -> None:
    deaths = 0
    while True:
        try:
            async with _child(call) as child:
                steady = await _until_it_ends(child, url, log, ready)
            why = child.last_words()
        except OSError as error:  # no process could be made
            steady, why = False, str(error)
        if not ready.done():
            raise StartupError(f"the local model did not start: {why}")
        deaths = 1 if steady else deaths + 1
        pause = pause_after(deaths, pause_s)
        log.error("the local model ended (%s); starting it again in %g s", why, pause)
        await asyncio.sleep(pause)


class _Child:
    """One run of the server: its process, and the end of what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said = bytearray()
        self._why = ""
        self.ended = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        """Read what it says until nobody is left who could say more."""
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(65536):
            self._said += chunk
            del self._said[:-_TAIL_MAX]

    async def end(self) -> None:
        """End it: by its stdin, and after the grace by SIGKILL, with whatever it has started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.wait({self.ended}, timeout=END_MAX_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # it leads a group of its own
        await self.ended
        await self._process.wait()

    def give_up(self, why: str) -> None:
        """Note why it is ended though it runs."""
        self._why = why

    def last_words(self) -> str:
        """Say in one line why it ended, once it has."""
        why = self._why or _how(self._process.returncode)
        said = " | ".join(telling_lines(self._said.decode("utf-8", "replace")))
        return f"{why}: {said}" if said else why


def telling_lines(said: str) -> list[str]:
    """Return the first lines that name an error: what follows is only its consequence; else the last ones."""
    lines = [*dict.fromkeys(_STAMP.sub("", line).strip() for line in said.splitlines() if line.strip())]
    return [line for line in lines if _TELLING.search(line)][:_LINES_SHOWN] or lines[-_LINES_SHOWN:]


def _how(code: int | None) -> str:
    number = (code or 0) - keeper.SIGNALLED if (code or 0) > keeper.SIGNALLED else -min(code or 0, 0)
    if number == signal.SIGKILL:
        return "killed by SIGKILL, perhaps for want of memory: fewer slots or less context need less"
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"exit code {code}"


@contextlib.asynccontextmanager
async def _child(call: _Call) -> AsyncIterator[_Child]:
    process = await asyncio.create_subprocess_exec(
        *script(_KEEPER),
        *call.command,
        env=call.environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is for the gateway, which needs the model while it stops
    )
    child = _Child(process)
    try:
        yield child
    finally:
        await child.end()


async def _until_it_ends(child: _Child, url: str, log: logging.Logger, ready: "asyncio.Future[None]") -> bool:
    """Wait for its end, and say when it is ready; returns whether it was so for long."""
    now = asyncio.get_running_loop().time
    started = now()
    try:
        async with asyncio.timeout(READY_MAX_S):
            if not await _is_ready(child, url):
                return False
    except TimeoutError:
        child.give_up(f"not ready within {READY_MAX_S:g} s")
        return False
    log.info("the local model is ready after %.1f s", now() - started)
    if not ready.done():
        ready.set_result(None)
    since = now()
    await asyncio.wait({child.ended})
    return now() - since >= STEADY_S


async def _is_ready(child: _Child, url: str) -> bool:
    """Wait until `/health` says so; False when the child ended before."""
    timeout = aiohttp.ClientTimeout(total=_HEALTH_MAX_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while not child.ended.done():
            try:
                async with session.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return True
            except (aiohttp.ClientError, TimeoutError):
                pass  # not listening yet
            await asyncio.wait({child.ended}, timeout=_HEALTH_EVERY_S)
    return False
