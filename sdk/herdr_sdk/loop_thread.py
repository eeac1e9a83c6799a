"""An event loop on a thread of its own: what the blocking hub stands on."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from herdr_sdk.errors import ConnectionFailed

_T = TypeVar("_T")


class LoopThread:
    """Runs coroutines for other threads. It is a daemon, so that a script that forgets to close still exits."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="herdr-sdk", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """False once it was stopped."""
        return not self._loop.is_closed()

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Begin some work; raises ConnectionFailed once it was stopped."""
        if not self.running:
            work.close()
            raise ConnectionFailed("The hub is closed. Open a new one to go on.")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do some work and return its result; raises what it raises, and ConnectionFailed once stopped."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C in the caller ends the work too
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
