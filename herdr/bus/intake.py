"""The way in: a draft is classified, routed, held or dropped where the rules say so, put into its lane."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from herdr.bus.classify import class_of, default_lane, tags_of
from herdr.bus.debounce import Closed, Debounce, Outcome
from herdr.bus.envelope import OWN_SOURCE, address, build_event, merge_tags, own_draft
from herdr.bus.errand import Errand
from herdr.bus.lanes import Admission, Lanes
from herdr.bus.overflow import Collected, Overflow
from herdr.bus.pending import Pending, Submission
from herdr.bus.rate_limit import FairBucket
from herdr.bus.route import TYPES_CACHED_MAX, Routing, RoutingTable, Subject
from herdr.bus.versions import content_hash, makes_version
from herdr.event import Draft, Event, Lane, Receipt

HELD_BYTES_MAX = 64 * 1024 * 1024  # of debounced events; as much as the lanes hold before they are full

OnChange = Callable[[Draft, str, str | None], None]
"""Called with the draft, its source, and the content hash that it gives. Must not raise: drafts would be lost."""

_encode = msgspec.json.Encoder().encode


class Intake:
    """Decides for one draft after the other, without waiting; P0 passes debounce and rate limit untouched."""

    def __init__(
        self,
        lanes: Lanes[Pending | Errand],
        debounce: Debounce[Pending],
        overflow: Overflow,
        bucket: FairBucket,
        new_id: Callable[[], str],
        find_id: Callable[[str, str], int | None],
        debounces: bool = True,
    ) -> None:
        """`find_id` tells the `seq` of an event that was committed lately (else None or 0)."""
        self.table = RoutingTable()
        self.on_change: list[OnChange] = []
        """Told of every change that a tool reports, before anything holds it back or drops it."""
        self.dropped: Counter[str] = Counter()
        """Events not stored, by reason."""
        self._lanes = lanes
        self._debounce = debounce
        self._overflow = overflow
        self._bucket = bucket
        self._new_id = new_id
        self._find_id = find_id
        self._debounces = debounces
        self._held_bytes = 0
        self._kinds: dict[str, tuple[str, Lane, tuple[str, ...]]] = {}

    def take_in(
        self, draft: Draft, source: str, submission: Submission, index: int, now: float
    ) -> Pending | None:
        """Handle one draft; what comes back has to wait for room in the P0 lane and be offered again."""
        class_, lane, own_tags = self._kind_of(draft.type)
        tags = merge_tags(own_tags, draft.tags) if draft.tags else own_tags
        wish = lane if draft.priority is None else Lane[draft.priority]
        routing = self.table.route(Subject(draft, source, class_, tags), wish)
        changes = makes_version(draft)
        hash_ = content_hash(draft) if changes else None
        for tell in self.on_change if changes else ():
            tell(draft, source, hash_)
        event_id = self._new_id() if draft.id is UNSET else draft.id
        debounced = routing.lane is not Lane.P0 and self._is_debounced(draft)
        # What is in the log already goes straight on, to be answered `duplicate`: a retry is not a new event
        holds = (debounced or routing.lane is Lane.P2) and (
            draft.id is UNSET or not self._find_id(source, event_id)
        )
        if holds and (refusal := self._hold_or_drop(draft, source, event_id, routing, now)) is not None:
            submission.settle(index, refusal)
            return None
        event = build_event(draft, source, event_id, class_, tags, routing.lane, routing.deliveries)
        pending = Pending(event, made_id=draft.id is UNSET, makes_version=changes, hash=hash_)
        if draft.based_on is not None:
            pending.based_on = draft.based_on
            pending.rejects = (
                draft.if_stale or ("notify" if class_ == "environment" else "reject")
            ) == "reject"
        if holds and debounced and self._debounce_one(pending, now):
            submission.settle(index, Receipt("deferred", event_id))
            return None
        pending.submission = submission
        pending.index = index
        return pending if self.offer(pending) is Admission.WAIT else None

    def own(  # noqa: PLR0913 - one plain value for each field of an event
        self,
        type_: str,
        data: Any,
        *,
        lane: Lane = Lane.P1,
        to: tuple[str, ...] = (),
        subject: str | None = None,
        workspace: str = "default",
        session: str | None = None,
        task: str | None = None,
        routed: bool = True,
    ) -> Event:
        """Return an event of the gateway's own: for the named targets, and for whom the table sends it to.

        One that is not `routed` is for the named targets and ad-hoc followers alone.
        """
        draft = own_draft(type_, data, subject, workspace, session, task)
        class_, _, tags = self._kind_of(type_)
        deliveries = (
            self.table.route(Subject(draft, OWN_SOURCE, class_, tags), lane).deliveries if routed else ()
        )
        return build_event(draft, OWN_SOURCE, self._new_id(), class_, tags, lane, address(to, deliveries))

    def _kind_of(self, type_: str) -> tuple[str, Lane, tuple[str, ...]]:
        """Return the classifier's word on a type: class, lane and tags."""
        kind = self._kinds.get(type_)
        if kind is None:
            if len(self._kinds) >= TYPES_CACHED_MAX:
                self._kinds.clear()
            kind = self._kinds[type_] = (class_of(type_), default_lane(type_), tags_of(type_))
        return kind

    def offer(self, pending: Pending) -> Admission:
        """Put an event into its lane, or answer that it was dropped; WAIT leaves everything to the caller."""
        event = pending.event
        admission = self._lanes.offer(event.lane, pending, len(event.body))
        if admission is Admission.REFUSED:
            self.dropped["overloaded"] += 1
            pending.settle(Receipt("dropped", event.id, reason="overloaded"))
        return admission

    def due(self, now: float) -> bool:
        """Move what was held long enough into its lane; False when the lanes are too full for it now.

        What is held was answered `deferred` and is never refused, so it must not outgrow the lanes either.
        """
        if self._lanes.is_full:
            return False
        for closed in self._debounce.due(now):
            self._release(closed)
        for collected in self._overflow.due(now):
            self._release_collected(collected)
        return True

    def next_due(self) -> float | None:
        """Return when `due` next has something to do (monotonic seconds), or None."""
        times = [at for at in (self._debounce.next_due(), self._overflow.next_due()) if at is not None]
        return min(times, default=None)

    def flush(self) -> None:
        """Move everything that is held into its lane: a clean stop loses nothing that was deferred."""
        for closed in self._debounce.flush():
            self._release(closed)
        for collected in self._overflow.flush():
            self._release_collected(collected)

    def _hold_or_drop(
        self, draft: Draft, source: str, event_id: str, routing: Routing, now: float
    ) -> Receipt | None:
        """Apply the rate limit of P2. An open debounce window has its place under the limit already."""
        if routing.lane is not Lane.P2:
            return None
        subject = draft.subject if self._is_debounced(draft) else None
        if subject is not None and self._debounce.is_open((source, draft.workspace, subject)):
            return None
        if self._bucket.take(source, now):
            return None
        if subject is not None and self._overflow.add(source, draft.workspace, subject, event_id, now):
            return Receipt("deferred", event_id)
        self.dropped["rate_limited"] += 1
        return Receipt("dropped", event_id, reason="rate_limited")

    def _debounce_one(self, pending: Pending, now: float) -> bool:
        """Hold an event; False when so much is held that it has to go on as any other event does."""
        event = pending.event
        key = (event.source, event.workspace, event.subject)
        before = self._debounce.peek(key)
        if before is None and (self._held_bytes >= HELD_BYTES_MAX or self._lanes.is_full):
            return False
        offered = self._debounce.offer(key, pending, now)
        if offered.outcome is not Outcome.REPEATED:
            self._held_bytes += len(event.body) - (0 if before is None else len(before.event.body))
        if offered.closed is not None:
            self._release(offered.closed)
        return True

    def _release(self, closed: Closed[Pending]) -> None:
        pending = closed.item
        self._held_bytes -= len(pending.event.body)
        pending.event.replaced_ids = closed.replaced_ids
        self._admit(pending)

    def _release_collected(self, collected: Collected) -> None:
        data = {
            "count": collected.count,
            "paths": collected.paths,
            "truncated": collected.truncated,
            "cause": "rate",
        }
        draft = Draft("files.changed", workspace=collected.workspace, data=msgspec.Raw(_encode(data)))
        class_, lane, tags = self._kind_of(draft.type)
        routing = self.table.route(Subject(draft, collected.source, class_, tags), lane)
        event = build_event(
            draft, collected.source, self._new_id(), class_, tags, routing.lane, routing.deliveries
        )
        event.replaced_ids = collected.ids
        self._admit(Pending(event, made_id=True))

    def _admit(self, pending: Pending) -> None:
        self._lanes.admit(pending.event.lane, pending, len(pending.event.body))

    def _is_debounced(self, draft: Draft) -> bool:
        return draft.type == "file.changed" and draft.subject is not None and self._debounces
