"""Locks as one uses them: `async with hub.lock("src/a.py", wait=10) as lock:`."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, NamedTuple, Self, TypedDict

from herdr_sdk.connection import Connection
from herdr_sdk.errors import ConnectionFailed, HerdrError, LockLost
from herdr_sdk.exchange import Exchange, tell
from herdr_sdk.frames import Answer, Failure, Leased, cancel_frame, lock_frame
from herdr_sdk.lease import Lease, Leases

Mode = Literal["write", "intent"]

WAIT_MAX_S = 600.0  # the longest that the gateway lets one stand in line; longer waits ask again
RELEASE_S = 30.0  # as long as a publish waits by default for a lost connection
ABANDON_S = 2.0  # the same when an error leaves the block: then that error is what matters


class LockFields(TypedDict, total=False):
    """The keyword arguments of `Hub.lock`, which says what each is for."""

    wait: float
    ttl: float
    mode: Mode
    purpose: str | None
    workspace: str
    owner: str | None
    session: str | None


class Wish(NamedTuple):
    """What a lock is to be, and through what it is asked for."""

    connection: Connection
    leases: Leases
    fields: Mapping[str, object]
    """As the gateway calls them."""
    wait_s: float


class Lock:
    """A lock on one or several paths, all or none; made by `Hub.lock`. Use it in `async with`, or by hand
    with `acquire` and `release`.

    A lost lock cannot be missed: leaving the block, or `release`, raises LockLost.
    """

    def __init__(self, wish: Wish, ttl_s: float, grace_s: float) -> None:
        self._wish = wish
        self._ttl_s = ttl_s
        self._grace_s = grace_s
        self._lease: Lease | None = None
        self._held = False

    @property
    def lock(self) -> str:
        """Its id at the gateway."""
        return self._granted.grant.lock

    @property
    def token(self) -> int:
        """The fencing token. It rises with every grant; who checks it can refuse a holder that is late."""
        return self._granted.grant.token

    @property
    def paths(self) -> tuple[str, ...]:
        """What is locked, as the gateway names it; perhaps more than was asked for, if one held that already."""
        return self._granted.grant.paths

    @property
    def expires(self) -> str:
        """RFC 3339, by the gateway's clock: when it would end if it were not renewed any more."""
        return self._granted.granted.expires

    @property
    def lost(self) -> bool:
        """True once somebody else may have it."""
        return self._lease is not None and self._lease.lost.is_set()

    @property
    def error(self) -> LockLost | None:
        """Why it was lost, None if it was not."""
        return None if self._lease is None else self._lease.error

    async def wait_lost(self) -> None:
        """Return when the lock is lost; for a task beside the work, which then stops it."""
        await self._granted.lost.wait()

    async def acquire(self) -> Self:
        """Get the lock, waiting in line for as long as was said.

        Raises Conflict, Deadlock, ServerError (`bad_path`, `unknown_workspace` …), Unauthorized, or
        ConnectionFailed when the gateway was away for longer than that and the connect time-out.
        """
        if self._held:
            raise RuntimeError("this lock is held already; make another one with hub.lock()")
        asking = _Asking(self._wish, self._ttl_s)
        self._lease = await asking.lease(self._wish.wait_s + self._grace_s)
        self._held = True
        return self

    async def release(self) -> None:
        """Give it back; raises LockLost if it was not held until now. Does nothing the second time."""
        if self._held:
            await self._give_back(RELEASE_S)
            if (error := self.error) is not None:
                raise error

    async def renew(self, ttl: float | None = None) -> None:
        """Begin the lease anew now, from now on with `ttl` seconds; raises LockLost.

        Not needed to keep the lock: that happens by itself.
        """
        if not self._held:
            raise RuntimeError("this lock is not held")
        old, new = self._ttl_s, self._ttl_s if ttl is None else float(ttl)
        renewed = self._granted.renew(old, new)
        self._ttl_s = new if self.error is None else old
        await renewed

    async def __aenter__(self) -> Self:
        return await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.release()
            return
        await self._give_back(ABANDON_S)
        if self.lost:
            error.add_note(str(self.error))

    @property
    def _granted(self) -> Lease:
        if self._lease is None:
            raise RuntimeError("this lock has not been acquired; use it in `async with`, or call acquire()")
        return self._lease

    async def _give_back(self, within_s: float) -> None:
        if self._held:
            self._held = False
            lease = self._granted
            done, _ = await asyncio.wait((lease.leave(self._ttl_s),), timeout=within_s)
            if not done:
                lease.doubt()


class _Asking:
    """One attempt to get a lock: asked again on a new socket, and in parts that the gateway can wait for."""

    def __init__(self, wish: Wish, ttl_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._wish = wish
        self._ttl_s = ttl_s
        self._until = loop.time() + wish.wait_s
        self._more = False
        self._answer: asyncio.Future[Lease] = loop.create_future()
        self._exchange = Exchange(wish.connection, self._write, self._answered, self._failed)

    async def lease(self, within_s: float) -> Lease:
        """Return what was granted. Whoever no longer wants it, cancelled or out of time, leaves the line."""
        try:
            async with asyncio.timeout(within_s):
                self._exchange.begin()
                return await self._answer
        except TimeoutError:
            self._give_up()
            raise self._late(within_s) from None
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            self._exchange.end()

    def _write(self, ref: int) -> bytes:
        left_s = max(0.0, self._until - asyncio.get_running_loop().time())
        self._more = left_s > WAIT_MAX_S
        return lock_frame(ref, {**self._wish.fields, "wait_s": min(left_s, WAIT_MAX_S)})

    def _answered(self, frame: Answer) -> None:
        if isinstance(frame, Leased):
            lease = self._wish.leases.adopt(frame, self._ttl_s)
            if self._answer.done():  # cancelled, and has not run since
                lease.leave(self._ttl_s)
            else:
                self._answer.set_result(lease)
        elif isinstance(frame, Failure) and frame.code == "locked" and self._more:
            self._exchange.ask()
        elif isinstance(frame, Failure):
            self._failed(frame.as_error())

    def _failed(self, error: HerdrError) -> None:
        if not self._answer.done():
            self._answer.set_exception(error)

    def _give_up(self) -> None:
        answer = self._answer
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            answer.result().leave(self._ttl_s)
        elif (asked := self._exchange.ref) is not None:
            tell(self._wish.connection, lambda ref: cancel_frame(ref, asked))

    def _late(self, within_s: float) -> HerdrError:
        if self._exchange.trouble is not None:
            return self._exchange.trouble.as_error()
        why = "does not answer" if self._wish.connection.up else "cannot be reached"
        return ConnectionFailed(
            f"The lock was not granted: the gateway {why} for {within_s:g} s. Is it running? Try again later."
        )
