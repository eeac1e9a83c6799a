"""A claimed task while something works on it: renewed in the background, and ended for it."""

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from herdr.cli.client import TIMEOUT_S, Gateway, part_of
from herdr.clock import Clock
from herdr.errors import HerdrError

RETRY_S = 1.0  # after a renewal that failed
_GONE = frozenset({"fenced", "task_final", "unknown_task"})
_ENDED_BY_HOLDER = frozenset({"handed_over", "released", "finished", "failed", "rejected"})

To = Callable[[float], Gateway]
"""Returns the gateway, for answers that may take so many seconds."""


class TaskLease:
    """Renews until the end of the `with`. A lease that is lost is told to `say`; nothing else happens."""

    def __init__(
        self, to: To, view: Mapping[str, Any], ttl_s: float, clock: Clock, say: Callable[[str], None]
    ) -> None:
        self._to = to
        self._path = f"/v1/tasks/{part_of(str(view['task']))}"
        self._task, self._token = str(view["task"]), view["token"]
        self._ttl_s = ttl_s
        self._clock = clock
        self._say = say
        self._until = clock.monotonic() + ttl_s
        self._over = threading.Event()
        self._told = False
        self._thread = threading.Thread(target=self._keep, name="renew the task", daemon=True)

    def __enter__(self) -> "TaskLease":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    def end(self, verb: str, fields: Mapping[str, Any]) -> str | None:
        """End the hold, unless it has been: by the command itself, or because it was lost. Returns what is wrong."""
        self._over.set()
        try:
            self._to(TIMEOUT_S).call("POST", f"{self._path}/{verb}", {"token": self._token, **fields})
        except HerdrError as error:
            return self._why() if error.code in _GONE else error.detail
        return None

    def _keep(self) -> None:
        pause = self._ttl_s / 3
        while not self._over.wait(pause):
            problem = self._renew()
            if problem is not None and problem.code in _GONE:
                if (why := self._why()) is not None and not self._over.is_set():
                    self._say(
                        f"LOST THE TASK {self._task}: {why}. The command goes on, and others may work on it"
                    )
                return
            pause = self._ttl_s / 3 if problem is None else min(RETRY_S, self._ttl_s / 3)
            if problem is not None and self._clock.monotonic() >= self._until and not self._told:
                self._told = True
                self._say(f"the task {self._task} is not renewed in time ({problem.detail}); trying again")

    def _renew(self) -> HerdrError | None:
        asked_at = self._clock.monotonic()
        try:
            self._to(min(TIMEOUT_S, max(RETRY_S, self._ttl_s / 3))).call(
                "POST", f"{self._path}/renew", {"token": self._token, "ttl_s": self._ttl_s}
            )
        except HerdrError as error:
            return error
        self._until, self._told = asked_at + self._ttl_s, False
        return None

    def _why(self) -> str | None:
        """Return how the hold was lost; None when its holder has ended it, and all is well."""
        try:
            steps = self._to(TIMEOUT_S).read(self._path).get("steps") or ()
        except HerdrError as error:
            return error.detail
        ends = [step for step in steps if step.get("token") == self._token]
        last = ends[-1] if ends else {}
        what = str(last.get("type")).removeprefix("handoff.")
        if last.get("by") == last.get("holder") and what in _ENDED_BY_HOLDER:
            return None
        return f"it was {what} by {last.get('by')}" + (f" ({last['reason']})" if last.get("reason") else "")
