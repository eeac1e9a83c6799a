"""Tasks that go from role to role: `hub.tasks.create(…)`, `async with hub.tasks.work(role="coder") as task:`."""

import asyncio
import builtins
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Unpack

import msgspec

from herdr_sdk.backoff import Backoff
from herdr_sdk.errors import HerdrError, NoTask
from herdr_sdk.follow import Follow
from herdr_sdk.ids import IdFactory
from herdr_sdk.plain_http import ANSWER_S, PlainHttp, Request, json_request, part
from herdr_sdk.task_hold import Claimed, Desk
from herdr_sdk.task_lease import is_passing
from herdr_sdk.task_views import NoteFields, Task, note_of
from herdr_sdk.task_work import Work

TTL_S = 120.0  # of a lease, as the gateway has it
LIMIT = 100  # of lists, as the gateway has it
POLL_S = 50.0  # of one long poll: proxies give up after 60 s without a byte
LEASE_PARTS = 3
"""One poll lasts a third of the lease at most. A lease is counted from when the task was asked for, so two thirds of
it are left whenever the answer comes."""


class _Tasks(msgspec.Struct):
    tasks: list[Task]


class Tasks:
    """The tasks at the gateway; stands at `Hub.tasks`.

    `owner` is who one is towards the others; default: the hub's name, else the token's. A task that there is
    not raises NotFound; what its state does not allow raises ServerError (`task_held`, `task_final`, `fenced` …).
    """

    def __init__(self, http: PlainHttp, name: str | None, follow: Callable[..., Follow]) -> None:
        self._http = http
        self._name = name
        self._follow = follow
        self._new_id = IdFactory()

    async def create(
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
        """Create a task for whoever has the role, and return it.

        `task`: its id, by default a new one. Creating the same one again gives the one that there is, so after
        OutcomeUnknown, whose `ids` names it, try again with that; other content raises ServerError (`task_exists`).
        """
        named = task or self._new_id()
        body = {
            **{
                "title": title,
                "description": description,
                "role": role,
                "workspace": workspace,
                "task": named,
            },
            **{"session": session, "owner": owner or self._name, "note": note_of(note)},
        }
        return await self._post("/v1/tasks", body, named)

    async def list(
        self,
        *,
        workspace: str | None = None,
        role: str | None = None,
        state: str | None = None,
        holder: str | None = None,
        limit: int = LIMIT,
    ) -> builtins.list[Task]:
        """Return the tasks that match, the one that changed last first; `steps` is their number."""
        query = {"workspace": workspace, "role": role, "state": state, "holder": holder, "limit": limit}
        return (await self._http.read(_Tasks, Request("GET", "/v1/tasks", query))).tasks

    async def get(self, task: str) -> Task:
        """Return one task with all its steps."""
        return await self._http.read(Task, Request("GET", _address(task)))

    async def next(
        self,
        role: str,
        wait: float = 0.0,
        *,
        workspace: str = "default",
        owner: str | None = None,
        ttl: float = TTL_S,
    ) -> Task | None:
        """Claim the oldest task of the role; None when none came within `wait` seconds (at most 600).

        It is then held for `ttl` seconds: `renew` it before they are over, or use `work`, which does.
        """
        named = {
            "owner": owner or self._name,
            "role": role,
            "workspace": workspace,
            "ttl_s": ttl,
            "wait_s": wait,
        }
        body = {name: value for name, value in named.items() if value is not None}
        request = json_request("/v1/tasks/claim", body)._replace(silence_s=wait + ANSWER_S)
        reply = await self._http.ask(request)
        return self._http.decode(Task, request, reply.body) if reply.body else None

    async def claim(self, task: str, *, owner: str | None = None, ttl: float = TTL_S) -> Task:
        """Claim this task for `ttl` seconds; ServerError (`task_held`) says who has it and until when."""
        return await self._tell(task, "claim", {"owner": owner or self._name, "ttl_s": ttl})

    async def renew(self, task: str, token: int, *, ttl: float = TTL_S) -> Task:
        """Begin the lease of a task that one holds anew."""
        return await self._tell(task, "renew", {"token": token, "ttl_s": ttl})

    async def hand_over(self, task: str, token: int, role: str, **note: Unpack[NoteFields]) -> Task:
        """Give the task to the next role, with what was learnt."""
        return await self._tell(task, "hand-over", {"token": token, "role": role, "note": note_of(note)})

    async def ask(self, task: str, token: int, question: str, *, to: str | None = None) -> Task:
        """Ask `to` (a name or a role; default: who handed the task over, else who created it). One keeps it."""
        return await self._tell(task, "ask", {"token": token, "question": question, "to": to})

    async def answer(self, task: str, answer: str, *, owner: str | None = None) -> Task:
        """Answer what the holder of the task has asked."""
        return await self._tell(task, "answer", {"owner": owner or self._name, "answer": answer})

    async def release(self, task: str, token: int, reason: str | None = None) -> Task:
        """Give the task back to its role."""
        return await self._tell(task, "release", {"token": token, "reason": reason})

    async def finish(self, task: str, token: int, **note: Unpack[NoteFields]) -> Task:
        """End the task: it is completed."""
        return await self._tell(task, "finish", {"token": token, "note": note_of(note)})

    async def fail(self, task: str, token: int, reason: str, **note: Unpack[NoteFields]) -> Task:
        """End the task: it cannot be done."""
        return await self._tell(task, "fail", {"token": token, "reason": reason, "note": note_of(note)})

    async def reject(self, task: str, token: int, reason: str, **note: Unpack[NoteFields]) -> Task:
        """End the task: it should not be done."""
        return await self._tell(task, "reject", {"token": token, "reason": reason, "note": note_of(note)})

    async def cancel(self, task: str, *, reason: str | None = None, owner: str | None = None) -> Task:
        """End a task that one created, whoever holds it."""
        return await self._tell(task, "cancel", {"owner": owner or self._name, "reason": reason})

    def work(
        self,
        role: str | None = None,
        *,
        task: str | None = None,
        workspace: str = "default",
        wait: float | None = None,
        ttl: float = TTL_S,
        owner: str | None = None,
    ) -> Work:
        """Hold a task for an `async with` block: this `task`, or the oldest one of a `role`.

        `wait`: seconds to wait for one of the role (None: as long as it takes, also over restarts of the gateway),
        then NoTask is raised. `ttl`: seconds after which the task returns to its role if this program dies; it
        is renewed in the background. `Work` says what can be done within the block.
        """
        desk = Desk(self._tell, self.get, self._follow)
        if role is not None and task is None:
            seek = _Seeking(
                role, lambda poll_s: self.next(role, poll_s, workspace=workspace, owner=owner, ttl=ttl)
            )
            return Work(desk, lambda: seek.found(wait, min(POLL_S, ttl / LEASE_PARTS)), ttl)
        if task is not None and role is None:
            return Work(desk, lambda: _at(self.claim(task, owner=owner, ttl=ttl)), ttl)
        raise ValueError("say for which role, or which task: work(role=…) or work(task=…)")

    async def _tell(self, task: str, verb: str, body: Mapping[str, object]) -> Task:
        return await self._post(f"{_address(task)}/{verb}", body, task)

    async def _post(self, path: str, body: Mapping[str, object], task: str) -> Task:
        given = {name: value for name, value in body.items() if value is not None}
        return await self._http.read(Task, json_request(path, given, [task]))


class _Seeking:
    """Waits for a task of a role, one long poll after the other."""

    def __init__(self, role: str, poll: Callable[[float], Awaitable[Task | None]]) -> None:
        self._role = role
        self._poll = poll
        self._backoff = Backoff()

    async def found(self, wait_s: float | None, poll_s: float) -> Claimed:
        """Return the task; raises NoTask after `wait_s` seconds."""
        loop = asyncio.get_running_loop()
        until = math.inf if wait_s is None else loop.time() + wait_s
        while True:
            left_s = max(0.0, until - loop.time())
            asked_at = loop.time()
            task, pause_s = await self._asked(min(left_s, poll_s), is_last=left_s == 0)
            if task is not None:
                return Claimed(task, asked_at)
            if left_s == 0:
                raise NoTask(f"No task for {self._role} came in {wait_s:g} s. Try again later.")
            await asyncio.sleep(min(pause_s, left_s))

    async def _asked(self, poll_s: float, *, is_last: bool) -> tuple[Task | None, float]:
        """Return the task, if there was one, and how long to pause before asking again."""
        loop = asyncio.get_running_loop()
        begun_at = loop.time()
        try:
            task = await self._poll(poll_s)
        except HerdrError as error:
            if is_last or not is_passing(error):
                raise
            return None, self._backoff.next_s()
        if task is None and loop.time() - begun_at < poll_s / 2:  # it did not wait: it is about to stop, say
            return None, self._backoff.next_s()
        self._backoff.reset()
        return task, 0.0


async def _at(claim: Awaitable[Task]) -> Claimed:
    asked_at = asyncio.get_running_loop().time()
    return Claimed(await claim, asked_at)


def _address(task: str) -> str:
    return f"/v1/tasks/{part(task)}"
