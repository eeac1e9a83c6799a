"""What the gateway remembers of each tool between two of its hooks; all of it may be forgotten."""

from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass, field

SESSIONS_MAX = 1000  # tools that were heard of last; a forgotten one is greeted again
HOLDS_MAX = 256  # locks of one session's tool calls, and tool calls that share one of them
OWN_MAX = 200  # files that a session changed itself, newest
FOLDERS_MAX = 20  # folders that are not watched, and that a session was told of; of more it is told nothing


@dataclass(slots=True)
class Hold:
    """The lock of one or several tool calls."""

    lock: str
    token: int
    uses: set[str]
    """The keys of these calls."""


@dataclass(slots=True)
class Memory:
    """One tool's session."""

    seq: int
    """Up to where it was told what others changed."""
    introduced: bool = False
    folders_told: set[str] = field(default_factory=set)
    holds: "OrderedDict[str, Hold]" = field(default_factory=OrderedDict)
    """By the id of the lock."""
    own: "deque[str]" = field(default_factory=lambda: deque(maxlen=OWN_MAX))
    """Files that it has changed, newest last."""
    wrote: "deque[str]" = field(default_factory=lambda: deque(maxlen=OWN_MAX))
    """The hashes of what was in them then: a watcher sees these writes, too."""

    def hold_of(self, key: str) -> Hold | None:
        """Return the lock that a tool call was given."""
        return next((hold for hold in self.holds.values() if key in hold.uses), None)


class Memories:
    """The memories by name, of those heard of last."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Memory] = OrderedDict()

    def of(self, name: str, head: int) -> Memory:
        """Return what is known of a name; of a new one that it knows everything up to `head`."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = Memory(head)
            if len(self._known) > SESSIONS_MAX:
                self._known.popitem(last=False)
        self._known.move_to_end(name)
        return known

    def names(self) -> Collection[str]:
        """Return those who are known."""
        return self._known.keys()

    def of_session(self, name: str) -> list[tuple[str, Memory]]:
        """Return those of an agent and of its sub-agents, by their names."""
        return [
            (known, memory)
            for known, memory in self._known.items()
            if known == name or known.startswith(f"{name}/")
        ]

    def forget(self, name: str) -> None:
        """Forget a name."""
        self._known.pop(name, None)
