"""The surface of the write locks: its methods and paths, like `herdr.web.routes` for the rest."""

from herdr.locks.views import Leased
from herdr.web.lock_answers import Checked, HeldLock, LockList, WaitDeclared, WaitList
from herdr.web.lock_bodies import CheckBody, EndWaitBody, LockBody, ReleaseBody, RenewBody, WaitBody
from herdr.web.lock_desk import Desk, Register
from herdr.web.locks_api import LocksApi, WaitsApi
from herdr.web.streams import Streams
from herdr.web.surface import LOCKS, Endpoint

ELSEWHERE = {404: "no workspace has this name"}
UNKNOWN_LOCK = "no such lock is held: it was released, it has expired, or it never was"
FULL = "too many locks or waiters, or the log cannot be written; try again after Retry-After"
LOCK = {
    201: "the lock, new or extended",
    **ELSEWHERE,
    409: "locked by others (`conflicts`), or waiting would never end (`cycle`)",
    503: FULL,
}
FENCED = {404: UNKNOWN_LOCK, 409: "the token is not the lock's"}
WAIT = {201: "the wait, new or extended", 409: "it would never end (`cycle`)", 503: FULL}
UNKNOWN_WAIT = {404: "no such wait is declared"}


def lock_endpoints(desk: Desk, register: Register, streams: Streams) -> list[Endpoint]:
    """Return the HTTP endpoints of locks and waits."""
    locks, waits = LocksApi(desk, register, streams), WaitsApi(desk, register)
    one, wait = "/v1/locks/{lock}", "/v1/waits/{wait}"
    return [
        Endpoint("POST", "/v1/locks", LOCKS, locks.lock, "Lock paths, all or none", LockBody, Leased, LOCK),
        Endpoint(
            "GET",
            "/v1/locks",
            LOCKS,
            locks.list,
            "List what is held and waited for",
            None,
            LockList,
            ELSEWHERE,
        ),
        Endpoint(
            "POST",
            "/v1/locks/check",
            LOCKS,
            locks.check,
            "Tell what is in the way",
            CheckBody,
            Checked,
            ELSEWHERE,
        ),
        Endpoint("GET", one, LOCKS, locks.get, "Read one lock", None, HeldLock, {404: UNKNOWN_LOCK}),
        Endpoint("PUT", one, LOCKS, locks.renew, "Renew a lease", RenewBody, Leased, FENCED),
        Endpoint("DELETE", one, LOCKS, locks.release, "Release a lock", ReleaseBody, None, FENCED),
        Endpoint(
            "POST",
            "/v1/waits",
            LOCKS,
            waits.declare,
            "Declare a wait for another",
            WaitBody,
            WaitDeclared,
            WAIT,
        ),
        Endpoint("GET", "/v1/waits", LOCKS, waits.list, "List the declared waits", None, WaitList),
        Endpoint(
            "DELETE",
            "/v1/waits",
            LOCKS,
            waits.end_of,
            "End a wait by its owners",
            EndWaitBody,
            None,
            UNKNOWN_WAIT,
        ),
        Endpoint("DELETE", wait, LOCKS, waits.end, "End a declared wait", None, None, UNKNOWN_WAIT),
    ]
