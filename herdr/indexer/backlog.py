"""Files that are to be read: in which order, which are being read, and when a question may be answered. Pure."""

from collections.abc import Iterable, Sequence


class Backlog:
    """Paths wait once each, oldest notice first; a notice during the reading makes the path wait again.

    Tickets are the order of notices: who asks may be answered once no older ticket is open.
    """

    def __init__(self) -> None:
        self.queued = 0
        """Notices since the last `restart_count`."""
        self.done = 0
        """Files read since then."""
        self._ticket = 0
        self._waiting: dict[str, int] = {}
        self._working: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._working)

    @property
    def waiting(self) -> int:
        """How many paths nobody has begun with."""
        return len(self._waiting)

    def add(self, paths: Iterable[str]) -> None:
        """Have these read."""
        for path in paths:
            self._ticket += 1
            if path not in self._waiting:
                self._waiting[path] = self._ticket
                self.queued += 1

    def restart(self) -> None:
        """Have what is being read just now read once more."""
        self.add(list(self._working))

    def take(self, count: int) -> list[str]:
        """Return the oldest paths, which count as being read until `finish`; none that is being read already."""
        taken: list[str] = []
        for path in self._waiting:
            if len(taken) >= count:
                break
            if path not in self._working:
                taken.append(path)
        for path in taken:
            self._working[path] = self._waiting.pop(path)
        return taken

    def finish(self, paths: Sequence[str]) -> None:
        """Note that these were read, and what they hold is stored."""
        for path in paths:
            del self._working[path]
        self.done += len(paths)

    def put_back(self, paths: Sequence[str]) -> None:
        """Have these read again: what was found could not be stored."""
        for path in paths:
            self._waiting[path] = self._working.pop(path)  # the older ticket: its notice is not dealt with
        self._waiting = dict(sorted(self._waiting.items(), key=lambda item: item[1]))

    @property
    def newest(self) -> int:
        """The ticket of the newest notice."""
        return self._ticket

    def is_done(self, ticket: int) -> bool:
        """Tell whether all notices up to this one are dealt with. The oldest of each kind stands first."""
        oldest = min(
            next(iter(self._waiting.values()), ticket + 1), min(self._working.values(), default=ticket + 1)
        )
        return oldest > ticket

    def restart_count(self) -> None:
        """Count progress from here."""
        self.queued, self.done = len(self), 0
