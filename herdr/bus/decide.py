"""What becomes of each member of a batch, in `seq` order: duplicate, stale, committed; or what it rules.

Pure, but for what errands' rules do.

Only the writer calls this, while it forms a batch, and later members see earlier ones: whatever arrives
together, of two publishers with one `based_on` exactly one is accepted, and of two equal ids one is stored.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from herdr.bus.errand import Errand
from herdr.bus.log import Put
from herdr.bus.pending import Pending
from herdr.bus.versions import Version, Versions
from herdr.clock import rfc3339
from herdr.event import Conflict, Event, Lane, Receipt

Id = tuple[str, str]
"""(`source`, `id`): what makes an event the same event."""


class OwnEvent(Protocol):
    """Makes an event of the gateway's own, addressed to the named targets."""

    def __call__(
        self, type_: str, data: Any, *, lane: Lane, to: tuple[str, ...], subject: str, workspace: str
    ) -> Event:
        """Return the event; it has no `seq` yet."""
        ...


class Decision:
    """The outcome for one batch: what to commit, and what to answer once that has happened."""

    __slots__ = ("answers", "errands", "events", "ids", "made", "puts", "versions")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.answers: list[tuple[Pending, Receipt]] = []
        self.errands: list[Errand] = []
        self.puts: list[Put] = []
        """What the errands want stored."""
        self.ids: dict[Id, int] = {}
        """Ids that publishers gave."""
        self.made: list[Event] = []
        """Events whose id the gateway made."""
        self.versions: dict[tuple[str, str], Version] = {}


class Judge:
    """Decides batches against what the log holds.

    It changes nothing itself, so a failed commit needs no undoing; what errands change, `Tentative` takes back.
    """

    def __init__(
        self,
        epoch: str,
        versions: Versions,
        own_event: OwnEvent,
    ) -> None:
        self._epoch = epoch
        self._versions = versions
        self._own_event = own_event

    def decide(
        self, items: Iterable[Pending | Errand], next_seq: int, accepted_us: int, known_ids: Mapping[Id, int]
    ) -> Decision:
        """Decide one batch. `known_ids` are those of its ids that the log holds already."""
        decision = Decision()
        for item in items:
            if isinstance(item, Errand):
                self._rule(item, decision, next_seq, accepted_us)
                continue
            event = item.event
            key = (event.source, event.id)
            known = None if item.made_id else known_ids.get(key) or decision.ids.get(key)
            if known:
                receipt = Receipt("duplicate", event.id, known, self._epoch)
                self._note_replaced(event, known, decision)
            else:
                receipt = self._admit(item, decision, next_seq, accepted_us)
            decision.answers.append((item, receipt))
        return decision

    def _rule(self, errand: Errand, decision: Decision, next_seq: int, accepted_us: int) -> None:
        ruled = errand.decide(next_seq + len(decision.events), accepted_us)
        for event in ruled.events:
            self._place(event, True, decision, next_seq, accepted_us)
        decision.puts.extend(ruled.puts)
        decision.errands.append(errand)

    def _admit(self, item: Pending, decision: Decision, next_seq: int, accepted_us: int) -> Receipt:
        event = item.event
        conflict = self._conflict(item, decision) if item.based_on is not None else None
        if conflict is not None:
            notice = self._notice(item, conflict)
            if item.rejects:
                self._place(notice, True, decision, next_seq, accepted_us)
                return Receipt("stale", event.id, conflict=conflict)
        self._place(event, item.made_id, decision, next_seq, accepted_us)
        if item.makes_version and event.subject is not None:
            self._advance(item, event.subject, decision)
        if conflict is not None:
            self._place(notice, True, decision, next_seq, accepted_us)
        return Receipt("accepted", event.id, event.seq, self._epoch, conflict=conflict)

    def _place(
        self, event: Event, made_id: bool, decision: Decision, next_seq: int, accepted_us: int
    ) -> None:
        event.seq = next_seq + len(decision.events)
        event.accepted_us = accepted_us
        decision.events.append(event)
        if made_id:
            decision.made.append(event)
        else:
            decision.ids[event.source, event.id] = event.seq
        self._note_replaced(event, event.seq, decision)

    def _note_replaced(self, event: Event, seq: int, decision: Decision) -> None:
        for replaced in event.replaced_ids:  # one that was stored by itself before keeps its own seq
            decision.ids.setdefault((event.source, replaced), seq)

    def _version(self, workspace: str, subject: str, decision: Decision) -> Version | None:
        return decision.versions.get((workspace, subject)) or self._versions.get(workspace, subject)

    def _advance(self, item: Pending, subject: str, decision: Decision) -> None:
        event = item.event
        known = self._version(event.workspace, subject, decision)
        if known is not None and item.hash is not None and known.hash == item.hash:
            return  # the same content again: a watcher and the tool itself both told of one write
        decision.versions[event.workspace, subject] = Version(
            event.seq, event.source, event.accepted_us, item.hash
        )

    def _conflict(self, item: Pending, decision: Decision) -> Conflict | None:
        event = item.event
        if event.subject is None or item.based_on is None:
            return None
        known = self._version(event.workspace, event.subject, decision)
        if known is None or known.seq <= item.based_on or known.source == event.source:
            return None
        if known.hash is not None and known.hash == item.hash:
            return None  # another source, mostly the watcher, told of this very write before
        return Conflict(event.subject, known.seq, known.source, rfc3339(known.accepted_us))

    def _notice(self, item: Pending, conflict: Conflict) -> Event:
        event = item.event
        data = {
            "workspace": event.workspace,
            "subject": conflict.subject,
            "status": "rejected" if item.rejects else "accepted",
            "by": {"source": event.source, "id": event.id, "type": event.type, "based_on": item.based_on},
            "current": {"seq": conflict.seq, "source": conflict.source, "time": conflict.time},
        }
        return self._own_event(
            "conflict.detected",
            data,
            lane=Lane.P0,
            to=(event.source, conflict.source),
            subject=conflict.subject,
            workspace=event.workspace,
        )
