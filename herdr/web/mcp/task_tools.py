"""The tool `task`: work that goes from hand to hand."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from herdr.errors import FieldError, HerdrError
from herdr.tasks.task import NOTE_BYTES_MAX, OPEN, New, Note
from herdr.web.bodies import wrong
from herdr.web.mcp import arguments, words
from herdr.web.mcp.agents import Who
from herdr.web.mcp.around import Said, Tool, Workspaces, without_nothing
from herdr.web.mcp.lock_tools import until_stop
from herdr.web.mcp.schemas import missing
from herdr.web.streams import Streams
from herdr.web.task_desk import Board, View

LISTED_MAX = 50
SHORT = ("task", "title", "role", "state", "holder", "expires", "question")

Do = Callable[[Who, arguments.TaskArguments], Awaitable[Said]]


class TaskTools:
    """Tasks. The fencing token stays here: whoever is the holder by name may go on."""

    def __init__(self, board: Board, workspaces: Workspaces, streams: Streams) -> None:
        self._board = board
        self._workspaces = workspaces
        self._streams = streams
        self._actions: dict[str, Do] = {
            "create": self._create,
            "list": self._list,
            "claim": self._claim,
            "hand_over": self._hand_over,
            "ask": self._ask,
            "answer": self._answer,
            "finish": self._finish,
            "fail": self._fail,
            "release": self._release,
        }

    def tools(self) -> list[Tool]:
        """Return the tool."""
        return [Tool("task", arguments.TaskArguments, words.TASK, "tasks", False, self.task)]

    async def task(self, who: Who, asked: arguments.TaskArguments) -> Said:
        """Do what is asked for."""
        return await self._actions[asked.action](who, asked)

    async def _create(self, who: Who, asked: arguments.TaskArguments) -> Said:
        if asked.title is None or asked.role is None:
            raise missing(words.TASK, *(n for n in ("title", "role") if getattr(asked, n) is None))
        new = New(
            task=asked.task or "",
            title=asked.title,
            description=asked.description,
            role=asked.role,
            by=who.named(),
            workspace=self._workspaces.of(asked.workspace, who),
            session=asked.session or who.session,
            note=_note(asked),
        )
        created = await self._board.create(new)
        return _short("Created" if created.is_new else "Was created before", created.view)

    async def _list(self, who: Who, asked: arguments.TaskArguments) -> Said:
        if asked.task is not None:
            return _whole(await self._board.one(asked.task))
        workspace = self._workspaces.of(asked.workspace, who)
        found = await self._board.listed(workspace, asked.role, OPEN, None, LISTED_MAX)
        rows = [without_nothing({name: view[name] for name in SHORT}) for view in found]
        return Said("\n".join(map(_line, found)) or "No open tasks.", {"tasks": rows})

    async def _claim(self, who: Who, asked: arguments.TaskArguments) -> Said:
        if asked.task is not None:
            return _whole(await self._board.claim(asked.task, who.named(), asked.ttl_s))
        if asked.role is None:
            raise missing(words.TASK, "role")
        workspace = self._workspaces.of(asked.workspace, who)
        asking = self._board.claim_next(who.named(), asked.role, workspace, asked.ttl_s, asked.wait_s)
        claimed = await until_stop(asking, self._streams, self._give_back)
        if claimed is None:
            return Said(f"No task waits for the role {asked.role}.", {"task": None})
        return _whole(claimed)

    async def _hand_over(self, who: Who, asked: arguments.TaskArguments) -> Said:
        if asked.role is None:
            raise missing(words.TASK, "role")
        task, token = await self._held(who, asked)
        return _short("Handed over", await self._board.hand_over(task, token, asked.role, _note(asked)))

    async def _ask(self, who: Who, asked: arguments.TaskArguments) -> Said:
        if asked.question is None:
            raise missing(words.TASK, "question")
        task, token = await self._held(who, asked)
        view = await self._board.ask(task, token, asked.question, asked.to)
        return _short(f"Asked {view['asked']}; the answer comes along with a later call", view)

    async def _answer(self, who: Who, asked: arguments.TaskArguments) -> Said:
        if asked.task is None or asked.answer is None:
            raise missing(words.TASK, *(n for n in ("task", "answer") if getattr(asked, n) is None))
        return _short("Answered", await self._board.answer(asked.task, who.named(), asked.answer))

    async def _finish(self, who: Who, asked: arguments.TaskArguments) -> Said:
        task, token = await self._held(who, asked)
        return _short("Finished", await self._board.end(task, "finished", token, None, _note(asked)))

    async def _fail(self, who: Who, asked: arguments.TaskArguments) -> Said:
        task, token = await self._held(who, asked)
        return _short("Failed", await self._board.end(task, "failed", token, asked.reason, _note(asked)))

    async def _release(self, who: Who, asked: arguments.TaskArguments) -> Said:
        task, token = await self._held(who, asked)
        return _short("Released", await self._board.release(task, token, asked.reason))

    async def _held(self, who: Who, asked: arguments.TaskArguments) -> tuple[str, int]:
        """Return a task that the caller holds, and its token; raises NotFound, HerdrError."""
        if asked.task is None:
            raise missing(words.TASK, "task")
        view = await self._board.one(asked.task)
        if view["holder"] != who.named() or view["token"] is None:
            holder = view["holder"] or "nobody"
            raise HerdrError(
                f"you ({who.named()}) do not hold the task {asked.task}: {holder} does, its state is "
                f"{view['state']}. Claim it first, if it is free",
                "task_held",
            )
        return asked.task, int(view["token"])

    def _give_back(self, claimed: View | None) -> None:
        if claimed is not None:
            self._board.give_back(claimed)


def _note(asked: arguments.TaskArguments) -> Note | None:
    if asked.note is not None and len(msgspec.json.encode(asked.note)) > NOTE_BYTES_MAX:
        message = f"more than {NOTE_BYTES_MAX} bytes; save it as an artifact and name that in `artifacts`"
        raise wrong(FieldError("note", message))
    return asked.note


def _line(view: View) -> str:
    holder = f", held by {view['holder']}" if view["holder"] else ""
    question = f", asks {view['asked']}: {view['question']}" if view["question"] else ""
    return f"{view['task']} {view['title']} ({view['state']}, role {view['role']}{holder}{question})"


def _short(done: str, view: View) -> Said:
    return Said(f"{done}. {_line(view)}", without_nothing({name: view[name] for name in SHORT}))


def _whole(view: View) -> Said:
    """Return a task with all that was said on its way."""
    lines = [_line(view), view["description"]]
    steps = []
    for step in view["steps"]:
        names = ("by", "role", "question", "answer", "reason", "note")
        kept = {"what": step["type"].rpartition(".")[2], **{name: step.get(name) for name in names}}
        steps.append(without_nothing(kept))
        lines.extend(_step_lines(steps[-1]))
    data = without_nothing({name: view[name] for name in (*SHORT, "description")})
    return Said("\n".join(line for line in lines if line), {**data, "steps": steps})


def _step_lines(step: dict[str, Any]) -> list[str]:
    said = next((step[name] for name in ("question", "answer", "reason") if name in step), "")
    lines = [f"- {step['what']} by {step['by']}{': ' if said else ''}{said}"]
    note = step.get("note", {})
    if "summary" in note:
        lines.append(f"  {note['summary']}")
    lists = ("decisions", "files", "artifacts", "open_questions")
    lines += [f"  {name}: {'; '.join(note[name])}" for name in lists if name in note]
    return lines
