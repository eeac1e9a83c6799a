"""What this client has seen of each subject, so that its events can say what they are based on.

Only what makes a version counts: `file.changed` and `change.*`. An event of another type may overtake a
change in the gateway's lanes, so having seen its `seq` does not mean having seen the change before it.
"""

import threading
from functools import partial

from msgspec import UNSET

from herdr_sdk.errors import HerdrError
from herdr_sdk.event import GAP, Draft, Event, Receipt
from herdr_sdk.outbox import Settle

SUBJECTS_MAX = 10_000  # about 2 MiB; a client works on far fewer files at once

Key = tuple[str, str]


class Versions:
    """(workspace, subject) → the highest `seq` seen, for subjects that a follow has delivered.

    Any thread may call `saw`: the blocking hub hands events out on its callers' threads.
    """

    def __init__(self, subjects_max: int = SUBJECTS_MAX) -> None:
        self._subjects_max = subjects_max
        self._seen: dict[Key, int] = {}
        self._epoch = ""
        self._lock = threading.Lock()

    def saw(self, event: Event) -> None:
        """Take note of an event that is handed out."""
        if event.subject is not None:
            if (event.type == "file.changed" or event.type.startswith("change.")) and event.epoch:
                self._record((event.workspace, event.subject), event.seq, event.epoch)
        elif event.type == GAP and event.data["reason"] != "retention":
            self.forget()

    def forget(self) -> None:
        """Forget everything: the log is another one than before, or an older copy of it."""
        with self._lock:
            self._seen.clear()

    def base(self, draft: Draft, settle: Settle) -> Settle:
        """Fill in `based_on` if the draft leaves it open; return what settles it, which learns from the receipt."""
        key = (draft.workspace or "default", draft.subject or "")
        seq = self._seen.get(key)
        if seq is None or draft.based_on is None:
            return settle
        if draft.based_on is UNSET:
            draft.based_on = seq
        return partial(self._settled, key, settle)

    def _settled(self, key: Key, settle: Settle, outcome: Receipt | HerdrError) -> None:
        """Having been accepted without a conflict says that nobody else changed it since."""
        if isinstance(outcome, Receipt) and outcome.status == "accepted" and outcome.conflict is None:
            known = outcome.epoch == self._epoch and key in self._seen
            if known and outcome.seq is not None:
                self._record(key, outcome.seq, self._epoch)
        settle(outcome)

    def _record(self, key: Key, seq: int, epoch: str) -> None:
        with self._lock:
            if epoch != self._epoch:
                self._seen.clear()
                self._epoch = epoch
            self._seen[key] = max(seq, self._seen.pop(key, 0))
            if len(self._seen) > self._subjects_max:
                del self._seen[next(iter(self._seen))]
