"""Declared waits: "I go on only when that one has delivered". So the gateway sees cycles that no lock shows."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from herdr_sdk.connection import Connection
from herdr_sdk.errors import ConnectionFailed, Deadlock, HerdrError
from herdr_sdk.exchange import Exchange, tell
from herdr_sdk.frames import Answer, Declared, Failure, unwait_frame, wait_frame

TTL_S = 600.0  # the gateway's default; declared again in time, so a block may wait as long as it wants
RENEWALS = 3

_log = logging.getLogger("herdr_sdk")

Key = tuple[str, str]


class WaitingFor:
    """A wait for another owner's result; made by `Hub.waiting_for`, used in `async with`.

    Entering raises Deadlock when that owner waits, directly or through others, for this one. When such a
    cycle closes while the gateway was away, the block is cancelled, and Deadlock comes out of it.
    """

    def __init__(self, waits: "Waits", fields: Mapping[str, str], grace_s: float) -> None:
        self._waits = waits
        self._fields = fields
        self._grace_s = grace_s
        self._declaration: _Declaration | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._interrupted = False

    async def __aenter__(self) -> Self:
        if self._declaration is not None:
            raise RuntimeError("this wait is declared already; make another one with hub.waiting_for()")
        declaration = self._declaration = self._waits.join(self, self._fields)
        try:
            async with asyncio.timeout(self._grace_s):
                await declaration.settled.wait()
            if declaration.error is not None:
                raise declaration.error
        except TimeoutError:
            self._leave()
            raise declaration.late(self._grace_s) from None
        except BaseException:
            self._leave()
            raise
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._declaration is None:
            return
        found = self._declaration.error
        interrupted = self._leave()
        cancelled = isinstance(error, asyncio.CancelledError)
        if interrupted and not cancelled:
            with suppress(
                asyncio.CancelledError
            ):  # it has not been delivered yet; it must not hit what follows
                await asyncio.sleep(0)
        if isinstance(found, Deadlock) and (error is None or (cancelled and interrupted)):
            raise found

    def interrupt(self) -> None:
        """Cancel the block: what it waits for will not come."""
        if self._task is not None and not self._task.done():
            self._interrupted = True
            self._task.cancel()

    def _leave(self) -> bool:
        """Wait no more; True when the block was cancelled by `interrupt` and by nobody else."""
        if self._declaration is not None:
            self._declaration.leave(self)
            self._declaration = None
        task, interrupted = self._task, self._interrupted
        self._task, self._interrupted = None, False
        return interrupted and task is not None and task.uncancel() <= self._cancelling


class Waits:
    """The declared waits of one hub. Blocks of one owner that wait for the same other one share one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._declared: dict[Key, _Declaration] = {}

    def join(self, block: WaitingFor, fields: Mapping[str, str]) -> "_Declaration":
        """Declare it, unless it is declared already, for one more block."""
        key = (fields["owner"], fields["on"])
        declaration = self._declared.get(key)
        if declaration is not None:
            declaration.blocks.append(block)
            return declaration
        declaration = self._declared[key] = _Declaration(self._connection, self, fields, block)
        declaration.begin()
        return declaration

    def forget(self, key: Key) -> None:
        """Take note that it is no longer declared."""
        self._declared.pop(key, None)


class _Declaration:
    """One declared wait: declared anew on each new socket and in time, ended by its last block."""

    def __init__(
        self, connection: Connection, waits: Waits, fields: Mapping[str, str], block: WaitingFor
    ) -> None:
        self.blocks = [block]
        self.settled = asyncio.Event()
        """Set when the gateway has answered."""
        self.error: HerdrError | None = None
        self._connection = connection
        self._waits = waits
        self._fields = fields
        self._wait: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._exchange = Exchange(connection, self._write, self._answered, self._fail)

    def begin(self) -> None:
        """Declare it as soon as there is a socket."""
        self._exchange.begin()

    def leave(self, block: WaitingFor) -> None:
        """Let one block less wait; the last one ends it."""
        self.blocks.remove(block)
        if not self.blocks and (self._wait is not None or self._exchange.ref is None):
            self._withdraw()  # else as soon as the gateway has said what it is called

    def late(self, grace_s: float) -> HerdrError:
        """Return what to raise when the gateway has not answered in time."""
        if self._exchange.trouble is not None:
            return self._exchange.trouble.as_error()
        return ConnectionFailed(
            f"The wait was not declared: the gateway has not answered for {grace_s:g} s. Is it running? "
            "Try again later."
        )

    def _write(self, ref: int) -> bytes:
        return wait_frame(ref, {**self._fields, "ttl_s": TTL_S, "bound": True})

    def _answered(self, frame: Answer) -> None:
        if isinstance(frame, Declared):
            self._wait = frame.wait
            self.settled.set()
            self._timer = asyncio.get_running_loop().call_later(TTL_S / RENEWALS, self._exchange.ask)
            if not self.blocks:
                self._withdraw()
        elif isinstance(frame, Failure):
            self._fail(frame.as_error())

    def _fail(self, error: HerdrError) -> None:
        if self.settled.is_set():
            _log.warning("no longer declared that %(owner)s waits for %(on)s", self._fields)
        self.error = error
        self._wait = None
        self.settled.set()
        self._end()
        if isinstance(error, Deadlock):
            for block in self.blocks:
                block.interrupt()

    def _withdraw(self) -> None:
        if (wait := self._wait) is not None:
            tell(self._connection, lambda ref: unwait_frame(ref, wait))
        self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._exchange.end()
        self._waits.forget((self._fields["owner"], self._fields["on"]))
