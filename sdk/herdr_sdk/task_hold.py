"""A task that one holds: what its holder tells the gateway, until the work is over or the task is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from herdr_sdk.backoff import Backoff
from herdr_sdk.errors import HerdrError, OutcomeUnknown
from herdr_sdk.follow import Follow
from herdr_sdk.task_lease import TaskLease, is_gone, is_passing
from herdr_sdk.task_views import Task


class Desk(NamedTuple):
    """How one talks with the gateway about tasks."""

    tell: Callable[[str, str, Mapping[str, object]], Awaitable[Task]]
    """(task, what to do, body) of what only its holder may do."""
    look: Callable[[str], Awaitable[Task]]
    follow: Callable[..., Follow]


class Claimed(NamedTuple):
    """A task that was claimed, and when it was asked for, in the loop's seconds."""

    task: Task
    asked_at: float


class Hold:
    """One task under one token. `over`: the holder has ended the work, and the task is not lost but gone on."""

    def __init__(self, desk: Desk, claimed: Claimed, ttl_s: float) -> None:
        self.view = claimed.task
        self.token = claimed.task.token or 0
        self.over = False
        self._desk = desk
        self._id = claimed.task.task
        body = {"token": self.token, "ttl_s": ttl_s}
        self.lease = TaskLease(
            self._id, self.token, ttl_s, claimed.asked_at, lambda: desk.tell(self._id, "renew", body)
        )

    async def end(self, verb: str, body: Mapping[str, object], event: str) -> Task:
        """Say what becomes of the task; see `say`. The work is over then."""
        view = await self.say(verb, body, event)
        self.over = True
        self.lease.stop()
        return view

    async def say(self, verb: str, body: Mapping[str, object], event: str) -> Task:
        """Tell the gateway, again and again for as long as the lease lasts, what is to happen with the task.

        `event` tells that it did, should an answer be lost. Raises TaskLost, and OutcomeUnknown when the lease
        ended without an answer.
        """
        backoff = Backoff()
        unknown: HerdrError | None = None
        async with self.lease.talking:
            while True:
                self.check(unknown)
                try:
                    self.view = await self._desk.tell(self._id, verb, {"token": self.token, **body})
                    return self.view
                except HerdrError as error:
                    if is_gone(error):
                        return await self._said(event, unknown)
                    if not is_passing(error):
                        raise
                    unknown = error if isinstance(error, OutcomeUnknown) else unknown
                await self._pause(backoff.next_s())

    def check(self, unknown: HerdrError | None = None) -> None:
        """Raise what is in the way of working on the task, or `unknown` in place of a loss."""
        if self.over:
            raise RuntimeError("the work on this task is over; claim the next one with hub.tasks.work()")
        if (error := self.lease.error) is not None:
            raise unknown or error

    async def look(self) -> Task:
        """Read the task anew."""
        self.view = await self._desk.look(self._id)
        return self.view

    async def _said(self, event: str, unknown: HerdrError | None) -> Task:
        """Return the task if what was not answered was carried out all the same; else it is lost."""
        if unknown is not None:
            view = await self.look()
            steps = () if isinstance(view.steps, int) else view.steps
            if any((step.type, step.token) == (event, self.token) for step in steps):
                return view
        self.lease.lose()
        self.check()
        raise AssertionError("a task that was lost says so")

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.lease.lost.wait()
