"""Asking about locks without taking any: plain HTTP, for nothing needs a connection that stays."""

from collections.abc import Mapping
from typing import Any

import msgspec

from herdr_sdk.errors import Holder
from herdr_sdk.plain_http import PlainHttp, Request, json_request


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


class LockQueries:
    """The look-ups of one hub."""

    def __init__(self, http: PlainHttp) -> None:
        self._http = http

    async def held(self, query: Mapping[str, str]) -> list[LockInfo]:
        """Return the locks that match; see `Hub.locks`."""
        return (await self._http.read(_Locks, Request("GET", "/v1/locks", query))).locks

    async def conflicts(self, body: Mapping[str, Any]) -> list[Holder]:
        """Return who is in the way; see `Hub.check`."""
        return (await self._http.read(_Conflicts, json_request("/v1/locks/check", body))).conflicts
