"""Asking a gateway's project graph in tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from gateway import GatewayProcess, running_gateway
from wire import call, wait_until

WS = "tree"


def watching(folder: Path) -> tuple[str, ...]:
    """Arguments of a gateway that watches a folder as workspace `tree`."""
    folder.mkdir(exist_ok=True)
    return ("--workspace", str(folder))


def manifest(gateway: GatewayProcess, workspace: str = WS) -> dict[str, Any]:
    answer = call(gateway, "GET", f"/v1/context/{workspace}")
    assert answer.status == 200, answer
    return dict(answer.json())


def graph(gateway: GatewayProcess, workspace: str = WS) -> dict[str, Any]:
    """Wait until the graph is ready, as long as it comes nearer, and return its part of the manifest."""
    found: list[dict[str, Any]] = [{}]

    def moved() -> bool:
        now = dict(manifest(gateway, workspace)["graph"])
        has_moved = now["state"] == "ready" or _progress(now) != _progress(found[-1])
        if has_moved:
            found.append(now)
        return has_moved

    while found[-1].get("state") != "ready":
        wait_until(moved, f"the graph to come nearer than {_progress(found[-1])}")
    return found[-1]


def _progress(found: Mapping[str, Any]) -> Any:
    return found.get("state"), (found.get("progress") or {}).get("done")


def ask(gateway: GatewayProcess, question: str, workspace: str = WS, **query: Any) -> Any:
    """Put a question to the graph; it must be answered."""
    answer = call(gateway, "GET", f"/v1/context/{workspace}/graph/{question}?{urlencode(query, doseq=True)}")
    assert answer.status == 200, answer
    return answer.json()


def names(gateway: GatewayProcess, name: str, workspace: str = WS) -> list[str]:
    """Return the ids of what a name, or a glob, means."""
    return [found["symbol"] for found in ask(gateway, "symbols", workspace, name=name)["symbols"]]


def fresh_version(folder: Path, data: Path) -> Mapping[str, Any]:
    """Return what a gateway that has never seen the folder makes of it."""
    with running_gateway(data, "--workspace", str(folder)) as gateway:
        return graph(gateway, folder.name)
