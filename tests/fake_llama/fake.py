"""The fake server in a thread of its own, and what tests do with it."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from fake_llama.cues import BEFORE_HEADERS, PATIENCE_S, pulse
from fake_llama.script import Json, Script
from fake_llama.server import Server
from fake_llama.slots import Call, Slots


class FakeLlama(Server):
    """The server in a thread of its own. What tests read may be read at any time; `until` waits for it."""

    def __init__(
        self,
        slots: int = 4,
        n_ctx: int = 8192,
        *,
        ram_cache: bool = False,
        vision: bool = False,
        slots_endpoint: bool = True,
        slot_files: bool = True,
        restores: bool = True,
        system_anywhere: bool = True,
        linger_s: float | None = 0.0,
    ) -> None:
        """`restores=False` says that it restores, and does not, as hybrid models do.

        `linger_s` is how long a slot stays busy after its client has left; None: until `let_go`.
        """
        super().__init__(n_ctx)
        self.slots = Slots(slots, ram_cache, self.cues.changed)
        self.vision = vision
        self.slots_endpoint, self.slot_files, self.restores = slots_endpoint, slot_files, restores
        self.system_anywhere = system_anywhere
        self.linger_s = linger_s
        self.port = 0
        self._ram_cache = ram_cache
        self._runner: web.AppRunner | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-llama", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def script(self, answer: Callable[[Json], Script] | Script) -> None:
        """Set what is answered from now on; a function is asked with each request's body."""
        self.answer = (lambda body: answer) if isinstance(answer, Script) else answer

    def until(self, happened: Callable[[], Any], timeout_s: float = PATIENCE_S) -> None:
        """Wait until something is so; asynchronous tests use `when`."""
        if not self.cues.until(happened, timeout_s):
            states = [(call.slot, call.state) for call in self.requests]
            raise AssertionError(f"it did not happen; requests (slot, state): {states}")

    async def when(self, happened: Callable[[], Any], timeout_s: float = PATIENCE_S) -> None:
        """Wait without holding up the test's own event loop."""
        await asyncio.to_thread(self.until, happened, timeout_s)

    def hold(self, after: int | None = None) -> None:
        """Stop each request in its slot: before its headers, or after so many pieces (its end at the latest)."""
        self.cues.held_at = BEFORE_HEADERS if after is None else after

    def release(self, call: Call | None = None) -> None:
        """Let one held request go on, or all of them and those to come."""
        if call is None:
            self.cues.held_at = None
        for held in list(self.requests) if call is None else [call]:
            self._loop.call_soon_threadsafe(held.go.set)

    def resume(self) -> None:
        """End all stalls and pings of now."""
        self._loop.call_soon_threadsafe(pulse, self.cues.resume)

    def let_go(self) -> None:
        """Free the slots that stay busy although their client has left."""
        self._loop.call_soon_threadsafe(pulse, self.cues.let_go)

    def start(self) -> None:
        """Listen, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(PATIENCE_S)

    def stop(self) -> None:
        """Drop all connections and refuse new ones."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(PATIENCE_S)

    def restart(self, slots: int | None = None) -> None:
        """Drop all connections and all KV, and come back on the same port; saved files stay."""
        self.stop()
        self.slots = Slots(
            len(self.slots.all) if slots is None else slots, self._ram_cache, self.cues.changed
        )
        self.start()

    async def _open(self) -> None:
        self._runner = web.AppRunner(
            self.app(), handler_cancellation=True, access_log=None, shutdown_timeout=0.0
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        for transport in list(self.connections):
            transport.abort()
        self.connections.clear()
        await runner.cleanup()
        for task in list(self.lingering):
            task.cancel()
        await asyncio.gather(*self.lingering, return_exceptions=True)
