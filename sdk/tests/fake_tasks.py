"""The tasks of the small gateway: one step after the other, with what may go wrong on demand."""

import asyncio
from typing import Any

from aiohttp import web

TIME = "2026-03-02T09:15:00.000Z"
EVENTS = {"hand-over": "handed_over", "ask": "asked", "answer": "answered", "release": "released"} | {
    "finish": "finished", "fail": "failed", "reject": "rejected", "cancel": "canceled"
}  # fmt: skip
STATES = {"ask": "input_required", "answer": "working", "hand-over": "submitted", "release": "submitted"} | {
    "finish": "completed", "fail": "failed", "reject": "rejected", "cancel": "canceled"
}  # fmt: skip


class TaskTable:
    """Answers what stands under `/v1/tasks`; give it to `FaultGateway.answer`."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.tasks: dict[str, dict[str, Any]] = {}
        self.told: list[tuple[str, dict[str, Any]]] = []  # what was done with a task, and the body
        self.seq = 16
        self.new = asyncio.Condition()
        self.ended = asyncio.Event()
        # faults
        self.lose: list[str] = []  # carry out the next of these, then hang up
        self.drop: list[str] = []  # hang up on the next of these
        self.silent: set[str] = set()  # never answer these, nor carry them out

    def add(self, **fields: Any) -> dict[str, Any]:
        """Put a task there that somebody else has created."""
        fixed = {"state": "submitted", "created": TIME, "updated": TIME, "workspace": "default", "steps": []}
        task = {"task": "t1", "title": "Add VAT", "role": "coder", "created_by": "me"} | fixed | fields
        self.tasks[task["task"]] = task
        self.step(task, "created", by="me", note=fields.get("note"))
        return task

    def step(self, task: dict[str, Any], what: str, **fields: Any) -> None:
        self.seq += 1
        said = {"seq": self.seq, "type": f"handoff.{what}", "time": TIME, "token": task.get("token")}
        task["steps"].append(said | {name: value for name, value in fields.items() if value is not None})

    def names(self) -> list[str]:
        return [what for what, _ in self.told]

    async def __call__(self, asked: Any) -> Any:
        parts = asked.address.partition("?")[0].split("/")[3:]
        if asked.method == "GET":
            return self.look(parts)
        what, body = parts[-1] if parts else "create", asked.json
        if what in self.silent:
            await self.ended.wait()
        if what in self.drop:
            self.drop.remove(what)
            return self.hang_up()
        self.told.append((what, body))
        answer = await self.act(parts, body)
        if what in self.lose:
            self.lose.remove(what)
            return self.hang_up()
        return answer

    def look(self, parts: list[str]) -> Any:
        if parts:
            return self.tasks.get(parts[0]) or problem(404, "unknown_task")
        return {"tasks": [{**task, "steps": len(task["steps"])} for task in self.tasks.values()]}

    async def act(self, parts: list[str], body: dict[str, Any]) -> Any:
        if not parts:
            known = body["task"] in self.tasks
            task = self.tasks[body["task"]] if known else self.add(**body)
            return web.json_response(task, status=200 if known else 201)
        if parts == ["claim"]:
            return await self.claim_next(body)
        task, what = self.tasks[parts[0]], parts[1]
        if what == "claim":
            return self.claim(task, body)
        if what in ("answer", "cancel"):
            self.step(task, EVENTS[what], answer=body.get("answer"))
        elif body["token"] != task.get("token"):
            return problem(409, "fenced")
        elif what == "renew":
            return task
        else:
            kept = ("note", "reason", "question", "to")
            self.step(task, EVENTS[what], by=task["holder"], **{name: body.get(name) for name in kept})
        task["state"] = STATES[what]
        if what not in ("ask", "answer"):
            task |= {"holder": None, "token": None, "role": body.get("role", task["role"])}
        return task

    def claim(self, task: dict[str, Any], body: dict[str, Any]) -> Any:
        if task.get("holder") not in (None, body.get("owner")):
            return problem(409, "task_held", f"{task['holder']} holds it until {TIME}")
        task |= {"state": "working", "holder": body.get("owner"), "token": self.seq + 1}
        self.step(task, "claimed", by=task["holder"])
        return task

    async def claim_next(self, body: dict[str, Any]) -> Any:
        def fitting() -> dict[str, Any] | None:
            free = (task for task in self.tasks.values() if task["state"] == "submitted")
            return next((task for task in free if task["role"] == body["role"]), None)

        try:
            async with asyncio.timeout(body["wait_s"]), self.new:
                await self.new.wait_for(fitting)
        except TimeoutError:
            return web.Response(status=204)
        task = fitting()
        return web.Response(status=204) if task is None else self.claim(task, body)

    async def bring(self, **fields: Any) -> None:
        """Put a task there while somebody waits for one."""
        self.add(**fields)
        async with self.new:
            self.new.notify_all()

    def take_away(self, task: str = "t1") -> None:
        """Give a task to somebody else."""
        self.tasks[task] |= {"holder": "another", "token": self.seq + 1}
        self.step(self.tasks[task], "claimed", by="another")

    def hang_up(self) -> web.Response:
        for connection in self.gateway._runner.server.connections:
            connection.transport.abort()
        return web.Response()


def problem(status: int, code: str, detail: str = "no") -> web.Response:
    return web.json_response({"code": code, "detail": detail}, status=status)
