"""A lock as the gateway granted it: renewed in the background, asked for anew on each new socket, given back.

The holder of a lease must be told in time that it may have lost it: by its own clock, counted from when it
*sent* the last renewal that was confirmed, so that a lease never ends later here than at the gateway.
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html says why a token is needed too.
"""

import asyncio
from typing import NamedTuple

from herdr_sdk.connection import Connection
from herdr_sdk.errors import HerdrError, LockLost
from herdr_sdk.exchange import Exchange, tell
from herdr_sdk.frames import (
    Answer,
    Failure,
    Leased,
    Unlocked,
    cancel_frame,
    lock_frame,
    renew_frame,
    unlock_frame,
)

RENEWALS = 3  # in the time of a lease: one may come late, and the next one is still in time

_BROKE = "the connection broke, and the lock had ended when it came back"
_UNKNOWN = "the gateway does not know it any more: its time ran out, or it was released by force"
_LATE = "no renewal was confirmed in time"
_GIVEN_BACK = "it was given back while one more began to use it"
_UNSURE = "the gateway did not confirm that it was held to the end"

Done = asyncio.Future[None]


class Grant(NamedTuple):
    """What was granted; whoever holds it works under this token to the end."""

    lock: str
    token: int
    paths: tuple[str, ...]


class Lease:
    """One granted lock and whoever uses it: an owner who asks again for what it holds gets the same one."""

    def __init__(self, connection: Connection, leases: "Leases", granted: Leased, ttl_s: float) -> None:
        self.granted = granted
        """As last confirmed."""
        self.grant = Grant(granted.lock, granted.token, granted.paths)
        self.lost = asyncio.Event()
        self._loss: str | None = None
        self._connection = connection
        self._leases = leases
        self._ttls = [ttl_s]
        self._stand_in: tuple[Lease, float] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._renewing: list[Done] = []
        self._leaving: Done | None = None
        self._asked_at = 0.0
        self._exchange = Exchange(connection, self._write, self._answered, self._failed)
        self._count_from(asyncio.get_running_loop().time())
        self._exchange.begin(fresh=False)

    @property
    def error(self) -> LockLost | None:
        """What to raise when it was lost; None while it is held."""
        return None if self._loss is None else LockLost(self._loss, *self.grant)

    # --- for those who use it ---------------------------------------------------------------------

    def join(self, granted: Leased, ttl_s: float) -> None:
        """Let one more use it, who was granted the same lock."""
        self.granted = granted
        self._ttls.append(ttl_s)
        self._left()
        self._count_from(asyncio.get_running_loop().time())
        if granted.ttl_s < max(self._ttls):
            self._exchange.ask()

    def renew(self, old_ttl_s: float, ttl_s: float) -> Done:
        """Begin the lease anew with another length; the future is done when the gateway has confirmed it."""
        done: Done = asyncio.get_running_loop().create_future()
        if (error := self.error) is not None:
            done.set_exception(error)
            return done
        self._ttls[self._ttls.index(old_ttl_s)] = ttl_s
        self._renewing.append(done)
        self._exchange.ask()
        return done

    def leave(self, ttl_s: float) -> Done:
        """Let one less use it, the last one gives it back; once the future is done, look at `error`."""
        self._ttls.remove(ttl_s)
        done: Done = asyncio.get_running_loop().create_future()
        if not self._ttls:
            self._withdraw()
        if self._loss is None and not self._ttls:
            self._leaving = done
            self._exchange.ask()
            return done
        if not self._ttls:
            self._end()
            if self._stand_in is not None:
                lease, held_s = self._stand_in
                return lease.leave(held_s)
        elif self.granted.ttl_s != max(self._ttls):
            self._exchange.ask()
        done.set_result(None)
        return done

    def doubt(self) -> None:
        """Take it for lost: it was given back, and no answer came. Giving it back goes on."""
        self._lose(_UNSURE)

    # --- for the exchange -------------------------------------------------------------------------

    def _write(self, ref: int) -> bytes:
        self._asked_at = asyncio.get_running_loop().time()
        held = self.granted
        if not self._ttls:
            return unlock_frame(ref, held.lock, held.token)
        if not self._exchange.fresh:
            return renew_frame(ref, held.lock, held.token, max(self._ttls))
        names = ("paths", "owner", "workspace", "mode", "purpose", "session")
        fields = {name: value for name in names if (value := getattr(held, name)) is not None}
        return lock_frame(ref, {**fields, "ttl_s": max(self._ttls), "wait_s": 0, "bound": True})

    def _answered(self, frame: Answer) -> None:
        if isinstance(frame, Unlocked):
            if self._ttls:
                self._lose(_GIVEN_BACK)
            self._end()
        elif isinstance(frame, Failure):
            self._refused(frame)
        elif isinstance(frame, Leased) and self._loss is None and frame.token == self.grant.token:
            self.granted = frame
            self._count_from(self._asked_at)
            while self._renewing:
                _finish(self._renewing.pop())
        elif isinstance(frame, Leased):
            self._lose(_BROKE)
            self._exchange.end()
            # Under its new token it keeps others from what the block, which knows nothing yet, still does.
            self._stand_in = (self._leases.adopt(frame, frame.ttl_s), frame.ttl_s)

    def _refused(self, failure: Failure) -> None:
        if failure.code == "locked":
            others = ", ".join(dict.fromkeys(holder.owner for holder in failure.conflicts)) or "somebody else"
            self._lose(f"the connection broke, and when it came back {others} had it")
        elif failure.code in ("unknown_lock", "fenced"):
            self._lose(_UNKNOWN)
        else:
            self._lose(failure.as_error().detail)
        self._end()

    def _failed(self, error: HerdrError) -> None:
        self._lose(error.detail)
        self._end()

    # --- time and the end -------------------------------------------------------------------------

    def _count_from(self, at: float) -> None:
        """Take the lease to have begun at `at`, in the loop's seconds."""
        self._stop_timers()
        if self._loss is None:
            loop, ttl_s = asyncio.get_running_loop(), self.granted.ttl_s
            self._timers = [
                loop.call_at(at + ttl_s / RENEWALS, self._renew_in_time),
                loop.call_at(at + ttl_s, self._lose, _LATE),
            ]

    def _renew_in_time(self) -> None:
        if self._exchange.ref is None:  # else what is unanswered renews it too, or gives it back
            self._exchange.ask()

    def _lose(self, reason: str) -> None:
        """Take note that somebody else may have it. Once lost it stays so, whatever is heard later."""
        if self._loss is None:
            self._loss = reason
            self._stop_timers()
            self._leases.forget(self)
            self.lost.set()
            for done in self._renewing:
                if not done.done():
                    done.set_exception(LockLost(reason, *self.grant))
            self._renewing = []
            self._left()

    def _end(self) -> None:
        self._stop_timers()
        self._exchange.end()
        self._leases.forget(self)
        self._left()

    def _withdraw(self) -> None:
        """Take back the asking anew that is unanswered: what it may be granted, nobody would give back."""
        if self._exchange.fresh and (asked := self._exchange.ref) is not None:
            tell(self._connection, lambda ref: cancel_frame(ref, asked))

    def _left(self) -> None:
        if self._leaving is not None:
            _finish(self._leaving)
            self._leaving = None

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []


class Leases:
    """What one hub holds, by the lock's id."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[str, Lease] = {}

    def adopt(self, granted: Leased, ttl_s: float) -> Lease:
        """Return the lease of what was granted: a new one, or that which has this lock already."""
        lease = self._held.get(granted.lock)
        if lease is None:
            lease = self._held[granted.lock] = Lease(self._connection, self, granted, ttl_s)
        else:
            lease.join(granted, ttl_s)
        return lease

    def forget(self, lease: Lease) -> None:
        """Take note that the lease has ended."""
        if self._held.get(lease.grant.lock) is lease:
            del self._held[lease.grant.lock]


def _finish(done: Done) -> None:
    """Tell whoever waits."""
    if not done.done():
        done.set_result(None)
