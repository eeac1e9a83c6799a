"""A desk of locks that does what a test says, and notes what it was asked: for the web layer alone."""

import asyncio
from collections.abc import Sequence
from typing import Any

from herdr.errors import HerdrError, NotFound
from herdr.locks.lock import Mode, Wanted
from herdr.locks.refusals import Fenced
from herdr.locks.views import Leased, Taken

SINCE, EXPIRES = "2026-03-02T09:15:04.120Z", "2026-03-02T09:16:04.120Z"


class FakeDesk:
    """Grants everything, unless told otherwise. Implements both protocols of `herdr.web.lock_desk`."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.refuses: HerdrError | None = None
        """Raised by whatever is asked next, and from then on."""
        self.held: set[int] = set()
        """Tokens that `carried` knows."""
        self.next_token = 7
        self.extends = False
        """Whether whoever asks has had the lock before."""
        self.gate = asyncio.Event()
        """Those who wait in line are let through when it is set."""
        self.waiting = 0

    def _note(self, *said: Any) -> None:
        self.said.append(said)
        if self.refuses is not None:
            raise self.refuses

    def leased(self, lock: str, token: int, **more: Any) -> Leased:
        fields = {"mode": "write", "owner": "a", "workspace": "default", "purpose": None, "session": None}
        fields |= {"paths": ("a",), "ttl_s": 60.0, "expires": EXPIRES, "since": SINCE, **more}
        return Leased(lock=lock, token=token, **fields)

    async def lock(self, wanted: Wanted) -> Taken:
        w = wanted
        self._note(
            "lock", w.workspace, list(w.paths), w.owner, w.mode, w.ttl_s, w.wait_s, w.purpose, w.session
        )
        if w.wait_s > 0:
            await self._stand_in_line(w.paths)
        token, self.next_token = self.next_token, self.next_token + 1
        self.held.add(token)
        shared = ("mode", "owner", "workspace", "purpose", "session", "paths", "ttl_s")
        fields = {name: getattr(w, name) for name in shared}
        leased = self.leased(f"L{token}", token, **{**fields, "owner": w.owner or f"anonymous-L{token}"})
        return Taken(leased, is_new=not self.extends)

    async def _stand_in_line(self, paths: Sequence[str]) -> None:
        self.waiting += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.said.append(("withdrawn", list(paths)))
            raise
        finally:
            self.waiting -= 1

    async def renew(self, lock: str, token: int, ttl_s: float | None) -> Leased:
        self._note("renew", lock, token, ttl_s)
        return self.leased(lock, token, ttl_s=60.0 if ttl_s is None else ttl_s)

    async def release(self, lock: str, token: int, reason: str = "released") -> None:
        self._note("release", lock, token, reason)
        if token not in self.held:
            raise NotFound("no such lock", "unknown_lock")
        self.held.discard(token)

    def give_back(self, lock: str) -> None:
        self._note("give_back", lock)
        self.held.discard(int(lock[1:]))

    async def force(self, lock: str, reason: str, by: str) -> None:
        self._note("force", lock, reason, by)

    async def carried(self, tokens: Sequence[int]) -> None:
        self._note("carried", *tokens)
        if not self.held.issuperset(tokens):
            raise Fenced("one of them is not held any more")

    async def check(
        self, workspace: str, paths: Sequence[str], owner: str | None, mode: Mode
    ) -> list[dict[str, Any]]:
        self._note("check", workspace, list(paths), owner, mode)
        return []

    async def listed(self, workspace: str | None, path: str | None, owner: str | None) -> dict[str, Any]:
        self._note("listed", workspace, path, owner)
        return {"locks": [], "waiting": [], "waits": []}

    async def one(self, lock: str) -> dict[str, Any]:
        self._note("one", lock)
        return {"lock": lock}

    async def waits(self) -> list[dict[str, Any]]:
        self._note("waits")
        return []

    async def declare(self, owner: str, on: str, purpose: str | None, ttl_s: float) -> dict[str, Any]:
        self._note("declare", owner, on, purpose, ttl_s)
        return {"wait": f"W-{owner}-{on}", "owner": owner, "on": on, "purpose": purpose, "expires": EXPIRES}

    async def end_wait(self, wait: str) -> None:
        self._note("end_wait", wait)

    async def end_wait_of(self, owner: str, on: str) -> None:
        self._note("end_wait_of", owner, on)
