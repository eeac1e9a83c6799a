"""The handlers of `/v1/tasks`."""

from typing import Literal, TypeVar

import msgspec

from herdr.tasks.task import New
from herdr.web.asgi import Receive, Reply, Scope, read_body, respond, respond_json
from herdr.web.auth import Caller
from herdr.web.locks_api import named
from herdr.web.standing import stand_in_line
from herdr.web.streams import Streams
from herdr.web.surface import Handler
from herdr.web.task_bodies import (
    BODY_MAX,
    AnswerBody,
    AskBody,
    CancelBody,
    ClaimNextBody,
    ClaimTaskBody,
    CreateTaskBody,
    EndBody,
    FinishBody,
    HandOverBody,
    ReleaseTaskBody,
    RenewTaskBody,
    read_body_as,
    read_query,
)
from herdr.web.task_desk import Board

BODY_ADVICE = "put what is long into an artifact, and its name into the note"

Body = TypeVar("Body", bound=msgspec.Struct)


class TasksApi:
    """Tasks as they go from hand to hand."""

    def __init__(self, board: Board, streams: Streams) -> None:
        self._board = board
        self._streams = streams

    async def create(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Create a task; 200 when the same request created it before."""
        body = await _read(CreateTaskBody, scope, receive)
        new = New(
            task=body.task or "",
            title=body.title,
            description=body.description,
            role=body.role,
            by=named(body.owner, caller),
            workspace=body.workspace,
            session=body.session,
            note=body.note,
        )
        created = await self._board.create(new)
        await respond_json(send, 201 if created.is_new else 200, created.view)

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the tasks that fit."""
        query = read_query(scope["query_string"])
        found = await self._board.listed(query.workspace, query.role, query.state, query.holder, query.limit)
        await respond_json(send, 200, {"tasks": found})

    async def get(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with one task and its steps."""
        await respond_json(send, 200, await self._board.one(_task(scope)))

    async def claim_next(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Claim a task of a role; with `wait_s` stand in line while the client is there."""
        body = await _read(ClaimNextBody, scope, receive)
        owner = named(body.owner, caller)
        asking = self._board.claim_next(owner, body.role, body.workspace, body.ttl_s, body.wait_s)
        if body.wait_s > 0:
            claimed = await stand_in_line(asking, receive, self._streams, self._give_back)
        else:
            claimed = await asking
        if claimed is None:
            await respond(send, 204, b"", [])
        else:
            await respond_json(send, 200, claimed)

    async def claim(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Claim this task."""
        body = await _read(ClaimTaskBody, scope, receive)
        claimed = await self._board.claim(_task(scope), named(body.owner, caller), body.ttl_s)
        await respond_json(send, 200, claimed)

    async def renew(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Begin a lease anew."""
        body = await _read(RenewTaskBody, scope, receive)
        await respond_json(send, 200, await self._board.renew(_task(scope), body.token, body.ttl_s))

    async def hand_over(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Give a task to the next role."""
        body = await _read(HandOverBody, scope, receive)
        view = await self._board.hand_over(_task(scope), body.token, body.role, body.note)
        await respond_json(send, 200, view)

    async def ask(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Ask what the holder needs to know."""
        body = await _read(AskBody, scope, receive)
        await respond_json(send, 200, await self._board.ask(_task(scope), body.token, body.question, body.to))

    async def answer(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer what the holder has asked."""
        body = await _read(AnswerBody, scope, receive)
        view = await self._board.answer(_task(scope), named(body.owner, caller), body.answer)
        await respond_json(send, 200, view)

    async def release(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Give a task back to its role."""
        body = await _read(ReleaseTaskBody, scope, receive)
        await respond_json(send, 200, await self._board.release(_task(scope), body.token, body.reason))

    async def finish(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """End a task: it is done."""
        body = await _read(FinishBody, scope, receive)
        view = await self._board.end(_task(scope), "finished", body.token, None, body.note)
        await respond_json(send, 200, view)

    def ending(self, what: Literal["failed", "rejected"]) -> Handler:
        """Return the handler that ends a task, but not well."""

        async def end(scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
            body = await _read(EndBody, scope, receive)
            view = await self._board.end(_task(scope), what, body.token, body.reason, body.note)
            await respond_json(send, 200, view)

        return end

    async def cancel(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """End a task that one created; an operator may end any."""
        body = await _read(CancelBody, scope, receive)
        owner, forced = named(body.owner, caller), caller.may("admin")
        view = await self._board.cancel(_task(scope), owner, body.reason, forced=forced)
        await respond_json(send, 200, view)

    def _give_back(self, claimed: dict[str, object] | None) -> None:
        if claimed is not None:
            self._board.give_back(claimed)


async def _read(type_: type[Body], scope: Scope, receive: Receive) -> Body:
    return read_body_as(type_, await read_body(scope, receive, BODY_MAX, BODY_ADVICE))


def _task(scope: Scope) -> str:
    task: str = scope["path_params"]["task"]
    return task
