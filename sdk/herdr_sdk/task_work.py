"""A task that one is at work on: `async with hub.tasks.work(role="coder") as task:`."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, Unpack

from herdr_sdk.errors import ConnectionFailed, HerdrError, TaskLost
from herdr_sdk.follow import Follow
from herdr_sdk.task_hold import Claimed, Desk, Hold
from herdr_sdk.task_views import Note, NoteFields, Task, note_of

RELEASE_S = 30.0  # for the answer to giving it back, as for a lock's
ABANDON_S = 2.0  # the same when an error leaves the block: then that error is what matters
_UNFINISHED = "left unfinished"


class Work:
    """A task in one's hands; made by `Tasks.work`. Use it in `async with`.

    End the work with `hand_over`, `finish`, `fail` or `reject`. A block that is left without, also by an error, gives
    the task back to its role. A lost task cannot be missed: all of these, and leaving the block, raise TaskLost.
    """

    def __init__(self, desk: Desk, claim: Callable[[], Awaitable[Claimed]], ttl_s: float) -> None:
        self._desk = desk
        self._claim = claim
        self._ttl_s = ttl_s
        self._hold: Hold | None = None

    @property
    def view(self) -> Task:
        """The task as last heard of, with all its steps."""
        return self._held.view

    @property
    def id(self) -> str:
        """The task's id."""
        return self.view.task

    @property
    def title(self) -> str:
        """What is to be done, in one line."""
        return self.view.title

    @property
    def description(self) -> str:
        """What is to be done."""
        return self.view.description

    @property
    def note(self) -> Note | None:
        """What whoever had it before left for the next."""
        return self.view.note

    @property
    def token(self) -> int:
        """The fencing token. It rises with every claim; who checks it can refuse a holder that is late."""
        return self._held.token

    @property
    def lost(self) -> bool:
        """True once somebody else may be at work on it."""
        return self.error is not None

    @property
    def error(self) -> TaskLost | None:
        """Why it was lost, None if it was not."""
        return None if self._hold is None else self._hold.lease.error

    async def wait_lost(self) -> None:
        """Return when the task is lost; for a task beside the work, which then stops it."""
        await self._held.lease.lost.wait()

    async def hand_over(self, role: str, **note: Unpack[NoteFields]) -> Task:
        """Give the task to the next role, with what was learnt; the work is over."""
        return await self._held.end("hand-over", {"role": role, "note": note_of(note)}, "handoff.handed_over")

    async def finish(self, **note: Unpack[NoteFields]) -> Task:
        """Complete the task; the work is over."""
        return await self._held.end("finish", {"note": note_of(note)}, "handoff.finished")

    async def fail(self, reason: str, **note: Unpack[NoteFields]) -> Task:
        """Say that the task cannot be done; the work is over."""
        return await self._held.end("fail", {"reason": reason, "note": note_of(note)}, "handoff.failed")

    async def reject(self, reason: str, **note: Unpack[NoteFields]) -> Task:
        """Say that the task should not be done; the work is over."""
        return await self._held.end("reject", {"reason": reason, "note": note_of(note)}, "handoff.rejected")

    async def release(self, reason: str | None = None) -> Task:
        """Give the task back to its role; the work is over."""
        return await self._held.end("release", {"reason": reason}, "handoff.released")

    async def ask(self, question: str, *, to: str | None = None, wait: float | None = None) -> str | None:
        """Ask `to` (a name or a role; default: who handed the task over, else who created it), and return the answer.

        Waits up to `wait` seconds (None: as long as it takes; 0 only asks); None when no answer came. The task stays
        in one's hands. Follows events to hear of the answer, for which a token needs the scope `events:follow`.
        """
        hold = self._held
        async with self._desk.follow(type="handoff.answered", workspace=hold.view.workspace) as answers:
            await hold.say("ask", {"question": question, "to": to}, "handoff.asked")
            waiting = asyncio.ensure_future(_answer(answers, hold.view.task))
            losing = asyncio.ensure_future(self.wait_lost())
            try:
                await asyncio.wait({waiting, losing}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    hold.check()
                    return None
                await hold.look()
                return waiting.result()
            finally:
                for task in (waiting, losing):
                    task.cancel()
                await asyncio.gather(waiting, losing, return_exceptions=True)

    async def __aenter__(self) -> Self:
        if self._hold is not None:
            raise RuntimeError("this work was begun already; make another one with hub.tasks.work()")
        self._hold = Hold(self._desk, await self._claim(), self._ttl_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hold = self._held
        try:
            if not hold.over:
                await (self._leave() if error is None else _abandon(self, error))
        finally:
            hold.lease.stop()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(RELEASE_S):
                await self.release(_UNFINISHED)
        except TimeoutError:
            raise ConnectionFailed(
                f"The task {self.id} was not given back: the gateway does not answer for {RELEASE_S:g} s. It "
                "returns to its role when its lease ends."
            ) from None

    @property
    def _held(self) -> Hold:
        if self._hold is None:
            raise RuntimeError("no task has been claimed; use this in `async with`")
        return self._hold


async def _answer(answers: Follow, task: str) -> str:
    async for event in answers:
        if event.task == task and isinstance(event.data, dict):
            return str(event.data.get("answer"))
    raise AssertionError("a follow ends only when it is closed")


async def _abandon(work: Work, error: BaseException) -> None:
    """Give a task back, shortly; what goes wrong with that must not hide the error that leaves the block."""
    with suppress(HerdrError, TimeoutError):
        async with asyncio.timeout(ABANDON_S):
            await work.release(f"its holder stopped with {type(error).__name__}")
    if work.lost and not isinstance(error, TaskLost):
        error.add_note(str(work.error))
