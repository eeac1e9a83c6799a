"""The handlers of `/v1/locks` and `/v1/waits`."""

from typing import Any

from herdr.errors import FieldError
from herdr.locks.lock import Wanted
from herdr.locks.views import Taken
from herdr.web.asgi import Receive, Reply, Scope, read_body, respond, respond_json
from herdr.web.auth import ANYONE, Caller
from herdr.web.bodies import wrong
from herdr.web.lock_bodies import (
    BODY_MAX,
    Body,
    CheckBody,
    EndWaitBody,
    ListQuery,
    LockBody,
    ReleaseBody,
    RenewBody,
    WaitBody,
    read_body_as,
    read_either,
    read_query_as,
)
from herdr.web.lock_desk import Desk, Register
from herdr.web.problems import Refused
from herdr.web.standing import stand_in_line
from herdr.web.streams import Streams

BODY_ADVICE = "name folders or globs in place of single paths"
_NO_TOKEN = FieldError("token", "required: the number that came with the lock, in the query or in the body")


class LocksApi:
    """The handlers of `/v1/locks`."""

    def __init__(self, desk: Desk, register: Register, streams: Streams) -> None:
        self._desk = desk
        self._register = register
        self._streams = streams

    async def lock(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Lock paths, all or none; with `wait_s` stand in line while the client is there."""
        asked = read_body_as(LockBody, await _read(scope, receive))
        if asked.wait_s > 0:
            asking = ask(self._desk, asked, caller)
            taken = await stand_in_line(asking, receive, self._streams, self._give_back)
        else:
            taken = await ask(self._desk, asked, caller)
        await respond_json(send, 201, taken.leased)

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with what is held, who stands in line, and the declared waits."""
        query = read_query_as(ListQuery, scope["query_string"])
        await respond_json(send, 200, await self._register.listed(query.workspace, query.path, query.owner))

    async def get(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with one lock."""
        await respond_json(send, 200, await self._register.one(scope["path_params"]["lock"]))

    async def renew(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Begin a lease anew."""
        renewal = await _read_either(RenewBody, scope, receive)
        if renewal.token is None:
            raise wrong(_NO_TOKEN)
        leased = await self._desk.renew(scope["path_params"]["lock"], renewal.token, renewal.ttl_s)
        await respond_json(send, 200, leased)

    async def release(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Give a lock back with its token, or take it from its holder by force."""
        release = await _read_either(ReleaseBody, scope, receive)
        lock = scope["path_params"]["lock"]
        if release.force:
            await self._desk.force(lock, _reason(release, caller), caller.name)
        elif release.token is None:
            raise wrong(_NO_TOKEN)
        elif release.reason is not None:
            raise wrong(FieldError("reason", "goes with force=true; a holder needs none"))
        else:
            await self._desk.release(lock, release.token)
        await respond(send, 204, b"", [])

    async def check(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with what is in the way of a lock; nothing is locked."""
        asked = read_body_as(CheckBody, await _read(scope, receive))
        conflicts = await self._register.check(asked.workspace, asked.paths, asked.owner, asked.mode)
        await respond_json(send, 200, {"conflicts": conflicts})

    def _give_back(self, taken: Taken) -> None:
        """Release a lock that came in the moment when the client went, unless its owner had it before."""
        if taken.is_new:
            self._desk.give_back(taken.leased.lock)


class WaitsApi:
    """The handlers of `/v1/waits`."""

    def __init__(self, desk: Desk, register: Register) -> None:
        self._desk = desk
        self._register = register

    async def declare(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Note that an owner waits for another's result."""
        wait = read_body_as(WaitBody, await _read(scope, receive))
        await respond_json(send, 201, await declare(self._desk, wait, caller))

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the declared waits."""
        await respond_json(send, 200, {"waits": await self._register.waits()})

    async def end(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """End a wait by its id."""
        await self._desk.end_wait(scope["path_params"]["wait"])
        await respond(send, 204, b"", [])

    async def end_of(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """End the wait of an owner for another."""
        wait = await _read_either(EndWaitBody, scope, receive)
        if wait.on is None:
            raise wrong(FieldError("on", "required: whom the owner does not wait for any more"))
        await self._desk.end_wait_of(named(wait.owner, caller), wait.on)
        await respond(send, 204, b"", [])


async def ask(desk: Desk, asked: LockBody, caller: Caller) -> Taken:
    """Ask for what a body, or a frame, names."""
    wanted = Wanted(
        paths=tuple(asked.paths),
        owner=asked.owner or _token_name(caller),
        workspace=asked.workspace,
        mode=asked.mode,
        ttl_s=asked.ttl_s,
        wait_s=asked.wait_s,
        purpose=asked.purpose,
        session=asked.session,
        reports=asked.reports,
    )
    return await desk.lock(wanted)


async def declare(desk: Desk, wait: WaitBody, caller: Caller) -> dict[str, Any]:
    """Declare the wait that a body, or a frame, names."""
    return await desk.declare(named(wait.owner, caller), wait.on, wait.purpose, wait.ttl_s)


def named(owner: str | None, caller: Caller) -> str:
    """Return the owner: as asked, or the name of the client's token. Raises InvalidInput without either."""
    found = owner or _token_name(caller)
    if found is None:
        raise wrong(
            FieldError("owner", "required where no tokens are used: any name that the client goes by")
        )
    return found


def _token_name(caller: Caller) -> str | None:
    return None if caller.name == ANYONE.name else caller.name


async def _read(scope: Scope, receive: Receive) -> bytes:
    return await read_body(scope, receive, BODY_MAX, BODY_ADVICE)


async def _read_either(type_: type[Body], scope: Scope, receive: Receive) -> Body:
    return read_either(type_, scope["query_string"], await _read(scope, receive))


def _reason(release: ReleaseBody, caller: Caller) -> str:
    if not caller.may("admin"):
        raise Refused(
            "missing_scope",
            f"the token {caller.name!r} lacks the scope 'admin', which force needs; with the lock's token it goes "
            "without force",
        )
    if release.token is not None:
        raise wrong(FieldError("token", "not with force=true; who has the token needs no force"))
    if release.reason is None:
        raise wrong(FieldError("reason", "required with force=true: what the holder is told"))
    return release.reason
