"""One task on its way through four processes with the SDK, one of which is killed in the middle.

It is finished all the same, and the events alone explain every step.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from gateway import GatewayProcess
from wire import call

PATIENCE_S = 60
LEASE_S = 1.0  # of the one that is killed; the others have time
WORKER = """\
import json, sys
from herdr_sdk.blocking import Hub

name, role, following, ttl, stuck = sys.argv[1:]
with Hub(name=name) as hub:
    print("here", flush=True)
    with hub.tasks.work(role, ttl=float(ttl)) as task:
        note = task.note
        print(json.dumps({"token": task.token, "note": note.summary, "decisions": note.decisions}), flush=True)
        if stuck == "stuck":
            sys.stdin.readline()
        said = {"summary": f"{name} was here", "decisions": [*note.decisions, f"by {name}"]}
        if following:
            task.hand_over(following, files=[f"{role}.py"], artifacts=["plan"], open_questions=["why?"], **said)
        else:
            task.finish(**said)
"""


class Worker:
    """One process of a role."""

    def __init__(
        self, gateway: GatewayProcess, name: str, following: str = "", *, stuck: bool = False
    ) -> None:
        clean = {n: text for n, text in os.environ.items() if not n.startswith("HERDR_")}
        role, ttl = name.partition("/")[0], LEASE_S if stuck else 60
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, name, role, following, str(ttl), "stuck" if stuck else ""],
            env={**clean, "HERDR_GATEWAY_URL": gateway.url},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.complaint = ""

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def began(self) -> Any:
        """What it was given, once it has the task."""
        return json.loads(self.line())

    def end(self) -> int:
        _, self.complaint = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert self.end() == -signal.SIGKILL


@pytest.fixture
def workers(gateway: GatewayProcess) -> Iterator[Any]:
    with ExitStack() as running:

        def start(name: str, following: str = "", *, stuck: bool = False) -> Worker:
            worker = Worker(gateway, name, following, stuck=stuck)
            running.enter_context(worker.process)
            running.callback(worker.process.kill)
            assert worker.line() == "here"
            return worker

        yield start


def chain(gateway: GatewayProcess) -> list[dict[str, Any]]:
    """The events about tasks, without renewals, of which there are as many as a holder needs."""
    events = call(gateway, "GET", "/v1/events?after=0&limit=1000&type=handoff.*").json()["events"]
    return [event for event in events if event["type"] != "handoff.renewed"]


def told(event: dict[str, Any]) -> tuple[Any, ...]:
    data = event["data"]
    return event["type"].removeprefix("handoff."), data["by"], data["role"], data["state"], data["holder"]


def test_a_task_goes_through_four_processes_one_of_which_is_killed(
    gateway: GatewayProcess, workers: Any
) -> None:
    coder = workers("coder/1", "reviewer", stuck=True)
    others = [workers("architect/1", "coder"), workers("reviewer/1", "tester"), workers("tester/1")]
    body = {
        "task": "vat",
        "title": "Add VAT",
        "role": "architect",
        "owner": "me",
        "note": {"summary": "net prices"},
    }
    assert call(gateway, "POST", "/v1/tasks", body).status == 201
    killed = coder.began()
    assert killed["note"] == "architect/1 was here"
    coder.kill()
    second = workers("coder/2", "reviewer")
    assert [worker.end() for worker in (second, *others)] == [0] * 4

    events = chain(gateway)
    assert [told(event) for event in events] == [
        ("created", "me", "architect", "submitted", None),
        ("claimed", "architect/1", "architect", "working", "architect/1"),
        ("handed_over", "architect/1", "coder", "submitted", "architect/1"),
        ("claimed", "coder/1", "coder", "working", "coder/1"),
        ("returned", "herdr", "coder", "submitted", "coder/1"),
        ("claimed", "coder/2", "coder", "working", "coder/2"),
        ("handed_over", "coder/2", "reviewer", "submitted", "coder/2"),
        ("claimed", "reviewer/1", "reviewer", "working", "reviewer/1"),
        ("handed_over", "reviewer/1", "tester", "submitted", "reviewer/1"),
        ("claimed", "tester/1", "tester", "working", "tester/1"),
        ("finished", "tester/1", "tester", "completed", "tester/1"),
    ]
    assert {(event["task"], event["class"], event["priority"]) for event in events} == {("vat", "tool", "P1")}
    assert events[4]["data"]["reason"] == "lease_expired"
    explain_tokens(events)
    explain_notes(events)
    task = call(gateway, "GET", "/v1/tasks/vat").json()
    assert (task["state"], task["holder"], task["token"]) == ("completed", None, None)
    assert [(step["seq"], step["type"]) for step in task["steps"]] == [(e["seq"], e["type"]) for e in events]
    assert killed["token"] == events[3]["seq"]


def explain_tokens(events: list[dict[str, Any]]) -> None:
    """A claim's token is its own `seq`; what follows carries it, up to the next claim."""
    token = None
    for event in events:
        token = event["seq"] if event["type"] == "handoff.claimed" else token
        assert event["data"]["token"] == token


def explain_notes(events: list[dict[str, Any]]) -> None:
    """Each hand-over carries what all before it have decided, and what goes along with it."""
    notes = [event["data"]["note"] for event in events if event["type"] == "handoff.handed_over"]
    assert [note["decisions"] for note in notes] == [
        ["by architect/1"],
        ["by architect/1", "by coder/2"],
        ["by architect/1", "by coder/2", "by reviewer/1"],
    ]
    assert {name: notes[1][name] for name in ("summary", "files", "artifacts", "open_questions")} == {
        **{"summary": "coder/2 was here", "files": ["coder.py"]},
        **{"artifacts": ["plan"], "open_questions": ["why?"]},
    }
    last = events[-1]["data"]["note"]
    assert last["decisions"][-1] == "by tester/1"


def test_each_role_hears_of_what_waits_for_it(gateway: GatewayProcess, workers: Any) -> None:
    """Each hand-over is an event for the role, its creator hears of each claim and of the end."""
    for name in ("architect", "coder", "me"):
        call(gateway, "GET", f"/v1/events?as={name}&limit=1")
    body = {"task": "vat", "title": "Add VAT", "role": "architect", "owner": "me", "note": {"summary": "net"}}
    call(gateway, "POST", "/v1/tasks", body)
    assert workers("architect/1", "coder").end() == 0
    assert workers("coder/1").end() == 0

    def heard(name: str) -> list[str]:
        events = call(gateway, "GET", f"/v1/events?as={name}&after=0&type=handoff.*").json()["events"]
        return [event["type"].removeprefix("handoff.") for event in events]

    assert heard("architect") == ["created"]
    assert heard("coder") == ["handed_over"]
    assert heard("me") == ["claimed", "claimed", "finished"]


def test_a_worker_that_was_halted_for_too_long_learns_that_it_lost_the_task(
    gateway: GatewayProcess, workers: Any
) -> None:
    body = {"task": "vat", "title": "Add VAT", "role": "coder", "owner": "me", "note": {"summary": "net"}}
    call(gateway, "POST", "/v1/tasks", body)
    halted = workers("coder/1", "reviewer", stuck=True)
    halted.began()
    halted.process.send_signal(signal.SIGSTOP)
    second = workers("coder/2", "reviewer", stuck=True)
    second.began()
    halted.process.send_signal(signal.SIGCONT)
    assert halted.end() == 1
    assert halted.complaint.splitlines()[-1].startswith("herdr_sdk.errors.TaskLost: The task vat (token ")
    assert second.end() == 0
    assert [told(event)[:2] for event in chain(gateway)] == [
        *[("created", "me"), ("claimed", "coder/1"), ("returned", "herdr"), ("claimed", "coder/2")],
        ("handed_over", "coder/2"),
    ]
