"""What a tool's hook leads to: a lock before an edit, an event after it, its prompt on the bus, news for it.

Nothing here may keep a user from working: what cannot be done is told in the answer, and the tool goes on. The one
exception is a file that somebody else has locked.
"""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw

from herdr.errors import HerdrError
from herdr.event import Draft, Event
from herdr.hooking.desk import Surroundings
from herdr.hooking.memory import FOLDERS_MAX, HOLDS_MAX, Hold, Memories, Memory
from herdr.hooking.recent import UNREPORTED, Recent
from herdr.hooks import words
from herdr.hooks.call import Call, Reply
from herdr.hooks.places import Places, Spot
from herdr.locks.lock import Wanted

TTL_S = 600.0  # of the lock around one tool call: a user may look at its permission prompt for so long
PATH_MAX = 4096  # bytes, as of any subject
NEWS_MAX = 10  # events that one answer may bring
ROLES: Mapping[str, str] = MappingProxyType(
    {"prompt": "user.message", "answer": "assistant.message", "compacted": "assistant.message"}
)
NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"before": ("locks",), "after": ("locks", "events:publish"), "prompt": ("events:publish",)}
)

_log = logging.getLogger("herdr.hooks")
_encode = msgspec.json.Encoder().encode


class _Body(msgspec.Struct):
    type: str
    subject: str | None = None
    data: Any = None


_decode = msgspec.json.Decoder(_Body).decode


class Hooks:
    """Handles the hooks of all tools."""

    def __init__(self, around: Surroundings, recent: Recent) -> None:
        self._around = around
        self._recent = recent
        self._memories = Memories()

    def names(self) -> Collection[str]:
        """Return the names of the tools that were heard of lately."""
        return self._memories.names()

    async def handle(self, call: Call, may: Callable[[str], bool]) -> Reply:
        """Do what one hook asks for; `may` tells whether its token has a scope. Raises nothing of its own."""
        lacks = [scope for scope in NEEDED.get(call.kind, ()) if not may(scope)]
        if lacks:
            return Reply(
                notice=f"Herdr: the token of this hook lacks {' and '.join(lacks)}; nothing was locked or told."
            )
        try:
            return await self._handle(call)
        except HerdrError as error:
            _log.warning("a hook of %s: %s", call.client, error.detail)
            return Reply(notice=f"Herdr: {error.detail}")

    async def _handle(self, call: Call) -> Reply:
        if not call.session:
            return Reply()
        memory = self._memories.of(call.name, self._around.head())
        places = Places(self._around.folders())
        home = places.find(call.cwd)
        if call.kind == "before":
            return await self._before(call, memory, places)
        if call.kind == "after":
            await self._after(call, memory, places)
        elif call.kind == "undone":
            await self._release(call, memory, [call.use])
        elif call.kind in ("answer", "end"):
            await self._release_all(call, memory)
        if call.kind in ROLES and call.text and home is not None:
            await self._record(call, home.workspace)
        if call.kind == "end":
            self._memories.forget(call.name)
            return Reply()
        return await self._told(call, memory, home)

    # Locks

    async def _before(self, call: Call, memory: Memory, places: Places) -> Reply:
        """Lock what the tool is about to write, or say who has it."""
        taken: list[Hold] = []
        for workspace, paths in _by_workspace(call, places).items():
            wanted = Wanted(
                paths=tuple(map(as_file, paths)),
                owner=call.name,
                workspace=workspace,
                ttl_s=TTL_S,
                purpose=purpose(call),
                session=call.conversation,
            )
            try:
                leased, is_new = await self._around.locks.lock(wanted)
            except HerdrError as error:
                for hold in taken:
                    await self._give_back(hold)
                if error.code != "locked":
                    raise
                return Reply(deny=words.denied(call, error.detail))
            known = memory.holds.get(leased.lock)
            if is_new:
                known = memory.holds[leased.lock] = Hold(leased.lock, leased.token, {call.use})
                taken.append(known)
                if len(memory.holds) > HOLDS_MAX:
                    memory.holds.popitem(last=False)  # its lease ends by itself
            elif known is not None:  # else the tool has locked it otherwise, and ends that itself
                known.uses.add(call.use)
        return Reply()

    async def _release(self, call: Call, memory: Memory, uses: Iterable[str]) -> None:
        for use in uses:
            hold = memory.hold_of(use)
            if hold is None:
                await self._release_unknown(call, use)
                continue
            hold.uses.discard(use)
            if not hold.uses:
                del memory.holds[hold.lock]
                await self._give_back(hold)

    async def _release_unknown(self, call: Call, use: str) -> None:
        """Release the lock of a tool call that began before the gateway was started anew."""
        if not (use and call.paths):
            return
        listed = await self._around.register.listed(None, None, call.name)
        for lock in listed["locks"]:
            if (lock["purpose"] or "").endswith(f"({use})"):
                await self._give_back(Hold(lock["lock"], lock["token"], set()))

    async def _release_all(self, call: Call, memory: Memory) -> None:
        """Release everything that hooks have locked for this tool, and nothing that it has locked itself."""
        holds, memory.holds = list(memory.holds.values()), type(memory.holds)()
        for hold in holds:
            await self._give_back(hold)

    async def _give_back(self, hold: Hold) -> None:
        with contextlib.suppress(HerdrError):  # it has ended already, or ends by itself
            await self._around.locks.release(hold.lock, hold.token)

    # Events

    async def _after(self, call: Call, memory: Memory, places: Places) -> None:
        """Tell of the edit, and let go of the file."""
        drafts = []
        for workspace, paths in _by_workspace(call, places).items():
            for path in paths:
                memory.own.append(path)
                drafts.append(await self._changed(call, workspace, path))
        if drafts:
            await self._around.publisher.publish(drafts, call.name)
        if call.paths:
            await self._release(call, memory, [call.use])

    async def _changed(self, call: Call, workspace: str, path: str) -> Draft:
        found = {
            "hash": await self._around.hash_of(workspace, path),
            "tool": call.tool[:100] or None,
            "tool_use_id": call.use[:100] or None,
        }
        data = {name: value for name, value in found.items() if value is not None}
        return Draft(
            "file.changed",
            source=call.name,
            subject=path,
            workspace=workspace,
            session=call.conversation,
            data=Raw(_encode(data)),
        )

    async def _record(self, call: Call, workspace: str) -> None:
        """Publish what was said; it is part of the session from then on."""
        role = "user" if call.kind == "prompt" else "assistant"
        data: dict[str, Any] = {"role": role, "content": call.text}
        draft = Draft(
            ROLES[call.kind],
            source=call.name,
            workspace=workspace,
            session=call.conversation,
            tags=("summary",) if call.kind == "compacted" else (),
            data=Raw(_encode(data)),
        )
        await self._around.publisher.publish([draft], call.name)

    # What it is told

    async def _told(self, call: Call, memory: Memory, home: Spot | None) -> Reply:
        if call.kind not in ("start", "prompt", "after"):
            return Reply()
        if home is None:
            return self._unknown(call, memory)
        lines = []
        if not memory.introduced:
            memory.introduced = True
            lines.append(words.introduced(call, home.workspace).removeprefix("Herdr: "))
        head = self._around.head()
        changes = self._recent.changes.since(home.workspace, memory.seq, call.name, tuple(memory.own))
        mine = set(memory.own)
        memory.seq = head
        lines += words.changed([c for c in changes if not (c.by == UNREPORTED and c.path in mine)])
        waiting = await self._around.inbox.take(call.name, NEWS_MAX)
        lines += words.news(_bodies(waiting.events), waiting.more)
        return Reply(context=words.context(lines))

    def _unknown(self, call: Call, memory: Memory) -> Reply:
        """Say once for each folder that it is not watched, and what to do."""
        told = memory.folders_told
        if not call.cwd or call.cwd in told or len(told) >= FOLDERS_MAX or call.kind == "after":
            return Reply()
        told.add(call.cwd)
        return Reply(notice=words.unknown_folder(call))


def purpose(call: Call) -> str:
    """Return what a lock says about the tool call that it is for; its end is looked for after a restart."""
    return f"{call.tool[:100] or 'edit'} ({call.use[:100] or 'no id'})"


def as_file(path: str) -> str:
    """Return a path so that locks read it as one: `git:HEAD` may be a file's name, and `c:` no drive."""
    return f"./{path}" if ":" in path.partition("/")[0] else path


def _by_workspace(call: Call, places: Places) -> dict[str, list[str]]:
    """Return the files that lie in workspaces; others need no lock, and what no event can name has none."""
    found: dict[str, list[str]] = {}
    for path in call.paths:
        spot = places.find(path, call.cwd)
        if spot is not None and spot.path and spot.path.isprintable() and len(spot.path.encode()) <= PATH_MAX:
            found.setdefault(spot.workspace, []).append(spot.path)
    return found


def _bodies(events: Sequence[Event]) -> list[dict[str, Any]]:
    found = []
    for event in events:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            body = _decode(event.body)
            found.append({"type": body.type, "subject": body.subject, "data": body.data})
    return found
