from dataclasses import dataclass

from hypothesis import event, given, settings
from hypothesis import strategies as st

from herdr.locks import unlocked
from herdr.locks.lock import FOLDER, Lock, Name
from herdr.locks.unlocked import Finding, Unlocked

A, B, TEMP = "src/a.py", "src/b.py", "src/.a.py.swp"


def lock(owner: str, lock_id: str = "", purpose: str | None = None) -> Lock:
    return Lock(lock_id or f"lock-{owner}", 7, owner, "write", "shop", (A,), (), 60.0, 0, 7, purpose)


class Desk:
    """The thing under test, with the locks as a plain dictionary and a clock that only we move."""

    def __init__(self, **held: str) -> None:
        self.held: dict[str, list[Lock]] = {}
        self.now = 1000.0
        self.found: list[Finding] = []
        self.unlocked = Unlocked(lambda workspace, path: self.held.get(path, []))
        self.hold(A, held.get("by", "ann"))

    def hold(self, path: str, *owners: str) -> None:
        self.held[path] = [lock(owner, purpose="refactor") for owner in owners]

    def free(self, path: str = A) -> None:
        self.held.pop(path)

    def saw(self, hash: str | None, path: str = A, deleted: bool = False, created: bool = False) -> None:
        self.unlocked.saw("shop", path, hash, deleted, self.now, created)

    def reported(self, source: str, hash: str | None, path: str = A, deleted: bool = False) -> None:
        self.unlocked.reported("shop", path, source, hash, deleted, self.now)

    def later(self, seconds: float) -> list[tuple[str | None, str | None]]:
        """Let time pass, calling exactly when asked to; returns who is found to have made what."""
        until, before = self.now + seconds, len(self.found)
        while (due := self.unlocked.next_due()) is not None and due <= until:
            self.now = max(self.now, due)
            self.found += self.unlocked.due(self.now)
        self.now = until
        return [(finding.by, finding.hash) for finding in self.found[before:]]


def test_what_the_holder_reports_in_time_is_its_own() -> None:
    desk = Desk()
    desk.reported("ann", "h1")
    desk.saw("h1")
    desk.later(3600)
    desk.saw("h1")  # long after: still what the holder reported under this lock
    desk.saw("h2")
    desk.later(4.9)
    desk.reported("ann", "h2")
    assert desk.later(60) == [] and desk.unlocked.next_due() is None


def test_what_nobody_reports_is_found_after_five_seconds() -> None:
    desk = Desk()
    desk.saw("h1")
    assert desk.unlocked.next_due() == desk.now + 5.0
    assert desk.unlocked.due(desk.now + 4.9) == []
    assert desk.later(5.0) == [(None, "h1")]
    assert desk.found[0] == Finding("shop", A, "h1", None, lock("ann", purpose="refactor"))
    assert desk.later(60) == []


def test_a_late_report_of_the_holder_is_late() -> None:
    desk = Desk()
    desk.saw("h1")
    assert desk.later(5.0) == [(None, "h1")]
    desk.reported("ann", "h1")
    desk.reported("bob", "h1")  # it is the holder's after all: nobody else is blamed for it
    desk.saw("h1")
    assert desk.later(60) == []
    desk = Desk()
    for state in ("h1", "h2", "h1"):
        desk.saw(state)
        desk.later(6)
    desk.saw("h2")
    desk.reported("ann", "h2")  # in time, of what was found before
    desk.reported("bob", "h2")
    assert desk.later(60) == []


def test_a_change_that_another_source_reports_is_one_finding_by_that_source() -> None:
    for first in ("saw", "reported"):
        desk = Desk()
        desk.saw("h1") if first == "saw" else desk.reported("bob", "h1")
        desk.later(2)
        desk.reported("bob", "h1") if first == "saw" else desk.saw("h1")
        assert desk.later(3) == [("bob", "h1")], first
        assert desk.later(60) == [] and desk.unlocked.next_due() is None


def test_a_report_without_a_hash_is_found_at_once_and_explains_what_is_seen() -> None:
    desk = Desk()
    desk.reported("bob", None)
    assert desk.later(0) == [("bob", None)]
    desk.later(0.2)
    desk.saw("h1")
    desk.reported("bob", "h1")
    desk.reported("bob", None)
    assert desk.later(4) == []
    desk.saw("h1")
    desk.later(60)
    desk.saw("h1")
    assert desk.later(60) == []
    desk.saw("h2")
    desk.later(2)
    desk.reported("bob", None)
    assert desk.later(0) == [("bob", "h2")]
    desk.reported("bob", "h2")
    desk.reported("cyd", "h2")
    assert desk.later(60) == [("cyd", "h2")]


def test_what_one_source_says_without_a_hash_is_not_what_another_says() -> None:
    desk = Desk()
    desk.reported("bob", None)
    desk.reported("cyd", "h1")
    assert desk.later(60) == [("bob", None), ("cyd", "h1")]
    desk.reported("cyd", "h2")
    desk.reported("bob", None)
    assert desk.later(60) == [("bob", None), ("cyd", "h2")]
    desk.reported("bob", None)
    desk.reported("cyd", None)
    assert desk.later(60) == [("bob", None), ("cyd", None)]


def test_a_step_of_what_was_blamed_on_somebody_is_a_write_when_it_comes_again() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.saw("h2")
    desk.reported("bob", None)
    assert desk.later(30) == [("bob", "h2")]
    desk.saw("h1")
    assert desk.later(30) == [(None, "h1")]


def test_whoever_reports_what_was_found_is_told_within_ten_minutes() -> None:
    desk = Desk()
    desk.saw("h1")
    assert desk.later(5) == [(None, "h1")]
    desk.free()
    desk.later(590)
    desk.reported("bob", "h1")
    desk.reported("bob", "h1")
    assert desk.later(0) == [("bob", "h1")]
    desk.later(11)
    desk.reported("cyd", "h1")
    assert desk.later(60) == []


def test_seeing_it_again_is_no_other_write_unless_something_came_between() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.later(2)
    desk.saw("h1")
    assert desk.later(10) == [(None, "h1")]
    desk.saw("h1")
    assert desk.later(10) == []
    desk.reported("ann", "h0")
    desk.saw("h0")
    desk.later(2)
    desk.saw("h1")
    desk.later(0.5)
    desk.saw("h1")
    assert desk.later(10) == [(None, "h1")]
    desk.reported("ann", None)
    desk.later(10)
    desk.saw("h1")
    assert desk.later(10) == [(None, "h1")]
    desk.reported("ann", "h1")  # late, but its own: nobody else is blamed
    desk.reported("bob", "h1")
    assert desk.later(10) == []


def test_a_deletion() -> None:
    desk = Desk()
    desk.saw(None, deleted=True)
    assert desk.later(60) == [(None, None)]
    for said in (True, False):
        desk = Desk()
        desk.saw(None, deleted=True)
        desk.later(4)
        desk.reported("ann", None, deleted=said)
        assert desk.later(60) == [], said
    desk = Desk()
    desk.saw(None, deleted=True)
    desk.reported("ann", "h1")
    desk.reported("bob", None, deleted=True)
    assert desk.later(60) == [("bob", None)]


def test_a_deletion_that_the_holder_reported_before_it_wrote_anew_explains_no_later_one() -> None:
    desk = Desk()
    desk.reported("ann", None, deleted=True)
    desk.later(60)
    desk.saw(None, deleted=True)  # the watcher was slow
    assert desk.later(60) == []
    desk.reported("ann", "h1")
    desk.later(60)
    desk.saw(None, deleted=True)
    assert desk.later(60) == [(None, None)]


def test_content_that_cannot_be_hashed_is_explained_by_any_report_within_the_window() -> None:
    desk = Desk()
    desk.reported("ann", "h1")
    desk.later(4.9)
    desk.saw(None)
    desk.later(60)
    desk.saw(None)
    desk.later(4)
    desk.reported("ann", "h2")
    desk.reported("ann", None)
    assert desk.later(60) == []
    desk.saw(None)
    assert desk.later(60) == [(None, None)]


def test_a_file_that_is_still_being_written_is_judged_by_what_it_becomes() -> None:
    desk = Desk()
    for _ in range(6):
        desk.saw(None)
        assert desk.later(2) == []
    desk.saw("h1")
    desk.reported("ann", "h1")
    assert desk.later(60) == []


def test_the_steps_of_one_save_are_judged_by_the_last() -> None:
    desk = Desk()
    desk.saw("empty")
    desk.later(0.05)
    desk.saw(None, deleted=True)
    desk.later(0.9)
    desk.saw("h1")
    desk.later(1)
    desk.reported("ann", "h1")
    assert desk.later(60) == []
    desk.saw("empty")
    desk.later(0.05)
    desk.reported("ann", "h2")
    desk.saw("h2")
    assert desk.later(60) == []
    desk.saw("h3")
    desk.later(0.5)
    desk.saw("h4")
    assert desk.later(60) == [(None, "h4")]
    desk.reported("bob", "h3")
    assert desk.later(60) == [("bob", "h3")]
    desk.saw("h5")
    desk.later(1.1)
    desk.saw("h6")
    desk.reported("ann", "h6")
    assert desk.later(60) == [(None, "h5")]


def test_reporting_a_step_leaves_what_came_after_it_open() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.saw("h2")
    desk.reported("ann", "h1")
    desk.reported("bob", "h1")
    assert desk.later(60) == [(None, "h2")]
    desk.reported("cyd", "h1")
    assert desk.later(60) == []


def test_what_is_written_without_pause_is_found_after_fifteen_seconds() -> None:
    desk = Desk()
    said = []
    for number in range(40):
        desk.saw(f"h{number}")
        said += desk.later(0.5)
    assert said == [(None, "h29")]
    assert desk.later(60) == [(None, "h39")]


def test_a_temporary_file_in_a_locked_folder_is_nothing() -> None:
    desk = Desk()
    desk.hold(TEMP, "ann")
    desk.saw("empty", TEMP, created=True)
    desk.later(0.1)
    desk.saw("h1", TEMP)
    desk.later(2)
    desk.saw("h2", TEMP)
    desk.later(2)
    desk.saw(None, TEMP, deleted=True)
    assert desk.later(60) == []
    desk.saw("h1", TEMP)  # it was there before
    desk.later(2)
    desk.saw(None, TEMP, deleted=True)
    assert desk.later(60) == [(None, "h1"), (None, None)]


def test_a_file_that_was_there_is_not_temporary_because_it_came_back() -> None:
    desk = Desk()
    desk.saw(None, deleted=True)
    desk.later(2)
    desk.saw("h1", created=True)
    desk.later(2)
    desk.saw(None, deleted=True)
    assert desk.later(60) == [(None, None)]


def test_who_claims_a_step_is_not_blamed_for_what_follows() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.saw("h2")
    desk.reported("bob", "h1")
    assert desk.later(60) == [(None, "h2"), ("bob", "h1")]


def test_what_the_watcher_publishes_says_nothing_about_who_wrote() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.reported("watcher", "h1")
    desk.reported("watcher", None)
    assert desk.later(60) == [(None, "h1")]


def test_nothing_is_found_where_nobody_holds_a_lock_but_a_report_is_no_news_to_the_next_holder() -> None:
    desk = Desk()
    desk.free()
    desk.saw("h1")
    desk.reported("bob", "h2")
    assert desk.later(1) == []
    desk.hold(A, "ann")
    desk.saw("h2")
    assert desk.later(60) == []
    desk.saw("h2")  # but not for ever: bob may have put it back
    assert desk.later(60) == [(None, "h2")]
    desk.free()
    desk.saw("h1")
    desk.hold(A, "ann")
    desk.saw("h2")
    assert desk.later(60) == [(None, "h2")]


def test_the_last_write_of_the_former_holder_is_no_news_to_the_next() -> None:
    desk = Desk()
    desk.reported("ann", "h1")
    desk.hold(A, "bob")
    desk.later(1)
    desk.saw("h1")
    assert desk.later(60) == []
    desk.saw("h1")
    assert desk.later(60) == [(None, "h1")]
    assert desk.found[-1].lock.owner == "bob"


def test_a_finding_is_the_holders_though_the_lock_has_ended() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.hold(A, "bob")
    desk.saw("h2")
    desk.reported("ann", "h1")  # it was ann's
    assert desk.later(60) == [(None, "h2")]
    assert desk.found[-1].lock.owner == "bob"
    desk.saw("h3")
    desk.free()
    assert desk.later(60) == [(None, "h3")]


def test_a_second_lock_of_the_holder_takes_over_what_it_reported_under_the_first() -> None:
    desk = Desk()
    first, second = lock("ann", "one"), lock("ann", "two")
    desk.held[A] = [first, second]
    desk.reported("ann", "h1")
    desk.held[A] = [second]
    desk.later(60)
    desk.saw("h1")
    assert desk.later(60) == []
    desk.held[A] = [lock("ann", "three")]
    desk.saw("h1")
    assert desk.later(60) == [(None, "h1")]


def test_a_holder_that_reports_one_name_of_a_file_means_all_that_its_lock_knows() -> None:
    names = (
        Name("shop", ("link",), (), "link"),
        Name("shop", ("src", "a.py"), (), "link"),
        Name("outer", ("shop", "src", "a.py"), (), "link"),
        Name("shop", ("docs",), FOLDER, "docs/"),
        Name("shop", ("real", "docs"), FOLDER, "docs/"),
        Name("shop", ("b.py",), (), "b.py"),
        Name("shop", ("docs", "x"), (), "docs/x"),
        Name("shop", ("b.py",), (), "docs/x"),
    )
    held = Lock("one", 7, "ann", "write", "shop", ("link", "docs/", "b.py"), names, 60.0, 0, 7)
    desk = Desk()
    for path in ("link", "src/a.py", "docs/x/y.md", "real/docs/x/y.md", "b.py", "shop/src/a.py"):
        desk.held[path] = [lock("ann"), held]
    desk.held["b.py/y.md"] = [held]
    desk.saw("h1", "src/a.py")
    desk.reported("ann", "h1", "link")
    desk.saw("h2", "real/docs/x/y.md")
    desk.reported("ann", "h2", "docs/x/y.md")
    desk.unlocked.reported("outer", "shop/src/a.py", "ann", "h3", False, desk.now)
    desk.saw("h3", "src/a.py")
    desk.unlocked.saw("outer", "shop/src/a.py", "h4", False, desk.now)  # the other watcher sees it too
    assert desk.later(60) == []
    desk.reported("ann", "h5", "link")
    desk.saw("h5", "b.py")
    desk.reported("ann", "h6", "docs/x/y.md")
    desk.saw("h6", "b.py/y.md")  # what its name says is one file has nothing in it
    assert desk.later(60) == [(None, "h5"), (None, "h6")]


def test_one_path_written_in_two_ways_of_unicode_is_one_path() -> None:
    desk = Desk()
    decomposed, composed = "src/u\u0308.py", "src/\u00fc.py"
    desk.hold(decomposed, "ann")
    desk.hold(composed, "ann")
    desk.saw("h1", decomposed)
    desk.reported("ann", "h1", composed)
    assert desk.later(60) == []


def test_a_claim_that_the_watcher_sees_in_steps_is_one_write() -> None:
    desk = Desk()
    desk.saw("empty")
    desk.later(0.1)
    desk.reported("bob", "h1")
    desk.saw("h1")
    assert desk.later(60) == [("bob", "h1")]


def test_every_memory_is_bounded() -> None:
    desk = Desk()
    for number in range(unlocked.PATHS_MAX + 10):
        desk.held[path := f"{number}.py"] = desk.held[A]
        desk.reported("ann", "h", path)
        desk.saw("g", path)
        desk.unlocked.reported("other", path, "ann", "h", False, desk.now)
    assert len(desk.unlocked._timers) == unlocked.OPEN_MAX and desk.unlocked.dropped == 10
    desk.later(10)
    assert len(desk.found) == unlocked.OPEN_MAX
    for number in range(50):
        for source in range(20):
            desk.reported(f"x{source}", f"s{number}")
            desk.reported("ann", f"a{source}")
    known = desk.unlocked._paths["shop", A]
    assert len(known.open) == len(known.said) == unlocked.KEPT and desk.unlocked.dropped > 10
    assert max(len(write.by) for write in known.open) == unlocked.KEPT
    desk.later(1000)
    desk.reported("bob", "another")
    desk.later(1000)
    assert len(desk.unlocked._paths) == unlocked.PATHS_MAX
    assert len(known.found) == unlocked.KEPT and not known.open and not desk.unlocked._timers


# --- against a plain model: of one path, for known states, and pauses too long to be steps of one save


@dataclass
class Change:
    state: str
    owner: str
    at: float
    by: list[str]


class Model:
    def __init__(self) -> None:
        self.latest: str | None = None
        self.reports: list[tuple[float, str, str]] = []  # at, state, lock
        self.open: list[Change] = []
        self.found: dict[str, Change] = {}
        self.findings: list[tuple[float, str, str | None, str]] = []

    def explained(self, state: str, held: Lock, now: float) -> bool:
        last = [(said, lock) for _, said, lock in self.reports][-8 if state else -1 :]
        return (state, held.lock) in last or any(s == state and now - at <= 5 for at, s, _ in self.reports)

    def known(self, state: str, now: float) -> Change | None:
        change = self.found.get(state)
        return change if change and now - change.at <= 605 else None

    def saw(self, state: str, held: Lock | None, now: float) -> None:
        again, self.latest = self.latest == state, state
        if held is None or (again and self.known(state, now)) or self.explained(state, held, now):
            return
        if (state, held.owner) not in [(change.state, change.owner) for change in self.open]:
            self.open.append(Change(state, held.owner, now, []))

    def reported(self, state: str, source: str, held: Lock | None, now: float) -> None:
        left = [change for change in self.open if (change.state, change.owner) != (state, source)]
        done, self.open = left != self.open, left
        waiting = [change for change in self.open if change.state == state]
        late = self.known(state, now)
        if waiting:
            done = True
            waiting[0].by += [source] if source not in waiting[0].by else []
        elif late and late.owner == source:
            del self.found[state]
        elif late and source not in late.by:
            done = True
            late.by.append(source)
            self.findings.append((now, state, source, late.owner))
        elif late:
            done = done or self.latest == state
        self.latest = state
        if held is None or held.owner == source:
            self.reports.append((now, state, held.lock if held else ""))
        elif not done and not self.explained(state, held, now):
            self.open.append(Change(state, held.owner, now, [source]))

    def due(self, now: float) -> None:
        for change in [change for change in self.open if change.at + 5 <= now]:
            self.open.remove(change)
            self.found[change.state] = change
            self.findings += [(change.at + 5, change.state, by, change.owner) for by in change.by or (None,)]


PAUSES = st.sampled_from([1.5, 1.5, 1.5, 3.0, 3.0, 4.5, 6.0, 60.0, 600.0])
STATES = st.sampled_from(["h1", "h1", "h2", ""])
STEPS = st.one_of(
    st.tuples(st.just("saw"), STATES),
    st.tuples(st.sampled_from(["ann", "bob", "cyd", "watcher"]), STATES),
    st.tuples(st.just("hold"), st.sampled_from(["ann", "ann", "bob", "free"])),
)


@given(st.lists(st.tuples(PAUSES, STEPS), max_size=40))
@settings(max_examples=600, deadline=None)
def test_it_finds_what_a_plain_model_finds(steps: list[tuple[float, tuple[str, str]]]) -> None:
    desk, model = Desk(), Model()
    found: list[tuple[float, str, str | None, str]] = []
    for number, (pause, (what, state)) in enumerate([*steps, (60.0, ("hold", "free"))]):
        until = desk.now + pause
        while (due := desk.unlocked.next_due()) is not None and due <= until:
            desk.now = max(desk.now, due)
            found += [(desk.now, f.hash or "", f.by, f.lock.owner) for f in desk.unlocked.due(desk.now)]
        desk.now = until
        model.due(until)
        held = next(iter(desk.held[A]), None)
        if what == "hold":
            desk.held[A] = [] if state == "free" else [lock(state, f"lock-{number}")]
        elif what == "saw":
            desk.saw(state or None, deleted=state == "")
            model.saw(state, held, until)
        else:
            desk.reported(what, state or None, deleted=state == "")
            if what != "watcher":
                model.reported(state, what, held, until)
    assert sorted(found, key=repr) == sorted(model.findings, key=repr)
    event(f"findings: {min(len(found), 5)}")
    assert desk.unlocked.dropped == 0


# --- whatever happens, with steps of saves, contents that cannot be told, and files that come and go

WHO = st.sampled_from(["ann", "bob", "cyd", "watcher"])
ANY_PAUSE = st.sampled_from([0.0, 0.0, 0.05, 0.05, 0.6, 1.0, 1.7, 4.0, 5.0, 30.0])
ANY_STATE = st.sampled_from(["h1", "h2", "h3", None, ""])
ANY_STEP = st.one_of(
    st.tuples(st.just("saw"), ANY_STATE, st.booleans()),
    st.tuples(WHO, ANY_STATE, st.just(False)),
    st.tuples(st.sampled_from(["hold ann", "hold bob", "free"]), st.none(), st.just(False)),
)


@given(st.lists(st.tuples(ANY_PAUSE, ANY_STEP), max_size=60))
@settings(max_examples=600, deadline=None)
def test_all_ends_and_no_holder_is_accused(steps: list[tuple[float, tuple[str, str | None, bool]]]) -> None:
    desk = Desk()
    for pause, (what, state, created) in steps:
        desk.later(pause)
        if what == "saw":
            desk.saw(state or None, deleted=state == "", created=created)
        elif what in ("hold ann", "hold bob", "free"):
            desk.held[A] = [] if what == "free" else [lock(what.removeprefix("hold "))]
        else:
            desk.reported(what, state or None, deleted=state == "")
    desk.later(60)
    assert desk.unlocked.next_due() is None
    assert all(finding.by not in (finding.lock.owner, "watcher") for finding in desk.found)


@given(st.lists(st.tuples(ANY_PAUSE, ANY_STATE), min_size=1, max_size=30))
def test_what_stays_on_the_disk_is_always_found_when_no_holder_ever_reports(
    sightings: list[tuple[float, str | None]],
) -> None:
    desk = Desk()
    for pause, state in sightings:
        desk.later(pause)
        desk.saw(state or None, deleted=state == "")
    desk.later(60)
    last = sightings[-1][1]
    assert (None, last or None) in [(f.by, f.hash) for f in desk.found]
    assert {f.lock.owner for f in desk.found} == {"ann"}
