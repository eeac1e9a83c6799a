"""What clients ask of the tasks: create, claim, hand over, ask, answer, end, look. One board serves all fronts."""

import asyncio
import heapq
from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from herdr.bus.errand import ERRAND_BYTES
from herdr.errors import HerdrError
from herdr.event import Lane
from herdr.tasking.endings import Decide
from herdr.tasking.held import HeldTasks
from herdr.tasks.checks import bytes_of, check_known
from herdr.tasks.refusals import NotHolder
from herdr.tasks.task import Ask, New, Note, Task
from herdr.tasks.views import listed_view, task_view

SLICE = 256  # tasks that are looked at between two turns of the event loop: well below 1 ms

View = dict[str, Any]


class Created(NamedTuple):
    """A task, and whether it was not there before."""

    view: View
    is_new: bool


class Board:
    """Where requests become decisions; every error says who, why, until when and what to do.

    Everything may raise LogUnavailable, and HerdrError `overloaded`.
    """

    def __init__(self, held: HeldTasks, new_id: Callable[[], str]) -> None:
        self._held = held
        self._table = held.table
        self._new_id = new_id

    async def create(self, new: New) -> Created:
        """Create a task, or return the one that was created by the same request before.

        Raises TaskConflict (`task_exists`), TooManyTasks.
        """
        new = replace(new, task=new.task or self._new_id())
        ruling = await self._held.decide(
            lambda seq, now_us: self._table.create(new, seq, now_us),
            Lane.P1,
            bytes_of(new.note) + len(new.description) + ERRAND_BYTES,
        )
        assert ruling.task is not None
        return Created(self._shown(ruling.task), bool(ruling.moves))

    async def claim_next(
        self, owner: str, role: str, workspace: str, ttl_s: float, wait_s: float
    ) -> View | None:
        """Let somebody have the oldest task of a role; None when none came within `wait_s` seconds.

        Whoever is cancelled while waiting leaves the line, and what was claimed in that moment is given back.
        Raises TooManyTasks.
        """
        ask = Ask(
            ask=self._new_id(), owner=owner, role=role, workspace=workspace, ttl_s=ttl_s, waits=wait_s > 0
        )
        asked = self._held.expect(ask.ask)
        try:
            task = await self._claimed(ask, asked, wait_s)
        except BaseException as error:
            if not (isinstance(error, HerdrError) and error.code == "overloaded"):  # then it was never let in
                self._held.endings.give_up(ask.ask)
            raise
        finally:
            self._held.expect_no_more(ask.ask)
        return None if task is None else self._shown(task)

    def give_back(self, claimed: View) -> None:
        """Give a task of `claim_next` back, soon: its asker has gone. Not if it was renewed since."""
        found = self._table.get(claimed["task"])
        if found is not None and found.token == claimed["token"] and found.ask is not None:
            self._held.endings.give_up(found.ask)

    async def claim(self, task: str, owner: str, ttl_s: float) -> View:
        """Let somebody have this task; extends what it holds. Raises NotFound, NotHolder, TaskConflict."""
        return await self._decide(lambda seq, now: self._table.claim(task, owner, ttl_s, seq, now))

    async def renew(self, task: str, token: int, ttl_s: float | None) -> View:
        """Begin a lease anew; `ttl_s` None: for as long as before. Raises NotFound, NotHolder, TaskConflict."""
        return await self._decide(lambda seq, now: self._table.renew(task, token, ttl_s, seq, now))

    async def hand_over(self, task: str, token: int, role: str, note: Note | None) -> View:
        """Let go of a task in favour of another role. Raises NotFound, NotHolder, TaskConflict, TooManyTasks."""
        return await self._decide(
            lambda seq, now: self._table.hand_over(task, token, role, note, seq, now),
            Lane.P1,
            bytes_of(note),
        )

    async def ask(self, task: str, token: int, question: str, to: str | None) -> View:
        """Ask what the holder needs to know. Raises NotFound, NotHolder, TaskConflict, TooManyTasks."""
        return await self._decide(
            lambda seq, now: self._table.ask_for(task, token, question, to, seq, now),
            Lane.P1,
            bytes_of(question),
        )

    async def answer(self, task: str, owner: str, answer: str) -> View:
        """Answer what was asked. Raises NotFound, TaskConflict, TooManyTasks."""
        return await self._decide(
            lambda seq, now: self._table.answer(task, owner, answer, seq, now),
            Lane.P1,
            bytes_of(answer),
        )

    async def release(self, task: str, token: int, reason: str | None) -> View:
        """Give a task back to its role. Raises NotFound, NotHolder, TaskConflict, TooManyTasks."""
        return await self._decide(lambda seq, now: self._table.release(task, token, reason, seq, now))

    async def end(
        self,
        task: str,
        what: Literal["finished", "failed", "rejected"],
        token: int,
        reason: str | None,
        note: Note | None,
    ) -> View:
        """End a task for its holder. Raises NotFound, NotHolder, TaskConflict, TooManyTasks."""
        return await self._decide(
            lambda seq, now: self._table.end(task, what, token, reason, note, seq, now),
            Lane.P1,
            bytes_of(note),
        )

    async def cancel(self, task: str, owner: str, reason: str | None, *, forced: bool) -> View:
        """End a task for who created it, or an operator. Raises NotFound, TaskConflict, `missing_scope`."""
        return await self._decide(
            lambda seq, now: self._table.cancel(task, owner, reason, seq, now, forced=forced)
        )

    async def one(self, task: str) -> View:
        """Return one task with its steps. Raises NotFound."""
        return self._shown(await self._held.look(lambda: check_known(task, self._table.get(task))))

    async def listed(
        self,
        workspace: str | None = None,
        role: str | None = None,
        states: Collection[str] = (),
        holder: str | None = None,
        limit: int = 100,
    ) -> list[View]:
        """Return the tasks that fit, the one that changed last first; None, and no states: all of them."""
        found: list[Task] = []
        for place, task in enumerate(await self._held.look(self._table.all)):
            if not place % SLICE:
                await asyncio.sleep(0)  # thousands must not keep a user's instruction waiting
            if (
                workspace in (None, task.workspace)
                and role in (None, task.role)
                and holder in (None, task.holder)
                and (not states or task.state in states)
            ):
                found.append(task)
        newest = heapq.nlargest(limit, found, key=lambda task: (task.updated, task.task))
        return [listed_view(task, self._expires_us(task)) for task in newest]

    # -------------------------------------------------------------------------------------------------

    async def _decide(self, decide: Decide, lane: Lane = Lane.P0, size: int = 0) -> View:
        try:
            ruling = await self._held.decide(decide, lane, ERRAND_BYTES + size)
        except NotHolder as error:
            raise error.told(self._held.expires_us) from None
        assert ruling.task is not None
        return self._shown(ruling.task)

    async def _claimed(self, ask: Ask, asked: "asyncio.Future[Task]", wait_s: float) -> Task | None:
        ruling = await self._held.decide(
            lambda seq, now_us: self._table.ask(ask, seq, now_us), Lane.P1, ERRAND_BYTES
        )
        if ruling.task is not None or not ask.waits:
            return ruling.task
        if not asked.done():
            await asyncio.wait([asked], timeout=wait_s)
        if not asked.done():
            await self._held.decide(lambda _seq, _now: self._table.withdraw(ask.ask), Lane.P0)
        return asked.result() if asked.done() else None

    def _shown(self, task: Task) -> View:
        return task_view(task, self._expires_us(task))

    def _expires_us(self, task: Task) -> int | None:
        return None if task.holder is None else self._held.expires_us(task)
