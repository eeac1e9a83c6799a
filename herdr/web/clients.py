"""Who takes part: the names that have published, and the targets with how far behind they are."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from herdr.bus.bus import Bus
from herdr.clock import rfc3339
from herdr.event import Event
from herdr.web.asgi import Receive, Reply, Scope, respond_json
from herdr.web.auth import Caller

CLIENTS_MAX = 1000  # names that were seen last; more than one gateway's connections, and some 200 KiB
ROWS_MAX = 2 * CLIENTS_MAX  # of an answer: those, and as many that have published nothing


class Seen(msgspec.Struct):
    """What is known of one name since the gateway was started."""

    name: str
    first_us: int
    last_us: int
    events: int
    workspace: str
    session: str | None


class Clients:
    """Notes who publishes, with each commit."""

    def __init__(
        self,
        bus: Bus,
        targets: Callable[[], Sequence[tuple[str, int | None]]],
        joined: Callable[[], Mapping[str, Collection[str]]],
    ) -> None:
        """`targets`: each known target, and how many events it is behind the head (None: never acknowledged).

        `joined`: who has come in by hooks, by MCP …
        """
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._targets = targets
        self._joined = joined
        bus.tell_commits(self._committed)

    def _committed(self, events: Sequence[Event]) -> None:
        for event in events:
            seen = self._seen.get(event.source)
            if seen is None:
                at = event.accepted_us
                seen = self._seen[event.source] = Seen(
                    event.source, at, at, 0, event.workspace, event.session
                )
                if len(self._seen) > CLIENTS_MAX:
                    self._seen.popitem(last=False)
            seen.last_us, seen.workspace = event.accepted_us, event.workspace
            seen.session = event.session or seen.session
            seen.events += 1
            self._seen.move_to_end(event.source)

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with everybody, whoever was seen last first; then the targets that have published nothing."""
        behind, joined = dict(self._targets()), self._joined()
        rows = [_row(seen, behind.get(seen.name)) for seen in reversed(self._seen.values())]
        named = dict.fromkeys((*behind, *(name for names in joined.values() for name in names)))
        known = set(self._seen)
        rows += [_silent(name, behind.get(name)) for name in named if name not in known]
        for row in rows:
            row["kinds"] += ["target"] if row["name"] in behind else []
            row["kinds"] += [kind for kind, names in joined.items() if row["name"] in names]
        await respond_json(send, 200, {"clients": rows[:ROWS_MAX]})


def _row(seen: Seen, behind: int | None) -> dict[str, Any]:
    return {
        "name": seen.name,
        "kinds": ["publisher"],
        "first_seen": rfc3339(seen.first_us),
        "last_seen": rfc3339(seen.last_us),
        "events": seen.events,
        "workspace": seen.workspace,
        "session": seen.session,
        "behind": behind,
    }


def _silent(name: str, behind: int | None) -> dict[str, Any]:
    """Return the row of a name that has published nothing since the start."""
    row: dict[str, Any] = dict.fromkeys(("first_seen", "last_seen", "workspace", "session"))
    return {"name": name, "kinds": [], **row, "events": 0, "behind": behind}
