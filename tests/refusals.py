"""What every refusal has in common: its form, and that it leaves the gateway as it was."""

from typing import Any

from gateway import GatewayProcess
from wire import Answer, accept, health

GOOD = {"type": "tool.result"}
DEEP = b"[" * 100_000 + b"]" * 100_000


def assert_serves(gateway: GatewayProcess) -> None:
    seq = accept(gateway, **GOOD, data={"still": "here"})
    assert health(gateway)["status"] == "ok"
    assert health(gateway)["head"] == seq
    assert not [line for line in gateway.log if "Traceback" in line]


def assert_problem(
    answer: Answer, status: int, *codes: str, field: str | None = None, index: int | None = None
) -> dict[str, Any]:
    """Check the form of PROTOCOL section 7, and that nothing of the server leaks out."""
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/problem+json"
    problem = dict(answer.json())
    assert {"type", "title", "status", "code", "detail"} <= set(problem)
    assert problem["status"] == status and problem["title"] and problem["detail"]
    assert problem["code"] in codes, problem
    assert problem["type"].endswith(problem["code"])
    assert "Traceback" not in problem["detail"] and ".py" not in problem["detail"]
    for entry in problem.get("errors", []):
        assert {"field", "message"} <= set(entry) <= {"field", "message", "index"}
        assert entry["message"]
    if field is not None:
        assert problem["errors"][0]["field"] == field, problem
        assert problem["errors"][0].get("index") == index, problem
    return problem
