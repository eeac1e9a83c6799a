"""Who takes part: the names that have published, and the targets with how far behind they are."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from herdr.bus.bus import Bus
from herdr.clock import rfc3339
from herdr.event import Event
from herdr.web.asgi import Receive, Reply, Scope, respond_json
from herdr.web.auth import Caller

CLIENTS_MAX = 1000  # names that were seen last


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

    def __init__(self, bus: Bus, targets: Callable[[], Sequence[tuple[str, int | None]]]) -> None:
        """`targets`: each known target, and how many events it is behind the head (None: never acknowledged)."""
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._targets = targets
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
        behind = dict(self._targets())
        rows = [self._row(seen, behind) for seen in reversed(self._seen.values())]
        known = {row["name"] for row in rows}
        rows += [_target(name, count) for name, count in behind.items() if name not in known]
        await respond_json(send, 200, {"clients": rows[: 2 * CLIENTS_MAX]})

    def _row(self, seen: Seen, behind: dict[str, int | None]) -> dict[str, Any]:
        kinds = ["publisher"] + (["target"] if seen.name in behind else [])
        return {
            "name": seen.name,
            "kinds": kinds,
            "first_seen": rfc3339(seen.first_us),
            "last_seen": rfc3339(seen.last_us),
            "events": seen.events,
            "workspace": seen.workspace,
            "session": seen.session,
            "behind": behind.get(seen.name),
        }


def _target(name: str, behind: int | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("first_seen", "last_seen", "workspace", "session"))
    return {"name": name, "kinds": ["target"], **row, "events": 0, "behind": behind}
