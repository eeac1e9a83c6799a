"""The locks of the small gateway: a table for exact paths, and what may go wrong with it on demand."""

import asyncio
from typing import Any, Protocol

from aiohttp import web


class Sockets(Protocol):
    """What the table asks of the gateway that it belongs to."""

    def hang_up(self, socket: web.WebSocketResponse) -> None: ...

    def tell(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None: ...


class LockDesk:
    """A lock table for exact paths: one holder each, first come first served, tokens that rise."""

    def __init__(self, gateway: Sockets) -> None:
        self.gateway = gateway
        self.held: dict[str, dict[str, Any]] = {}
        self.line: list[tuple[web.WebSocketResponse, dict[str, Any]]] = []
        self.waits: dict[str, dict[str, Any]] = {}
        self.tokens = 16
        self.new: dict[tuple[web.WebSocketResponse, int], str] = {}  # locks by the request that they are for
        # faults
        self.keeps_bound = False  # as after a restart: what is bound is there when its holder comes back
        self.refuse: dict[str, list[dict[str, Any]]] = {}  # by op: error frames for the next of these
        self.silent: set[str] = set()  # ops that are carried out, or not, and never answered
        self.hang_up: list[str] = []  # ops whose next frame breaks the connection instead

    def blockers(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"path": path, "asked": path, "state": "held", "lock": one["lock"]}
            | {name: one.get(name) for name in ("owner", "purpose", "since", "expires")}
            for one in self.held.values()
            for path in one["paths"]
            if path in frame["paths"] and one["owner"] != frame["owner"]
        ]

    async def handle(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        op = frame["op"]
        if op in self.hang_up:
            self.hang_up.remove(op)
            self.gateway.hang_up(socket)
            raise ConnectionError
        if self.refuse.get(op):
            await socket.send_json({"op": "error", "ref": frame["ref"], **self.refuse[op].pop(0)})
        elif (answer := await getattr(self, op)(socket, frame)) is not None and op not in self.silent:
            await socket.send_json({"op": op, "ref": frame["ref"], **answer})

    async def lock(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> dict[str, Any] | None:
        if conflicts := self.blockers(frame):
            error = {"op": "error", "ref": frame["ref"], "code": "locked", "conflicts": conflicts}
            if frame["wait_s"] == 0:
                await socket.send_json(error)
                return None
            self.line.append((socket, frame))
            asyncio.get_running_loop().call_later(frame["wait_s"], self.time_out, socket, frame, error)
            return None
        return self.grant(socket, frame)

    def grant(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> dict[str, Any]:
        for one in self.held.values():
            if one["owner"] == frame["owner"] and set(frame["paths"]) <= set(one["paths"]):
                break
        else:
            self.tokens += 1
            self.new[socket, frame.get("ref", 0)] = f"L{self.tokens}"
            one = {"lock": f"L{self.tokens}", "token": self.tokens, "since": "2026-03-02T09:15:00.000Z"}
        names = ("paths", "owner", "mode", "workspace", "purpose", "session")
        one = {name: frame.get(name) for name in names} | one | {"ttl_s": frame["ttl_s"], "socket": socket}
        self.held[one["lock"]] = one
        return self.told(one)

    def told(self, one: dict[str, Any]) -> dict[str, Any]:
        one["expires"] = f"2026-03-02T09:16:{one['ttl_s']:06.3f}Z"
        return {name: value for name, value in one.items() if name != "socket"}

    def time_out(self, socket: web.WebSocketResponse, frame: Any, error: dict[str, Any]) -> None:
        if (socket, frame) in self.line:
            self.line.remove((socket, frame))
            self.gateway.tell(socket, error)

    def let_go(self, lock: str) -> None:
        del self.held[lock]
        for socket, frame in list(self.line):
            if not self.blockers(frame):
                self.line.remove((socket, frame))
                self.gateway.tell(socket, {"op": "lock", "ref": frame["ref"], **self.grant(socket, frame)})

    async def unlock(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> dict[str, Any] | None:
        if "cancel" in frame:
            self.line = [(s, f) for s, f in self.line if s is not socket or f["ref"] != frame["cancel"]]
            if (lock := self.new.get((socket, frame["cancel"]))) in self.held:
                self.let_go(lock)
            return {}
        if frame["lock"] not in self.held:
            return await self.unknown(socket, frame)
        self.let_go(frame["lock"])
        return {}

    async def renew(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> dict[str, Any] | None:
        if frame["lock"] not in self.held:
            return await self.unknown(socket, frame)
        self.held[frame["lock"]]["ttl_s"] = frame["ttl_s"]
        return self.told(self.held[frame["lock"]])

    async def unknown(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        await socket.send_json({"op": "error", "ref": frame["ref"], "code": "unknown_lock", "detail": "gone"})

    async def wait(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> dict[str, Any]:
        key = f"W-{frame['owner']}-{frame['on']}"
        self.waits[key] = {**frame, "socket": socket}
        return {"wait": key, "owner": frame["owner"], "on": frame["on"]}

    async def unwait(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> dict[str, Any]:
        del self.waits[frame["wait"]]
        return {}

    def closed(self, socket: web.WebSocketResponse) -> None:
        self.line = [(s, f) for s, f in self.line if s is not socket]
        self.waits = {key: one for key, one in self.waits.items() if one["socket"] is not socket}
        if not self.keeps_bound:
            for lock in [lock for lock, one in self.held.items() if one["socket"] is socket]:
                self.let_go(lock)
