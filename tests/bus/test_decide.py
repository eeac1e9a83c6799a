import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from herdr.bus.decide import Decision, Id, Judge
from herdr.bus.envelope import address, build_event, own_draft
from herdr.bus.pending import Pending
from herdr.bus.versions import Versions, content_hash, makes_version
from herdr.event import Draft, Event, Lane, Receipt

EPOCH = "0123abcd"
AT = 1_700_000_000_123_456


class Book:
    """What the writer keeps between batches: it applies decisions as a committed batch would."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ids: dict[Id, int] = {}
        self.versions = Versions()
        self.made = 0
        self.judge = Judge(EPOCH, self.versions, self._own)

    def _own(
        self, type_: str, data: Any, *, lane: Lane, to: tuple[str, ...], subject: str, workspace: str
    ) -> Event:
        assert lane is Lane.P0, "a conflict is urgent"
        self.made += 1
        draft = own_draft(type_, data, subject, workspace)
        return build_event(draft, "herdr", f"own-{self.made}", "tool", (), Lane.P0, address(to, ()))

    def decide(self, items: Iterable[Pending]) -> Decision:
        keys = [(item.event.source, item.event.id) for item in items]
        known = {key: self.ids[key] for key in keys if key in self.ids}
        return self.judge.decide(items, len(self.events) + 1, AT + len(self.events), known)

    def commit(self, *items: Pending) -> list[Receipt]:
        decision = self.decide(items)
        self.events.extend(decision.events)
        for key, seq in decision.ids.items():
            self.ids.setdefault(key, seq)
        for (workspace, subject), version in decision.versions.items():
            self.versions.set(workspace, subject, version)
        assert [item for item, _ in decision.answers] == list(items)
        return [receipt for _, receipt in decision.answers]

    def types(self) -> list[str]:
        return [event.type for event in self.events]


def item(
    id_: str,
    type_: str = "change.applied",
    source: str = "a",
    replaced: Sequence[str] = (),
    **fields: Any,
) -> Pending:
    """Build what the intake would; `if_stale` has its default from the type."""
    data = fields.pop("data", b"null")
    draft = msgspec.convert({"type": type_, "subject": "x.py", **fields}, Draft)
    draft.data = Raw(data)
    event = build_event(draft, source, id_, "tool", (), Lane.P1, ())
    event.replaced_ids = tuple(replaced)
    made = makes_version(draft)
    return Pending(
        event,
        based_on=draft.based_on,
        rejects=(draft.if_stale or "reject") == "reject",
        makes_version=made,
        hash=content_hash(draft) if made else None,
    )


def test_events_get_the_next_seqs_in_order_and_one_time() -> None:
    book = Book()
    receipts = book.commit(item("1"), item("2"), item("3"))
    assert receipts == [Receipt("accepted", id_, seq, EPOCH) for id_, seq in (("1", 1), ("2", 2), ("3", 3))]
    assert [(e.seq, e.accepted_us) for e in book.events] == [(1, AT), (2, AT), (3, AT)]
    assert book.commit(item("4"))[0].seq == 4


def test_an_empty_batch_decides_nothing() -> None:
    decision = Book().decide([])
    assert (decision.events, decision.answers, decision.ids, decision.versions) == ([], [], {}, {})


@pytest.mark.parametrize("together", [True, False])
def test_a_repeated_id_is_stored_once(together: bool) -> None:
    book = Book()
    items = [item("1"), item("1"), item("1", source="b"), item("1")]
    receipts = book.commit(*items) if together else [book.commit(i)[0] for i in items]
    assert [(r.status, r.seq) for r in receipts] == [
        ("accepted", 1),
        ("duplicate", 1),
        ("accepted", 2),
        ("duplicate", 1),
    ]
    assert [(e.source, e.seq) for e in book.events] == [("a", 1), ("b", 2)]


def test_an_id_that_the_gateway_made_is_never_a_duplicate_and_is_told_apart() -> None:
    book = Book()
    book.commit(item("given"))
    made, given = item("made", replaced=["old"]), item("2", source="b", based_on=0, if_stale="notify")
    made.made_id = True
    decision = book.decide([made, given])
    assert [receipt.status for _, receipt in decision.answers] == ["accepted", "accepted"]
    assert [event.id for event in decision.made] == ["made", "own-1"]
    assert decision.ids == {("a", "old"): 2, ("b", "2"): 3}


@pytest.mark.parametrize("together", [True, False])
def test_replaced_ids_are_duplicates_of_the_one_that_stayed(together: bool) -> None:
    book = Book()
    items = [item("3", "file.changed", replaced=["1", "2"]), item("1"), item("2"), item("2", source="b")]
    receipts = book.commit(*items) if together else [book.commit(i)[0] for i in items]
    assert [(r.status, r.seq) for r in receipts] == [
        ("accepted", 1),
        ("duplicate", 1),
        ("duplicate", 1),
        ("accepted", 2),
    ]


def test_what_a_duplicate_had_replaced_is_a_duplicate_too() -> None:
    book = Book()
    book.commit(item("3"))
    receipts = book.commit(item("3", replaced=["1"]), item("1"))
    assert [(r.status, r.seq) for r in receipts] == [("duplicate", 1), ("duplicate", 1)]
    assert len(book.events) == 1


def test_an_id_that_was_stored_by_itself_keeps_its_seq_when_it_is_replaced_later() -> None:
    book = Book()
    book.commit(item("1"))
    receipts = book.commit(item("2", "file.changed", replaced=["1"]), item("1"))
    assert [(r.status, r.seq) for r in receipts] == [("accepted", 2), ("duplicate", 1)]


@pytest.mark.parametrize("together", [True, False])
def test_of_two_with_one_base_exactly_one_is_accepted(together: bool) -> None:
    book = Book()
    book.commit(item("0", source="c"))
    items = [item("1", based_on=1), item("1", source="b", based_on=1)]
    receipts = book.commit(*items) if together else [book.commit(i)[0] for i in items]
    assert [r.status for r in receipts] == ["accepted", "stale"]
    assert receipts[1].seq is None
    conflict = receipts[1].conflict
    assert conflict is not None
    assert (conflict.subject, conflict.seq, conflict.source) == ("x.py", 2, "a")
    assert conflict.time.startswith("2023-11-14T22:13:20.")
    assert book.types() == ["change.applied", "change.applied", "conflict.detected"]


def test_a_stale_event_that_only_notifies_is_stored_and_its_conflict_right_after() -> None:
    book = Book()
    book.commit(item("0", source="b"))
    receipts = book.commit(
        item("1", based_on=0, if_stale="notify"), item("2", "tool.result"), item("3", based_on=2)
    )
    assert [(r.status, r.seq, r.conflict is not None) for r in receipts] == [
        ("accepted", 2, True),
        ("accepted", 4, False),
        ("accepted", 5, False),
    ]
    assert book.types()[1:] == ["change.applied", "conflict.detected", "tool.result", "change.applied"]
    assert [e.seq for e in book.events] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("if_stale", ["notify", "reject"])
def test_a_conflict_is_addressed_to_both_and_says_who_did_what(if_stale: str) -> None:
    book = Book()
    book.commit(item("0", source="b", workspace="w"))
    book.commit(item("1", based_on=0, if_stale=if_stale, workspace="w"))
    notice = book.events[-1]
    assert (notice.type, notice.lane, notice.subject, notice.workspace) == (
        "conflict.detected",
        Lane.P0,
        "x.py",
        "w",
    )
    assert [d.target for d in notice.deliveries] == ["a", "b"]
    assert json.loads(notice.body)["data"] == {
        "workspace": "w",
        "subject": "x.py",
        "status": "accepted" if if_stale == "notify" else "rejected",
        "by": {"source": "a", "id": "1", "type": "change.applied", "based_on": 0},
        "current": {"seq": 1, "source": "b", "time": "2023-11-14T22:13:20.123Z"},
    }


def test_a_rejected_event_may_come_again_with_a_newer_base() -> None:
    book = Book()
    book.commit(item("0", source="b"))
    assert book.commit(item("1", based_on=0))[0].status == "stale"
    assert book.commit(item("1", based_on=0))[0].status == "stale"
    assert book.commit(item("1", based_on=1))[0].status == "accepted"


@pytest.mark.parametrize(
    "late",
    [
        item("1", based_on=1),
        item("1", based_on=9),
        item("1", source="b", based_on=0),
        item("1", based_on=0, subject="other.py"),
        item("1", based_on=0, workspace="other"),
        item("1", based_on=0, subject=None),
        item("1"),
    ],
)
def test_what_is_not_stale_is_accepted(late: Pending) -> None:
    book = Book()
    book.commit(item("0", source="b"))
    (receipt,) = book.commit(late)
    assert (receipt.status, receipt.conflict) == ("accepted", None)


def test_a_duplicate_is_told_before_it_can_be_stale() -> None:
    book = Book()
    book.commit(item("1", based_on=0))
    book.commit(item("2", source="b", based_on=1))
    assert book.commit(item("1", based_on=0))[0].status == "duplicate"
    assert len(book.events) == 2


def test_only_changes_move_the_version() -> None:
    book = Book()
    book.commit(
        item("0", source="b"), item("1", "tool.result", source="b"), item("2", "file.read", source="b")
    )
    assert book.commit(item("3", "tool.result", based_on=1))[0].status == "accepted"
    assert book.commit(item("4", "tool.result", based_on=0))[0].status == "stale"


def test_a_rejected_change_moves_no_version() -> None:
    book = Book()
    book.commit(item("0", source="b"))
    assert book.commit(item("1", source="c", based_on=0))[0].status == "stale"
    assert book.commit(item("2", based_on=1))[0].status == "accepted"


@pytest.mark.parametrize("together", [True, False])
def test_the_same_content_again_is_no_new_version(together: bool) -> None:
    book = Book()
    items = [
        item("0", "file.changed", "b", data=b'{"hash":"h1"}'),
        item("1", "file.changed", "watcher", data=b'{"hash":"h1"}'),
        item("2", "tool.result", "c", based_on=1),
        item("3", "file.changed", "watcher", data=b'{"hash":"h2"}'),
        item("4", "tool.result", "c", based_on=1),
    ]
    receipts = book.commit(*items) if together else [book.commit(i)[0] for i in items]
    assert [r.status for r in receipts] == ["accepted", "accepted", "accepted", "accepted", "stale"]
    assert receipts[-1].conflict is not None
    assert receipts[-1].conflict.source == "watcher"


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("told", "late", "status"),
    [
        (b'{"hash":"h1"}', b'{"hash":"h1"}', "accepted"),  # the watcher told of this very write before
        (b'{"hash":"h1"}', b'{"hash":"h2"}', "stale"),
        (b'{"hash":"h1"}', b"null", "stale"),
        (b"null", b'{"hash":"h1"}', "stale"),
        (b"null", b"null", "stale"),
    ],
)
def test_the_same_content_is_no_conflict(together: bool, told: bytes, late: bytes, status: str) -> None:
    book = Book()
    items = [
        item("0", "file.changed", "watcher", data=told),
        item("1", "file.changed", "cursor", based_on=0, data=late),
    ]
    receipts = book.commit(*items) if together else [book.commit(i)[0] for i in items]
    assert [r.status for r in receipts] == ["accepted", status]
    assert ("conflict.detected" in book.types()) is (status == "stale")


def test_deciding_changes_nothing_so_a_failed_commit_can_be_tried_again() -> None:
    book = Book()
    book.commit(item("0", source="b"))
    items = [item("1", based_on=1), item("2", source="c", based_on=1), item("1", based_on=1)]
    first = book.decide(items)
    again = book.decide(items)
    assert [receipt for _, receipt in first.answers] == [receipt for _, receipt in again.answers]
    assert [(e.type, e.seq) for e in first.events] == [(e.type, e.seq) for e in again.events]
    assert (len(book.events), len(book.versions)) == (1, 1)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["change.x", "file.changed", "tool.result"]),
        st.sampled_from("ab"),
        st.integers(1, 5),
        st.sampled_from(["x", "y"]),
        st.sampled_from([None, 0, 1, 2, 3, 5]),
        st.sampled_from(["notify", "reject"]),
        st.sampled_from([b"null", b'{"hash":"1"}', b'{"hash":"2"}']),
        st.lists(st.integers(1, 5).map(str), max_size=2),
    ),
    max_size=12,
)


@given(STEPS, st.data())
def test_how_events_fall_into_batches_changes_nothing(steps: Any, data: st.DataObject) -> None:
    def items() -> list[Pending]:
        return [
            item(
                str(id_),
                type_,
                source,
                replaced,
                subject=subject,
                based_on=based_on,
                if_stale=stale,
                data=payload,
            )
            for type_, source, id_, subject, based_on, stale, payload, replaced in steps
        ]

    singly, batched = Book(), Book()
    one_by_one = [singly.commit(i)[0] for i in items()]
    left, together = items(), list[Receipt]()
    while left:
        size = data.draw(st.integers(1, len(left)))
        together += batched.commit(*left[:size])
        left = left[size:]
    assert [_told(r) for r in together] == [_told(r) for r in one_by_one]
    assert [(e.seq, e.type, e.source, e.id) for e in batched.events] == [
        (e.seq, e.type, e.source, e.id) for e in singly.events
    ]
    assert [e.seq for e in batched.events] == list(range(1, len(batched.events) + 1))
    assert batched.ids == singly.ids


def _told(receipt: Receipt) -> tuple[Any, ...]:
    conflict = receipt.conflict
    where = None if conflict is None else (conflict.subject, conflict.seq, conflict.source)
    return receipt.status, receipt.id, receipt.seq, where


@given(st.integers(2, 8), st.data())
def test_of_many_with_one_base_exactly_one_wins(count: int, data: st.DataObject) -> None:
    book = Book()
    book.commit(item("0", source="first"))
    left = [item("1", source=f"tool-{n}", based_on=1) for n in range(count)]
    receipts: list[Receipt] = []
    while left:
        size = data.draw(st.integers(1, len(left)))
        receipts += book.commit(*left[:size])
        left = left[size:]
    assert [r.status for r in receipts] == ["accepted"] + ["stale"] * (count - 1)
