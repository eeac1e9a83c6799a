"""A lock of the gateway's around something: asked for, waited for, renewed in the background, given back."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote

from herdr.cli.client import TIMEOUT_S, Answer, Gateway, Unreachable
from herdr.cli.holders import conflict_lines, owners_of
from herdr.cli.terminal import plain, span
from herdr.clock import Clock
from herdr.errors import HerdrError

SLICE_MAX_S = 600.0  # the longest wait that the gateway takes; a new request begins at the end of the line
RETRY_S = 1.0  # between two requests that could not wait in line, and of a renewal that failed
RELEASE_S = 3.0  # that a silent gateway may delay the end; the lease ends by itself
_LATER = frozenset(
    {"locked", "too_many_locks", "too_many_waiters", "overloaded", "log_unavailable", "unreachable"}
)
"""Refusals that may turn out otherwise later."""
_GONE = frozenset({"unknown_lock", "fenced"})

Say = Callable[[str], None]
To = Callable[[float], Gateway]
"""Returns the gateway, for answers that may take so many seconds."""


class Held(NamedTuple):
    """A lock that was granted."""

    lock: str
    token: int
    paths: tuple[str, ...]
    ttl_s: float
    asked_at: float
    """Monotonic, before it was asked for: the lease lasts at least `ttl_s` from then."""


class InTheWay(HerdrError):
    """Others hold what was asked for."""

    code = "locked"

    def __init__(self, conflicts: Sequence[Mapping[str, Any]], now_us: int) -> None:
        self.lines = list(conflict_lines(conflicts, now_us))
        super().__init__("\n".join(["others are in the way:", *self.lines]))
        self.owners = owners_of(conflicts)


class Taking:
    """One attempt to get a lock. `body` is that of `POST /v1/locks`, without `wait_s`."""

    def __init__(self, to: To, body: Mapping[str, Any], clock: Clock, say: Say) -> None:
        self._to = to
        self._body = body
        self._clock = clock
        self._say = say
        self._said = ""

    def take(self, wait_s: float, sleep: Callable[[float], None] = time.sleep) -> Held:
        """Return the lock, waiting at most so long; raises HerdrError that says who is in the way."""
        until, patience = self._clock.monotonic() + wait_s, 0.0
        outcome = self._try(patience)
        if isinstance(outcome, Unreachable):
            raise outcome  # later on the gateway may be away for a while; now it is more likely a mistake
        while not isinstance(outcome, Held):
            began, left = self._clock.monotonic(), until - self._clock.monotonic()
            if left <= 0 or outcome.code not in _LATER:
                raise outcome
            self._say_once(outcome, left)
            patience = min(left, SLICE_MAX_S) if isinstance(outcome, InTheWay) else 0.0
            outcome = self._try(patience)
            if not isinstance(outcome, Held) and self._clock.monotonic() - began < RETRY_S:
                sleep(max(0.0, min(RETRY_S, until - self._clock.monotonic())))
        return outcome

    def _try(self, patience: float) -> Held | HerdrError:
        asked_at = self._clock.monotonic()
        raw = json.dumps({**self._body, "wait_s": round(patience, 3)}).encode()
        gateway = self._to(TIMEOUT_S + patience)
        try:
            answer = gateway.ask("POST", "/v1/locks", raw)
        except Unreachable as error:
            return error
        if answer.status == HTTPStatus.CREATED:
            return self._held(answer, asked_at)
        return self._problem(answer)

    def _held(self, answer: Answer, asked_at: float) -> Held:
        value = answer.value if isinstance(answer.value, dict) else {}
        lock, token = value.get("lock"), value.get("token")
        if not (isinstance(lock, str) and isinstance(token, int)):
            raise self._to(TIMEOUT_S).stranger(answer.status)
        paths = tuple(map(str, value.get("paths") or self._body["paths"]))
        return Held(lock, token, paths, float(value.get("ttl_s") or self._body["ttl_s"]), asked_at)

    def _problem(self, answer: Answer) -> HerdrError:
        problem = self._to(TIMEOUT_S).problem(answer)
        if problem.code == "locked":
            return InTheWay(answer.value.get("conflicts") or (), self._clock.wall_us())
        if problem.code == "deadlock":
            cycle = plain(" waits for ".join(map(str, answer.value.get("cycle") or ())))
            return HerdrError(f"waiting would never end: {cycle}; one of them has to let go", "deadlock")
        return problem

    def _say_once(self, problem: HerdrError, left_s: float) -> None:
        """Say what we wait for; again only when somebody else is in the way."""
        who, why = problem.code, problem.detail
        if isinstance(problem, InTheWay):
            who, why = problem.owners, "; ".join(map(str.strip, problem.lines))
        if who != self._said:
            self._said = who
            self._say(f"waiting up to {span(round(left_s))}: {why}")


class Lease:
    """A held lock, renewed in the background until the end of the `with`, which gives it back.

    A lease that is lost is told to `say`, at once and at the end; nothing else happens.
    """

    def __init__(self, to: To, held: Held, clock: Clock, say: Say) -> None:
        self._to = to
        self._held = held
        self._path = f"/v1/locks/{quote(held.lock, safe='')}"
        self._names = ", ".join(held.paths)
        self._clock = clock
        self._say = say
        self._until = held.asked_at + held.ttl_s
        self._lost: str | None = None
        self._gone = self._troubled = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="renew the lease", daemon=True)

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        problem = None if self._gone else self._release()
        if problem is not None and problem.code in _GONE:
            self._lost = self._lost or problem.detail
        if self._lost is not None:
            self._say(f"the lock on {self._names} was lost meanwhile ({self._lost}): check what was written")
        elif problem is not None:
            ends = f"it ends by itself within {span(self._held.ttl_s)}"
            self._say(f"the lock on {self._names} could not be given back ({problem.detail}); {ends}")

    def _release(self) -> HerdrError | None:
        try:
            self._to(RELEASE_S).call("DELETE", self._path, {"token": self._held.token})
        except HerdrError as error:
            return error
        return None

    def _keep(self) -> None:
        pause = calm = self._held.ttl_s / 3
        while not self._gone and not self._over.wait(pause):
            problem = self._renew()
            if self._over.is_set():
                return  # it was given back while we asked
            pause = calm if problem is None else min(RETRY_S, calm)
            self._tell(problem)

    def _renew(self) -> HerdrError | None:
        asked_at = self._clock.monotonic()
        gateway = self._to(min(TIMEOUT_S, max(RETRY_S, self._held.ttl_s / 3)))
        try:
            gateway.call("PUT", self._path, {"token": self._held.token})
        except HerdrError as error:
            return error
        self._until = asked_at + self._held.ttl_s
        return None

    def _tell(self, problem: HerdrError | None) -> None:
        if problem is None:
            self._recovered()
            return
        self._gone = problem.code in _GONE
        if self._gone or (self._lost is None and self._clock.monotonic() >= self._until):
            self._lost = problem.detail if self._gone else f"not renewed in time: {problem.detail}"
            more = "The command goes on, and others may write there now"
            self._say(f"LOST THE LOCK on {self._names}: {self._lost}. {more}")
        elif not self._troubled:
            self._say(f"the lock on {self._names} cannot be renewed now ({problem.detail}); trying again")
        self._troubled = True

    def _recovered(self) -> None:
        lost, troubled = self._lost, self._troubled
        self._lost, self._troubled = None, False  # before it is said: the command may end upon that
        if lost is not None:  # the token is still the newest: nobody else was granted it
            self._say(f"the lock on {self._names} is held again, and nobody else had it meanwhile")
        elif troubled:
            self._say(f"the lock on {self._names} is renewed again")


def lock_body(paths: Sequence[str], **fields: Any) -> dict[str, Any]:
    """Return the body of a request for a lock, without what is not given."""
    return {"paths": list(paths), **{name: value for name, value in fields.items() if value is not None}}
