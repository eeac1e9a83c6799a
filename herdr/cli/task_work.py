"""`herdr task work`: one task of a role after the other, each with a command."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from herdr.cli.child import NOT_FOUND, NOT_RUN, run_fed
from herdr.cli.client import TIMEOUT_S, Gateway
from herdr.cli.owner import OWNER_VARIABLE, named_owner, unique_owner
from herdr.cli.task_lease import TaskLease
from herdr.cli.task_options import CLAIM_VARIABLES
from herdr.cli.terminal import note, print_json, print_line, span
from herdr.clock import Clock, SystemClock
from herdr.errors import HerdrError

POLL_S = 50.0  # of one request that waits: proxies give up after 60 s without a byte
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""After the first, second … failure in a row; a task that fails may come back at once."""
_PASSING = frozenset({"overloaded", "log_unavailable", "too_many_waiters", "unreachable"})

TITLE_VARIABLE = "HERDR_TASK_TITLE"


def work(args: argparse.Namespace) -> int:
    """Run the command for each task; returns the last exit code when told to stop, or after one with `--once`."""
    command = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not command:
        raise HerdrError("there is no command: herdr task work --role tester -- scripts/test", "usage")

    def to(timeout_s: float) -> Gateway:
        return Gateway(args.url, args.token, timeout_s)

    owner = named_owner(args.owner) or unique_owner()
    body = {"role": args.role, "owner": owner, "ttl_s": args.ttl, "workspace": args.workspace or "default"}
    worker = Worker(to, body, command, SystemClock(), note, print_json if args.json else None)
    return worker.run(once=args.once)


class Worker:
    """Claims, runs, ends."""

    def __init__(
        self,
        to: Callable[[float], Gateway],
        body: Mapping[str, Any],
        command: Sequence[str],
        clock: Clock,
        say: Callable[[str], None],
        tell: Callable[[Any], None] | None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`tell`: is given what became of each task, in place of a line for people."""
        self._to = to
        self._body = body
        self._command = command
        self._clock = clock
        self._say = say
        self._tell = tell
        self._sleep = sleep
        self._reached = False

    def run(self, *, once: bool) -> int:
        """Work until told to stop."""
        failures = 0
        while True:
            code, stopped = self._work_on(self._claim())
            if once or stopped or code in (NOT_RUN, NOT_FOUND):
                return code
            failures = failures + 1 if code else 0
            if failures:
                pause = PAUSES_S[min(failures, len(PAUSES_S)) - 1]
                self._say(f"the command failed; going on in {span(pause)}")
                self._sleep(pause)

    def _claim(self) -> dict[str, Any]:
        """Return the next task, however long that takes; raises HerdrError when it cannot come to that."""
        failures = 0
        while True:
            try:
                found = self._ask()
            except HerdrError as error:
                # At first it is more likely a mistake; later on the gateway may be away for a while
                if error.code not in _PASSING or not self._reached:
                    raise
                if not failures:
                    self._say(f"waiting for the gateway: {error.detail}")
                self._sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
                continue
            self._reached, failures = True, 0
            if found is not None:
                return found

    def _ask(self) -> dict[str, Any] | None:
        gateway = self._to(TIMEOUT_S + POLL_S)
        found = gateway.call("POST", "/v1/tasks/claim", {**self._body, "wait_s": POLL_S})
        return None if found is None else gateway.object(found)

    def _work_on(self, view: Mapping[str, Any]) -> tuple[int, bool]:
        task, token = str(view.get("task")), str(view.get("token"))
        ours = dict(zip(CLAIM_VARIABLES, (task, token), strict=True))
        ours |= {TITLE_VARIABLE: str(view.get("title")), OWNER_VARIABLE: str(view.get("holder"))}
        with TaskLease(self._to, view, float(self._body["ttl_s"]), self._clock, self._say) as lease:
            code, stopped = run_fed(self._command, {**os.environ, **ours}, json.dumps(view).encode())
            given_back = {"reason": f"exit code {code}"}
            problem = lease.end("release", given_back) if code else lease.end("finish", {})
        self._report(task, code, problem)
        return code, stopped

    def _report(self, task: str, code: int, problem: str | None) -> None:
        if self._tell is not None:
            self._tell({"task": task, "exit_code": code, "problem": problem})
        elif problem is not None:
            self._say(f"task {task}: exit code {code}, and {problem}")
        else:
            print_line(f"{task}: exit code {code}")
        sys.stdout.flush()  # before the next command writes there
