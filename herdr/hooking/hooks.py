"""What a tool's hook leads to: a lock before an edit, an event after it, its prompt on the bus, news for it.

Nothing here may keep a user from working: what cannot be done is told in the answer, and the tool goes on. The one
exception is a file that somebody else has locked.
"""

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec import Raw

from herdr.errors import HerdrError
from herdr.event import Draft
from herdr.hooking.desk import Surroundings
from herdr.hooking.memory import FOLDERS_MAX, HOLDS_MAX, Hold, Memories, Memory
from herdr.hooking.recent import Recent
from herdr.hooks import words
from herdr.hooks.call import Call, Reply, plain
from herdr.hooks.changes import UNREPORTED, Change
from herdr.hooks.places import Places, Spot
from herdr.locks.lock import Wanted

TTL_S = 600.0  # of the lock around one tool call: a user may look at its permission prompt for so long
PATH_MAX = 4096  # bytes, as of any subject
SAID_MAX = 768 * 1024  # bytes of what was said, encoded; an event holds 1 MiB
LOCKS, PUBLISH, FOLLOW = "locks", "events:publish", "events:follow"
ROLES: Mapping[str, str] = MappingProxyType(
    {"prompt": "user.message", "answer": "assistant.message", "compacted": "assistant.message"}
)
NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"before": (LOCKS,), "after": (LOCKS, PUBLISH), **dict.fromkeys(ROLES, (PUBLISH,))}
)

_log = logging.getLogger("herdr.hooks")
_encode = msgspec.json.Encoder().encode


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
        try:
            return await self._handle(call, may)
        except HerdrError as error:
            _log.warning("a hook of %s: %s", call.client, error.detail)
            return Reply(notice=f"Herdr: {error.detail}")

    async def _handle(self, call: Call, may: Callable[[str], bool]) -> Reply:
        if not plain(call.session):
            return Reply()
        memory = self._memories.of(call.name, self._around.head())
        places = Places(self._around.folders())
        home, written = places.find(call.cwd), _by_workspace(call, places)
        concerns = bool(written) if call.kind in ("before", "after") else bool(call.text and home)
        lacks = [scope for scope in NEEDED.get(call.kind, ()) if concerns and not may(scope)]
        notice = words.lacking(lacks) if lacks else None
        if call.kind == "before":
            return Reply(notice=notice) if lacks else await self._before(call, memory, written)
        if may(PUBLISH) and not await self._report(call, memory, home, written):
            notice = words.dropped()
        if may(LOCKS):
            await self._let_go(call, memory, written)
        if call.kind == "end":
            for name, _ in self._memories.of_session(call.name):
                self._memories.forget(name)
            return Reply(notice=notice)
        told = await self._told(call, memory, home, may)
        return told if notice is None else told._replace(notice=notice)

    # Locks

    async def _before(self, call: Call, memory: Memory, written: Mapping[str, Sequence[str]]) -> Reply:
        """Lock what the tool is about to write, or say who has it."""
        for workspace, paths in written.items():
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
                await self._end(call, memory)
                if error.code != "locked":
                    raise
                return Reply(deny=words.denied(call, error.detail))
            known = memory.holds.get(leased.lock)
            if is_new:
                memory.holds[leased.lock] = Hold(leased.lock, leased.token, {call.key})
                if len(memory.holds) > HOLDS_MAX:
                    memory.holds.popitem(last=False)  # its lease ends by itself
            elif known is not None and len(known.uses) < HOLDS_MAX:
                known.uses.add(call.key)  # one that is not known the tool has locked, and ends, itself
        return Reply()

    async def _let_go(self, call: Call, memory: Memory, written: Mapping[str, Sequence[str]]) -> None:
        """Give back what nobody needs any more.

        That includes, with a new prompt, what is left of the turn before: tools do not tell of one that its user has
        cut short.
        """
        if call.kind in ("after", "undone"):
            if not await self._end(call, memory) and call.use and written:
                await self._release_unknown(call)
        elif call.kind in ("prompt", "answer"):
            await self._release_all(memory)
        elif call.kind == "end":
            for _, other in self._memories.of_session(call.name):
                await self._release_all(other)

    async def _end(self, call: Call, memory: Memory) -> bool:
        """End what one tool call holds, in each workspace; tell whether that was anything."""
        is_any = False
        while (hold := memory.hold_of(call.key)) is not None:
            is_any = True
            hold.uses.discard(call.key)
            if not hold.uses:
                del memory.holds[hold.lock]
                await self._give_back(hold)
        return is_any

    async def _release_unknown(self, call: Call) -> None:
        """Release the lock of a tool call that began before the gateway was started anew."""
        listed = await self._around.register.listed(None, None, call.name)
        for lock in listed["locks"]:
            if lock["purpose"] == purpose(call):
                await self._give_back(Hold(lock["lock"], lock["token"], set()))

    async def _release_all(self, memory: Memory) -> None:
        """Release everything that hooks have locked for this tool, and nothing that it has locked itself."""
        holds, memory.holds = list(memory.holds.values()), type(memory.holds)()
        for hold in holds:
            await self._give_back(hold)

    async def _give_back(self, hold: Hold) -> None:
        with contextlib.suppress(HerdrError):  # it has ended already, or ends by itself
            await self._around.locks.release(hold.lock, hold.token)

    # Events

    async def _report(
        self, call: Call, memory: Memory, home: Spot | None, written: Mapping[str, Sequence[str]]
    ) -> bool:
        """Tell of an edit, or of what was said; False when the log is too full for it."""
        drafts = []
        if call.kind == "after":
            for workspace, paths in written.items():
                drafts += [await self._changed(call, memory, workspace, path) for path in paths]
        elif call.kind in ROLES and call.text and home is not None:
            drafts.append(_said(call, home.workspace))
        receipts = await self._around.publisher.publish(drafts, call.name) if drafts else []
        return not any(receipt.status == "dropped" for receipt in receipts)

    async def _changed(self, call: Call, memory: Memory, workspace: str, path: str) -> Draft:
        hash_ = await self._around.hash_of(workspace, path)
        memory.own.append(path)
        if hash_ is not None:
            memory.wrote.append(hash_)
        found = {
            "hash": hash_,
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

    # What it is told

    async def _told(self, call: Call, memory: Memory, home: Spot | None, may: Callable[[str], bool]) -> Reply:
        if call.kind not in ("start", "prompt", "after") or not call.hears:
            return Reply()
        if home is None:
            return self._unknown(call, memory)
        lines = []
        if not memory.introduced:
            memory.introduced = True
            lines.append(words.introduced(call, home.workspace).removeprefix("Herdr: "))
        if may(FOLLOW):
            lines += self._changes(call, memory, home.workspace)
            lines += await self._waiting(call)
        return Reply(context=words.context(lines))

    def _changes(self, call: Call, memory: Memory, workspace: str) -> list[str]:
        """Return lines about what others changed; what a watcher saw of its own writes is not news."""
        changes = self._recent.changes.since(workspace, memory.seq, call.name, memory.own)
        memory.seq = self._around.head()
        own, wrote = set(memory.own), set(memory.wrote)
        return words.changed([c for c in changes if not _is_seen(c, own, wrote)])

    async def _waiting(self, call: Call) -> list[str]:
        """Return lines about what was addressed to it."""
        try:
            waiting = await self._around.inbox.take(call.name, words.NEWS_SAID)
        except HerdrError as error:  # the rest of the answer is worth more; what waits goes on waiting
            _log.warning("what waits for %s could not be taken: %s", call.name, error.detail)
            return []
        return words.news(words.bodies_of(waiting.events), waiting.more) + words.lost(waiting.lost)

    def _unknown(self, call: Call, memory: Memory) -> Reply:
        """Say once for each folder that it is not watched, and what to do."""
        told = memory.folders_told
        if call.kind == "after" or call.cwd in told or len(told) >= FOLDERS_MAX:
            return Reply()
        if not 0 < len(call.cwd) <= PATH_MAX:
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


def _said(call: Call, workspace: str) -> Draft:
    """Return the event of a prompt, an answer or a summary; it is part of the session."""
    role, text = "user" if call.kind == "prompt" else "assistant", call.text
    while len(data := _encode({"role": role, "content": text})) > SAID_MAX:
        text = text[: len(text) * SAID_MAX // len(data)]
    return Draft(
        ROLES[call.kind],
        source=call.name,
        workspace=workspace,
        session=call.conversation,
        tags=("summary",) if call.kind == "compacted" else (),
        data=Raw(data),
    )


def _is_seen(change: Change, own: Collection[str], wrote: Collection[str]) -> bool:
    """Tell whether a change is a tool's own write, which the watcher has seen as well."""
    if change.by != UNREPORTED:
        return False
    return change.path in own if change.hash is None else change.hash in wrote
