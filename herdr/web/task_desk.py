"""What the API needs of the tasks."""

from collections.abc import Collection
from typing import Any, Literal, Protocol

from herdr.tasks.task import New, Note

View = dict[str, Any]
"""A task, ready to encode: the fields of `TaskView`."""


class Creation(Protocol):
    """A task, and whether it was not there before."""

    @property
    def view(self) -> View:
        """The task."""
        ...

    @property
    def is_new(self) -> bool:
        """False: the same request had created it before."""
        ...


class Board(Protocol):
    """Takes requests about tasks. Everything may raise LogUnavailable, and HerdrError `overloaded`.

    What names a task may raise NotFound, and TaskConflict; what needs a token, NotHolder.
    """

    async def create(self, new: New) -> Creation:
        """Create a task; raises TooManyTasks."""
        ...

    async def claim_next(
        self, owner: str, role: str, workspace: str, ttl_s: float, wait_s: float
    ) -> View | None:
        """Let somebody have the oldest task of a role; None when none came in time. Raises TooManyTasks.

        A caller that is cancelled leaves the line; what it got in that moment is given back.
        """
        ...

    def give_back(self, claimed: View) -> None:
        """Give back, soon, what `claim_next` returned: its asker has gone."""
        ...

    async def claim(self, task: str, owner: str, ttl_s: float) -> View:
        """Let somebody have this task."""
        ...

    async def renew(self, task: str, token: int, ttl_s: float | None) -> View:
        """Begin a lease anew; `ttl_s` None: for as long as before."""
        ...

    async def hand_over(self, task: str, token: int, role: str, note: Note | None) -> View:
        """Let go of a task in favour of another role."""
        ...

    async def ask(self, task: str, token: int, question: str, to: str | None) -> View:
        """Ask what the holder needs to know."""
        ...

    async def answer(self, task: str, owner: str, answer: str) -> View:
        """Answer what was asked."""
        ...

    async def release(self, task: str, token: int, reason: str | None) -> View:
        """Give a task back to its role."""
        ...

    async def end(
        self,
        task: str,
        what: Literal["finished", "failed", "rejected"],
        token: int,
        reason: str | None,
        note: Note | None,
    ) -> View:
        """End a task for its holder."""
        ...

    async def cancel(self, task: str, owner: str, reason: str | None, *, forced: bool) -> View:
        """End a task for who created it, or (`forced`) for anybody."""
        ...

    async def one(self, task: str) -> View:
        """Return one task with its steps."""
        ...

    async def listed(
        self,
        workspace: str | None,
        role: str | None,
        states: Collection[str],
        holder: str | None,
        limit: int,
    ) -> list[View]:
        """Return the tasks that fit, the one that changed last first; None, and no states: all of them."""
        ...
