"""One request at a time that is asked again on each new socket: what stands behind locks and declared waits."""

import asyncio
from collections.abc import Callable

from herdr_sdk.backoff import Backoff
from herdr_sdk.connection import Connection
from herdr_sdk.errors import HerdrError
from herdr_sdk.frames import PASSING, Answer, Failure

BUSY = (*PASSING, "too_many_waiters")  # of one connection or in all: places become free all the time


class Exchange:
    """Asks when told to and on each new socket, until it is ended. Implements `herdr_sdk.connection.Listener`.

    `write` returns the frame for a ref and is called at the moment of sending, so it can say what is true
    then. `answered` gets what comes back, except that the gateway is in trouble at the moment: then it is
    asked again a little later.
    """

    def __init__(
        self,
        connection: Connection,
        write: Callable[[int], bytes],
        answered: Callable[[Answer], None],
        failed: Callable[[HerdrError], None],
        backoff: Backoff | None = None,
    ) -> None:
        self._connection = connection
        self._write = write
        self._answered = answered
        self._failed = failed
        self._backoff = backoff or Backoff()
        self._retry: asyncio.TimerHandle | None = None
        self._over = False
        self.ref: int | None = None
        """Of the request that is unanswered on the present socket."""
        self.fresh = True
        """True until the gateway has answered on the present socket."""
        self.trouble: Failure | None = None
        """Why the newest request is to be asked again, None when it is not."""

    def begin(self, fresh: bool = True) -> None:
        """Begin to listen; ask at once if there is a socket, unless it is not `fresh`: known there already."""
        self.fresh = fresh
        self._connection.listen(self)
        if self._connection.failure is not None:
            self.failed(self._connection.failure)

    def ask(self) -> None:
        """Ask now, in place of what is unanswered; without a socket, as soon as there is one."""
        self._forget()
        if self._connection.up and not self._over:
            self.ref = self._connection.claim(self._on_frame)
            self._connection.post(self._write(self.ref))

    def end(self) -> None:
        """Ask no more and hear no more. Safe to call twice."""
        self._over = True
        self._forget()
        self._connection.unlisten(self)

    def opened(self) -> None:
        """See `Listener`."""
        if self.fresh:
            self.ask()

    def lost(self, close_code: int | None) -> None:
        """See `Listener`."""
        self._forget()
        self.fresh = True

    def failed(self, error: HerdrError) -> None:
        """See `Listener`."""
        self.end()
        self._failed(error)

    def _on_frame(self, frame: Answer, size: int) -> None:
        self._forget()
        if isinstance(frame, Failure) and frame.code in BUSY:
            self.trouble = frame
            self._retry = asyncio.get_running_loop().call_later(self._backoff.next_s(), self.ask)
        else:
            self.fresh = False
            self.trouble = None
            self._backoff.reset()
            self._answered(frame)

    def _forget(self) -> None:
        if self.ref is not None:
            self._connection.release(self.ref)
            self.ref = None
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None


def tell(connection: Connection, write: Callable[[int], bytes]) -> None:
    """Send a frame whose answer nobody needs; without a socket there is nobody to tell."""
    ref = connection.claim(lambda frame, size: None)
    connection.post(write(ref))
    connection.release(ref)
