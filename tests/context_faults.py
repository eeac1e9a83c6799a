"""What the tests of bad input in the shared context share: reporting, asking, and looking at processes."""

import subprocess
from pathlib import Path
from typing import Any

from gateway import GatewayProcess
from graphs import WS, ask
from wire import Answer, call, post, wait_until


def report(gateway: GatewayProcess, path: str) -> None:
    event = {"type": "file.changed", "source": "editor", "subject": path, "workspace": WS}
    assert post(gateway, event).status == 202


def skipped(gateway: GatewayProcess) -> dict[str, str]:
    return {row["path"]: row["reason"] for row in ask(gateway, "skipped")["skipped"]}


def symbols(gateway: GatewayProcess, name: str = "good") -> Answer:
    return call(gateway, "GET", f"/v1/context/{WS}/graph/symbols?name={name}")


def wait_for(gateway: GatewayProcess, name: str = "good") -> None:
    def is_there() -> bool:
        answer = symbols(gateway, name)
        return answer.status == 200 and answer.json()["symbols"] != []

    wait_until(is_there, f"{name} in the graph")


def processes(pid: int, what: str) -> list[int]:
    """Return the descendants of a process whose command ends like this."""
    rows = [
        line.split(None, 2)
        for line in subprocess.run(
            ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout.splitlines()
    ]
    found, parents = [], [pid]
    while parents:
        parent = parents.pop()
        for child, of, command in rows:
            if int(of) == parent:
                parents.append(int(child))
                if command.endswith(what):
                    found.append(int(child))
    return found


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def say(gateway: GatewayProcess, session: str, *bodies: dict[str, Any]) -> Answer:
    return call(gateway, "POST", f"/v1/sessions/{session}/messages", {"messages": list(bodies)})
