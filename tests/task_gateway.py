"""Tasks of a real gateway, over plain HTTP."""

from typing import Any

from gateway import GatewayProcess
from wire import Answer, call

View = dict[str, Any]


def tell(gateway: GatewayProcess, path: str, **body: Any) -> Answer:
    """Post to `/v1/tasks` and what follows."""
    return call(gateway, "POST", f"/v1/tasks{path}", body)


def done(answer: Answer, status: int = 200) -> View:
    assert answer.status == status, answer
    return dict(answer.json())


def create(gateway: GatewayProcess, task: str, role: str = "coder", owner: str = "ann", **more: Any) -> View:
    body = {"title": f"Title of {task}", "task": task, "role": role, "owner": owner, **more}
    return done(tell(gateway, "", **body), 201)


def claim(gateway: GatewayProcess, owner: str, role: str = "coder", **more: Any) -> View:
    return done(tell(gateway, "/claim", owner=owner, role=role, **more))


def look(gateway: GatewayProcess, task: str) -> View:
    return done(call(gateway, "GET", f"/v1/tasks/{task}"))
