"""The blocking counterparts of `Tasks` and `Work`; made by the blocking hub."""

import builtins
from types import TracebackType
from typing import Self, Unpack

from herdr_sdk import task_work as asynchronous_work
from herdr_sdk import tasks as asynchronous
from herdr_sdk.errors import HerdrError
from herdr_sdk.loop_thread import LoopThread
from herdr_sdk.task_views import Note, NoteFields, Task
from herdr_sdk.tasks import LIMIT, TTL_S


class Tasks:
    """Blocking counterpart of `herdr_sdk.tasks.Tasks`."""

    def __init__(self, thread: LoopThread, tasks: asynchronous.Tasks) -> None:
        self._thread = thread
        self._tasks = tasks

    def create(
        self,
        title: str,
        role: str,
        *,
        description: str = "",
        workspace: str = "default",
        session: str | None = None,
        owner: str | None = None,
        task: str | None = None,
        **note: Unpack[NoteFields],
    ) -> Task:
        """See `herdr_sdk.tasks.Tasks.create`."""
        created = self._tasks.create(
            title,
            role,
            description=description,
            workspace=workspace,
            session=session,
            owner=owner,
            task=task,
            **note,
        )
        return self._thread.run(created)

    def list(
        self,
        *,
        workspace: str | None = None,
        role: str | None = None,
        state: str | None = None,
        holder: str | None = None,
        limit: int = LIMIT,
    ) -> builtins.list[Task]:
        """See `herdr_sdk.tasks.Tasks.list`."""
        found = self._tasks.list(workspace=workspace, role=role, state=state, holder=holder, limit=limit)
        return self._thread.run(found)

    def get(self, task: str) -> Task:
        """See `herdr_sdk.tasks.Tasks.get`."""
        return self._thread.run(self._tasks.get(task))

    def next(
        self,
        role: str,
        wait: float = 0.0,
        *,
        workspace: str = "default",
        owner: str | None = None,
        ttl: float = TTL_S,
    ) -> Task | None:
        """See `herdr_sdk.tasks.Tasks.next`."""
        return self._thread.run(self._tasks.next(role, wait, workspace=workspace, owner=owner, ttl=ttl))

    def claim(self, task: str, *, owner: str | None = None, ttl: float = TTL_S) -> Task:
        """See `herdr_sdk.tasks.Tasks.claim`."""
        return self._thread.run(self._tasks.claim(task, owner=owner, ttl=ttl))

    def renew(self, task: str, token: int, *, ttl: float = TTL_S) -> Task:
        """See `herdr_sdk.tasks.Tasks.renew`."""
        return self._thread.run(self._tasks.renew(task, token, ttl=ttl))

    def hand_over(self, task: str, token: int, role: str, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.tasks.Tasks.hand_over`."""
        return self._thread.run(self._tasks.hand_over(task, token, role, **note))

    def ask(self, task: str, token: int, question: str, *, to: str | None = None) -> Task:
        """See `herdr_sdk.tasks.Tasks.ask`."""
        return self._thread.run(self._tasks.ask(task, token, question, to=to))

    def answer(self, task: str, answer: str, *, owner: str | None = None) -> Task:
        """See `herdr_sdk.tasks.Tasks.answer`."""
        return self._thread.run(self._tasks.answer(task, answer, owner=owner))

    def release(self, task: str, token: int, reason: str | None = None) -> Task:
        """See `herdr_sdk.tasks.Tasks.release`."""
        return self._thread.run(self._tasks.release(task, token, reason))

    def finish(self, task: str, token: int, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.tasks.Tasks.finish`."""
        return self._thread.run(self._tasks.finish(task, token, **note))

    def fail(self, task: str, token: int, reason: str, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.tasks.Tasks.fail`."""
        return self._thread.run(self._tasks.fail(task, token, reason, **note))

    def reject(self, task: str, token: int, reason: str, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.tasks.Tasks.reject`."""
        return self._thread.run(self._tasks.reject(task, token, reason, **note))

    def cancel(self, task: str, *, reason: str | None = None, owner: str | None = None) -> Task:
        """See `herdr_sdk.tasks.Tasks.cancel`."""
        return self._thread.run(self._tasks.cancel(task, reason=reason, owner=owner))

    def work(
        self,
        role: str | None = None,
        *,
        task: str | None = None,
        workspace: str = "default",
        wait: float | None = None,
        ttl: float = TTL_S,
        owner: str | None = None,
    ) -> "Work":
        """See `herdr_sdk.tasks.Tasks.work`; use it in `with`. It is renewed while the block works."""
        work = self._tasks.work(role, task=task, workspace=workspace, wait=wait, ttl=ttl, owner=owner)
        return Work(self._thread, work)


class Work:
    """Blocking counterpart of `herdr_sdk.Work`."""

    def __init__(self, thread: LoopThread, work: asynchronous_work.Work) -> None:
        self._thread = thread
        self._work = work

    @property
    def view(self) -> Task:
        """See `herdr_sdk.Work.view`."""
        return self._work.view

    @property
    def id(self) -> str:
        """See `herdr_sdk.Work.id`."""
        return self._work.id

    @property
    def title(self) -> str:
        """See `herdr_sdk.Work.title`."""
        return self._work.title

    @property
    def description(self) -> str:
        """See `herdr_sdk.Work.description`."""
        return self._work.description

    @property
    def note(self) -> Note | None:
        """See `herdr_sdk.Work.note`."""
        return self._work.note

    @property
    def token(self) -> int:
        """See `herdr_sdk.Work.token`."""
        return self._work.token

    @property
    def lost(self) -> bool:
        """See `herdr_sdk.Work.lost`."""
        return self._work.lost

    @property
    def error(self) -> HerdrError | None:
        """See `herdr_sdk.Work.error`."""
        return self._work.error

    def wait_lost(self) -> None:
        """See `herdr_sdk.Work.wait_lost`; for a thread beside the one that works."""
        self._thread.run(self._work.wait_lost())

    def hand_over(self, role: str, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.Work.hand_over`."""
        return self._thread.run(self._work.hand_over(role, **note))

    def finish(self, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.Work.finish`."""
        return self._thread.run(self._work.finish(**note))

    def fail(self, reason: str, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.Work.fail`."""
        return self._thread.run(self._work.fail(reason, **note))

    def reject(self, reason: str, **note: Unpack[NoteFields]) -> Task:
        """See `herdr_sdk.Work.reject`."""
        return self._thread.run(self._work.reject(reason, **note))

    def release(self, reason: str | None = None) -> Task:
        """See `herdr_sdk.Work.release`."""
        return self._thread.run(self._work.release(reason))

    def ask(self, question: str, *, to: str | None = None, wait: float | None = None) -> str | None:
        """See `herdr_sdk.Work.ask`."""
        return self._thread.run(self._work.ask(question, to=to, wait=wait))

    def __enter__(self) -> Self:
        self._thread.run(self._work.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.running:
            self._thread.run(self._work.__aexit__(kind, error, trace))
        elif error is None and self.error is not None:
            raise self.error
