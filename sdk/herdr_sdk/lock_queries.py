"""Asking about locks without taking any: plain HTTP, for nothing needs a connection that stays."""

from collections.abc import Mapping
from typing import Any, TypeVar

import aiohttp
import msgspec

from herdr_sdk.errors import ConnectionFailed, Holder, ServerError
from herdr_sdk.frames import Failure

ANSWER_S = 30.0  # as long as a publish may take by default; the gateway answers this from memory

_T = TypeVar("_T")


class LockInfo(msgspec.Struct, frozen=True):
    """One lock that somebody holds."""

    lock: str
    paths: tuple[str, ...]
    mode: str
    owner: str
    workspace: str
    token: int
    since: str
    expires: str
    ttl_s: float
    purpose: str | None = None
    session: str | None = None
    waiters: tuple[str, ...] = ()
    """Owners who stand in line for it, the next one first."""


class _Locks(msgspec.Struct):
    locks: list[LockInfo]


class _Conflicts(msgspec.Struct):
    conflicts: list[Holder]


class _Problem(msgspec.Struct):
    code: str = ""
    detail: str = ""


class LockQueries:
    """The look-ups of one hub."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/") + "/v1/locks"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def held(self, query: Mapping[str, str]) -> list[LockInfo]:
        """Return the locks that match; see `Hub.locks`."""
        return (await self._call(_Locks, "GET", "", params=query)).locks

    async def conflicts(self, body: Mapping[str, Any]) -> list[Holder]:
        """Return who is in the way; see `Hub.check`."""
        return (await self._call(_Conflicts, "POST", "/check", json=body)).conflicts

    async def _call(self, kind: type[_T], method: str, path: str, **what: Any) -> _T:
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        try:
            async with (
                aiohttp.ClientSession(headers=self._headers, timeout=timeout) as session,
                session.request(method, self._url + path, **what) as response,
            ):
                status, body = response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            raise ConnectionFailed(
                f"The gateway does not answer at {self._url} ({why}). Is it running?"
            ) from None
        try:
            if status < 400:
                return msgspec.json.decode(body, type=kind)
            problem = msgspec.json.decode(body, type=_Problem)
        except msgspec.DecodeError:
            detail = f"{self._url + path} answers HTTP {status} with something else. Is it a Herdr gateway?"
            raise ServerError("unreadable_answer", detail) from None
        raise Failure(problem.code, problem.detail).as_error()
