"""The locks and waits of one WebSocket: asked for side by side, and ended with it where they are bound to it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from herdr.errors import FieldError, HerdrError, InvalidInput, NotFound
from herdr.locks.refusals import Fenced, TooMany
from herdr.locks.views import Leased
from herdr.web.auth import Caller
from herdr.web.bodies import wrong
from herdr.web.frames import Lock, LockFrame, Ref, Renew, Unlock, Unwait, Wait
from herdr.web.lock_desk import CLOSED, Desk
from herdr.web.locks_api import ask, declare
from herdr.web.problems import Refused
from herdr.web.socket import Socket
from herdr.web.surface import LOCKS

ASKS_MAX = 64
"""Locks of one connection that are asked for and not answered; a tool works on a handful of files."""
OTHERS_MAX = 256  # its other lock operations under way: they take milliseconds, and pass the asks that wait
ASKS_KEPT = 256  # answered asks that can be given up by their ref: a `cancel` may cross its answer
BOUND_MAX = 10_000  # as many as the lock table holds; beyond that the oldest have long expired

_log = logging.getLogger("herdr.web")

Bindings = dict[str, set["LockChannels"]]
"""By lock or wait, the connections that it ends with: all that asked for it, so the last of them.

A client that comes back before its old connection is known to be dead asks for what it holds, and must not lose
it when that one ends; nor must one of two programs that go by the same name, when the other ends.
"""


class Asked:
    """One lock that a client asked for over this connection."""

    __slots__ = ("answered", "held", "is_new", "task", "waits")

    def __init__(self, waits: bool) -> None:
        self.waits = waits
        """Whether it may stand in line for long."""
        self.task: asyncio.Task[None]
        self.held: Leased | None = None
        self.is_new = False
        """Whether its owner did not have it before."""
        self.answered = False


class LockChannels:
    """Carries out lock operations without holding up the reading of the socket."""

    def __init__(self, desk: Desk, socket: Socket, caller: Caller, bindings: Bindings) -> None:
        self._desk = desk
        self._socket = socket
        self._caller = caller
        self._bindings = bindings
        self._asked: dict[Ref, Asked] = {}
        self._bound: dict[str, int | None] = {}
        """Token by lock; None by wait."""
        self._asking: set[asyncio.Task[None]] = set()
        self._others: set[asyncio.Task[None]] = set()

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """What is under way."""
        return self._asking | self._others

    def begin(self, frame: LockFrame) -> None:
        """Start to carry a frame out; raises HerdrError when it cannot be."""
        self._need_scope()
        if isinstance(frame, Lock):
            self._begin_ask(frame)
            return
        if len(self._others) >= OTHERS_MAX:
            raise _too_many(OTHERS_MAX)
        self._spawn(self._others, lambda: self._carry_out(frame), frame.ref)

    async def carried(self, tokens: Sequence[int]) -> None:
        """Renew the leases whose tokens a publish carries; raises HerdrError."""
        self._need_scope()
        await self._desk.carried(tokens)

    def stop_waiting(self) -> None:
        """Leave every line: the gateway stops. What is decided at once, or was granted, is still answered."""
        for asked in self._asked.values():
            if asked.waits and asked.held is None:
                asked.task.cancel()

    async def end(self, *, keeps_bound: bool) -> None:
        """End with the connection.

        `keeps_bound`: what is bound stays, because the gateway ended the connection, at a stop or because the
        client does not answer. A client comes back after the restart and asks for what it holds, and a halted one
        goes on where it was; meanwhile their leases keep others off half-done work.
        """
        for task in self._asking:
            task.cancel()
        if tasks := self.tasks:
            await asyncio.wait(tasks)
        mine = {key: token for key, token in self._bound.items() if self._leave(key)}
        if not keeps_bound:
            for asked in self._asked.values():
                if asked.held and _is_unheard(asked) and asked.held.lock not in mine:
                    self._desk.give_back(asked.held.lock)
            await asyncio.gather(*(self._let_go(key, token) for key, token in mine.items()))

    def _need_scope(self) -> None:
        if not self._caller.may(LOCKS):
            raise Refused("missing_scope", f"the token {self._caller.name!r} lacks the scope {LOCKS!r}")

    def _begin_ask(self, frame: Lock) -> None:
        old = self._asked.get(frame.ref)
        if old is not None and not old.task.done():
            raise InvalidInput(f"the ref {frame.ref!r} asks for a lock already", "bad_frame")
        if len(self._asking) >= ASKS_MAX:
            raise _too_many(ASKS_MAX)
        self._asked.pop(frame.ref, None)
        asked = self._asked[frame.ref] = Asked(frame.wait_s > 0)
        asked.task = self._spawn(self._asking, lambda: self._ask(frame, asked), frame.ref)
        done = [ref for ref, one in self._asked.items() if one.task.done()]
        for ref in done[: max(0, len(done) - ASKS_KEPT)]:
            del self._asked[ref]

    async def _ask(self, frame: Lock, asked: Asked) -> None:
        held, is_new = await ask(self._desk, frame, self._caller)
        asked.held, asked.is_new = held, is_new
        if frame.bound:
            self._bind(held.lock, held.token)
        await self._answer(frame, held)
        asked.answered = True

    async def _carry_out(self, frame: Unlock | Renew | Wait | Unwait) -> None:
        if isinstance(frame, Unlock):
            await self._unlock(frame)
            await self._answer(frame)
        elif isinstance(frame, Renew):
            await self._answer(frame, await self._desk.renew(frame.lock, frame.token, frame.ttl_s))
        elif isinstance(frame, Wait):
            wait = await declare(self._desk, frame, self._caller)
            if frame.bound:
                self._bind(wait["wait"], None)
            await self._answer(frame, wait)
        else:
            await self._desk.end_wait(frame.wait)
            self._unbind(frame.wait)
            await self._answer(frame)

    async def _unlock(self, frame: Unlock) -> None:
        if frame.cancel is not None:
            if frame.lock is not None or frame.token is not None:
                raise wrong(FieldError("cancel", "goes without lock and token"))
            await self._give_up(frame.cancel)
        elif frame.lock is None or frame.token is None:
            raise wrong(FieldError("token", "required: lock and token, or cancel with the ref that asked"))
        else:
            await self._desk.release(frame.lock, frame.token)
            self._unbind(frame.lock)

    async def _give_up(self, ref: Ref) -> None:
        """Leave the line, or release what was granted, unless it was held before under another ask."""
        asked = self._asked.get(ref)
        if asked is None:
            raise InvalidInput(f"no lock was asked for under the ref {ref!r}", "unknown_ref")
        asked.task.cancel()
        await asyncio.wait((asked.task,))
        held = asked.held
        if held is None or not asked.is_new or self._asked.get(ref) is not asked:
            return
        del self._asked[ref]
        if not any(other.held and other.held.lock == held.lock for other in self._asked.values()):
            await self._let_go(held.lock, held.token, "released")
            self._unbind(held.lock)

    async def _let_go(self, key: str, token: int | None, reason: str = CLOSED) -> None:
        try:
            if token is None:
                await self._desk.end_wait(key)
            else:
                await self._desk.release(key, token, reason)
        except (NotFound, Fenced):
            pass  # it has ended already
        except HerdrError as error:
            _log.warning("a lock stays until its lease ends: %s", error.detail)

    def _bind(self, key: str, token: int | None) -> None:
        self._bound.pop(key, None)
        self._bound[key] = token
        self._bindings.setdefault(key, set()).add(self)
        if len(self._bound) > BOUND_MAX:
            self._unbind(next(iter(self._bound)))

    def _unbind(self, key: str) -> None:
        self._bound.pop(key, None)
        self._leave(key)

    def _leave(self, key: str) -> bool:
        """Be bound no more; tell whether this was the last connection that it ends with."""
        bound = self._bindings.get(key)
        if bound is None or self not in bound:
            return False
        bound.remove(self)
        if not bound:
            del self._bindings[key]
        return not bound

    async def _answer(self, frame: LockFrame, told: Leased | dict[str, Any] | None = None) -> None:
        op = type(frame).__struct_config__.tag
        await self._socket.answer({"op": op, "ref": frame.ref, **(msgspec.to_builtins(told) if told else {})})

    def _spawn(
        self, tasks: set[asyncio.Task[None]], work: Callable[[], Coroutine[Any, Any, None]], ref: Ref
    ) -> asyncio.Task[None]:
        task = asyncio.create_task(self._until_told(work, ref))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def _until_told(self, work: Callable[[], Coroutine[Any, Any, None]], ref: Ref) -> None:
        with contextlib.suppress(OSError):  # the client has gone; the receiving side hears of it too
            try:
                await work()
            except HerdrError as error:
                await self._socket.answer_error(error, ref)
            except OSError:
                raise
            except Exception:  # noqa: BLE001 - told to the client, which else waits in vain
                _log.exception("a lock operation has failed")
                mistake = HerdrError("the gateway made a mistake; its log says which")
                await self._socket.answer_error(mistake, ref)


def _is_unheard(asked: Asked) -> bool:
    return asked.is_new and not asked.answered


def _too_many(limit: int) -> TooMany:
    return TooMany(
        f"{limit} lock operations of this connection are under way; wait for their answers",
        "too_many_waiters",
    )
