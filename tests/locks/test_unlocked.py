from dataclasses import dataclass

from hypothesis import event, given, settings
from hypothesis import strategies as st

from herdr.locks import evidence, unlocked
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
    assert desk.unlocked.next_due() is None
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
    assert desk.found[0] == Finding("shop", A, "h1", False, None, "lock-ann", "ann", "refactor", ("ann",))
    assert desk.later(60) == []


def test_a_late_report_of_the_holder_is_late() -> None:
    desk = Desk()
    desk.saw("h1")
    assert desk.later(5.0) == [(None, "h1")]
    desk.reported("ann", "h1")
    desk.reported("bob", "h1")  # it is the holder's after all: nobody else is blamed for it
    desk.saw("h1")
    assert desk.later(60) == []


def test_a_change_that_another_source_reports_is_one_finding_by_that_source() -> None:
    for first in ("saw", "reported"):
        desk = Desk()
        desk.saw("h1") if first == "saw" else desk.reported("bob", "h1")
        desk.later(2)
        desk.reported("bob", "h1") if first == "saw" else desk.saw("h1")
        assert desk.later(3) == [("bob", "h1")], first
        assert desk.found[0].to == ("ann", "bob")
        assert desk.later(60) == [] and desk.unlocked.next_due() is None


def test_the_holder_may_say_that_it_was_its_own_write_whoever_said_so_before() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.reported("bob", "h1")
    desk.later(4)
    desk.reported("ann", "h1")
    desk.reported("bob", "h1")
    assert desk.later(60) == []


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
    assert desk.later(60) == []
    desk.saw("h2")
    desk.later(2)
    desk.reported("bob", None)
    assert desk.later(0) == [("bob", "h2")]
    desk.reported("cyd", "h2")
    assert desk.later(60) == [("cyd", "h2")]


def test_a_write_that_is_reported_twice_with_and_without_its_hash_is_one() -> None:
    desk = Desk()
    desk.reported("bob", None)
    desk.reported("bob", "h1")
    desk.saw("h1")
    assert desk.later(60) == [("bob", None)]
    desk.reported("bob", "h2")
    desk.reported("bob", None)
    assert desk.later(60) == [("bob", "h2")]


def test_what_one_source_says_without_a_hash_is_not_what_another_says() -> None:
    desk = Desk()
    desk.reported("bob", None)
    desk.reported("cyd", "h1")
    assert desk.later(60) == [("bob", None), ("cyd", "h1")]
    desk.reported("cyd", "h2")
    desk.reported("bob", None)
    assert desk.later(60) == [("bob", None), ("cyd", "h2")]


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
    assert desk.found[-1].to == ("ann", "bob")
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
    assert desk.later(10) == [(None, "h1")]


def test_the_same_report_again_is_another_write_only_when_something_came_between() -> None:
    desk = Desk()
    desk.reported("bob", "h1")
    assert desk.later(5) == [("bob", "h1")]
    desk.reported("bob", "h1")
    assert desk.later(60) == []
    desk.reported("ann", "h0")
    desk.reported("bob", "h1")
    assert desk.later(60) == [("bob", "h1")]


def test_a_slow_watcher_that_sees_what_was_found_by_its_report_adds_nothing() -> None:
    desk = Desk()
    desk.reported("bob", "h1")
    assert desk.later(30) == [("bob", "h1")]
    desk.saw("empty")
    desk.later(0.1)
    desk.saw("h1")
    assert desk.later(60) == []


def test_a_deletion() -> None:
    desk = Desk()
    desk.saw(None, deleted=True)
    assert desk.later(60) == [(None, None)] and desk.found[0].deleted
    for said in ({"deleted": True}, {}):
        desk = Desk()
        desk.saw(None, deleted=True)
        desk.later(4)
        desk.reported("ann", None, **said)
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
    desk.saw("h1", TEMP, created=True)
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


def test_both_of_two_sources_that_report_one_change_are_told() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.reported("bob", "h1")
    desk.reported("cyd", "h1")
    assert desk.later(60) == [("bob", "h1"), ("cyd", "h1")]
    desk.reported("cyd", "h1")
    desk.reported("bob", "h1")
    assert desk.later(60) == []


def test_who_claims_one_state_is_not_blamed_for_the_next() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.later(2)
    desk.saw("h2")
    desk.reported("bob", "h1")
    assert desk.later(60) == [("bob", "h1"), (None, "h2")]


def test_who_claims_a_step_is_not_blamed_for_what_follows() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.saw("h2")
    desk.reported("bob", "h1")
    assert desk.later(60) == [("bob", "h1"), (None, "h2")]


def test_a_claim_is_waited_for_though_the_writing_went_on_too_long() -> None:
    desk = Desk()
    for number in range(23):
        desk.saw(f"h{number}")
        assert desk.later(0.5) == []
    desk.reported("bob", "last")  # due at 16.5 s, and what is seen at 15
    desk.saw("last")
    assert desk.later(60) == [("bob", "last")]


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


def test_the_last_write_of_the_former_holder_is_no_news_to_the_next() -> None:
    desk = Desk()
    desk.reported("ann", "h1")
    desk.hold(A, "bob")
    desk.later(1)
    desk.saw("h1")
    assert desk.later(60) == []
    desk.saw("h1")
    assert desk.later(60) == [(None, "h1")]
    assert desk.found[-1].owner == "bob"


def test_a_finding_is_the_holders_though_the_lock_has_ended() -> None:
    desk = Desk()
    desk.saw("h1")
    desk.hold(A, "bob")
    desk.saw("h2")
    desk.reported("ann", "h1")  # it was ann's
    assert desk.later(60) == [(None, "h2")]
    assert desk.found[-1].owner == "bob"
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


def test_three_hundred_files_under_a_switched_branch() -> None:
    desk = Desk()
    for number in range(300):
        desk.hold(f"src/{number}.py", "ann")
        desk.saw(f"h{number}", f"src/{number}.py")
    assert sorted(desk.later(60)) == sorted((None, f"h{number}") for number in range(300))


def test_every_memory_is_bounded() -> None:
    desk = Desk()
    for number in range(evidence.HELD_PATHS_MAX + 10):
        desk.held[path := f"{number}.py"] = desk.held[A]
        desk.reported("ann", "h", path)
        desk.saw("g", path)
        desk.unlocked.reported("other", path, "ann", "h", False, desk.now)
    for number in range(50):
        desk.later(1.5)
        desk.saw(f"s{number}")
        for source in range(3):
            desk.reported(f"x{source}", f"s{number}")
            desk.reported(f"x{source}", None)
    assert desk.unlocked.dropped > 0
    desk.later(1000)
    held = desk.unlocked._reports
    assert len(held._held) == evidence.HELD_PATHS_MAX
    assert len(held._free) == 0 or len(held._free) <= evidence.FREE_PATHS_MAX
    assert len(desk.unlocked._finds._paths) == evidence.FOUND_PATHS_MAX
    assert max(map(len, desk.unlocked._finds._paths.values())) <= evidence.FOUND_PER_PATH
    assert not desk.unlocked._pending and not desk.unlocked._timers
    assert len(desk.found) >= unlocked.PENDING_PATHS_MAX


# --- against a plain model: every report and sighting is kept, and judged by looking through all of them


@dataclass
class Seen:
    path: str
    state: str
    lock: Lock
    at: float
    open: bool = True


@dataclass
class Claimed:
    path: str
    state: str
    lock: Lock
    source: str
    due: float
    open: bool = True


@dataclass
class Known:
    path: str
    state: str
    lock: Lock
    at: float
    since: float
    seen: bool
    told: set[str]
    lasting: bool


class Model:
    """The rules in plain words, for known states and pauses too long to be steps of one save."""

    def __init__(self) -> None:
        self.reports: list[tuple[float, str, str, str, str]] = []  # at, path, state, source, lock
        self.moves: list[tuple[float, str, str]] = []
        self.latest: dict[str, str] = {}
        self.seen: list[Seen] = []
        self.claims: list[Claimed] = []
        self.known: dict[tuple[str, str], Known] = {}
        self.findings: list[tuple[float, str, str, str | None, str]] = []

    def entitled(self, path: str, state: str, held: Lock, now: float) -> bool:
        mine = [r for r in self.reports if r[1] == path]
        if any(r[2] == state and now - r[0] <= 5 for r in mine):
            return True
        under = [r for r in mine if r[4]][-8:]
        if state == "":
            return bool(under) and under[-1][2] == "" and under[-1][4] == held.lock
        return any(r[2] == state and r[4] == held.lock for r in under)

    def lasts(self, known: Known) -> bool:
        return known.lasting and not any(
            p == known.path and s != known.state and at > known.since for at, p, s in self.moves
        )

    def saw(self, path: str, state: str, held: Lock | None, now: float) -> None:
        known = self.known.get((path, state))
        expected = known and now - known.at <= 600 and (not known.seen or self.lasts(known))
        self.moves.append((now, path, state))
        self.latest[path] = state
        if held is None:
            return
        if known and expected:
            known.seen, known.since, known.lasting = True, now, True
        elif not self.entitled(path, state, held, now):
            last = [s for s in self.seen if s.open and s.path == path and s.lock.owner == held.owner]
            if not last or last[-1].state != state:
                self.seen.append(Seen(path, state, held, now))

    def reported(self, path: str, state: str, source: str, held: Lock | None, now: float) -> None:
        known = self.known.get((path, state))
        about_known = False
        if known and now - known.at <= 600:
            if source == known.lock.owner:
                del self.known[path, state]
            elif source in known.told:
                about_known = self.lasts(known)
            else:
                known.told.add(source)
                self.findings.append((now, path, state, source, known.lock.owner))
                about_known = True
        waiting = [
            w
            for w in (*self.seen, *self.claims)
            if w.open and w.path == path and w.state == state and w.lock.owner == source
        ]
        for thing in waiting:
            thing.open = False
        if held is None or held.owner == source:
            self.reports.append((now, path, state, source, held.lock if held else ""))
            self.moves.append((now, path, state))
            self.latest[path] = state
        elif not about_known and not waiting and not self.entitled(path, state, held, now):
            self.claim(path, state, source, held, now)

    def claim(self, path: str, state: str, source: str, held: Lock, now: float) -> None:
        self.moves.append((now, path, state))
        self.latest[path] = state
        if any(c.open and (c.path, c.state, c.source) == (path, state, source) for c in self.claims):
            return
        same = [s for s in self.seen if s.open and (s.path, s.state) == (path, state)]
        due = min([now + 5, *(s.at + 5 for s in same if s.lock.owner == held.owner)])
        self.claims.append(Claimed(path, state, held, source, due))

    def due(self, now: float) -> None:
        for claim in [c for c in self.claims if c.open and c.due <= now]:
            claim.open = False
            same = [s for s in self.seen if s.open and (s.path, s.state) == (claim.path, claim.state)]
            mine = [s for s in same if s.lock.owner == claim.lock.owner]
            for sighting in mine:
                sighting.open = False
            old = self.known.get((claim.path, claim.state))
            told = old.told if old and claim.due - old.at <= 600 and self.lasts(old) else set()
            self.note(claim, claim.due, bool(mine), {*told, claim.source})
            self.findings.append((claim.due, claim.path, claim.state, claim.source, claim.lock.owner))
        for sighting in [s for s in self.seen if s.open and s.at + 5 <= now]:
            sighting.open = False
            self.note(sighting, sighting.at + 5, True, set())
            self.findings.append((sighting.at + 5, sighting.path, sighting.state, None, sighting.lock.owner))

    def note(self, what: Seen | Claimed, at: float, seen: bool, told: set[str]) -> None:
        self.known[what.path, what.state] = Known(
            what.path, what.state, what.lock, at, at, seen, told, self.latest[what.path] == what.state
        )


PAUSES = st.sampled_from([1.5, 1.5, 1.5, 3.0, 3.0, 4.5, 6.0, 60.0, 600.0])
WHO = st.sampled_from(["ann", "bob", "cyd", "watcher"])
STATES = st.sampled_from(["h1", "h1", "h2", ""])
PATHS = st.sampled_from([A, A, B])
STEPS = st.one_of(
    st.tuples(st.just("saw"), PATHS, STATES, st.none()),
    st.tuples(st.just("saw"), PATHS, STATES, st.none()),
    st.tuples(st.just("reported"), PATHS, STATES, WHO),
    st.tuples(st.just("reported"), PATHS, STATES, WHO),
    st.tuples(st.just("hold"), PATHS, st.sampled_from(["ann", "ann", "bob", "free"]), st.none()),
)


@given(st.lists(st.tuples(PAUSES, STEPS), max_size=40))
@settings(max_examples=600, deadline=None)
def test_it_finds_what_a_plain_model_finds(
    steps: list[tuple[float, tuple[str, str, str, str | None]]],
) -> None:
    desk, model, times = Desk(), Model(), []
    desk.hold(B, "ann")
    locks = 0
    for pause, (what, path, state, source) in [*steps, (60.0, ("saw", "elsewhere", "h1", None))]:
        until = desk.now + pause
        while (due := desk.unlocked.next_due()) is not None and due <= until:
            desk.now = max(desk.now, due)
            got = desk.unlocked.due(desk.now)
            desk.found += got
            times += [desk.now] * len(got)
            model.due(desk.now)
        desk.now = until
        model.due(until)
        held = next(iter(desk.held.get(path, [])), None)
        if what == "hold":
            locks += 1
            desk.held[path] = [] if state == "free" else [lock(state, f"lock-{locks}")]
        elif what == "saw":
            desk.saw(state or None, path, deleted=state == "")
            model.saw(path, state, held, until)
        elif source != "watcher":
            assert source is not None
            desk.reported(source, state or None, path, deleted=state == "")
            model.reported(path, state, source, held, until)
            got = desk.unlocked.due(desk.now)
            desk.found += got
            times += [desk.now] * len(got)
        else:
            desk.reported(source, state or None, path, deleted=state == "")
    found = [(at, f.path, f.hash or "", f.by, f.owner) for at, f in zip(times, desk.found, strict=True)]
    assert sorted(found, key=repr) == sorted(model.findings, key=repr)
    event(f"findings: {min(len(found), 5)}")
    assert desk.unlocked.dropped == 0


# --- whatever happens, with steps of saves, contents that cannot be told, and files that come and go

ANY_PAUSE = st.sampled_from([0.0, 0.0, 0.05, 0.05, 0.6, 1.0, 1.7, 4.0, 5.0, 30.0])
ANY_STATE = st.sampled_from(["h1", "h2", "h3", None, ""])
ANY_STEP = st.one_of(
    st.tuples(st.just("saw"), ANY_STATE, st.booleans()),
    st.tuples(WHO, ANY_STATE, st.just(False)),
    st.tuples(st.sampled_from(["hold ann", "hold bob", "free"]), st.none(), st.just(False)),
)


@given(st.lists(st.tuples(ANY_PAUSE, ANY_STEP), max_size=60))
@settings(max_examples=600, deadline=None)
def test_a_finding_has_its_reason_and_all_ends(
    steps: list[tuple[float, tuple[str, str | None, bool]]],
) -> None:
    desk = Desk()
    seen: list[tuple[float, str | None, str]] = []
    said: list[tuple[float, str | None, str]] = []
    for pause, (what, state, created) in steps:
        for _ in desk.later(pause):
            finding = desk.found[-1]
            assert finding.by != finding.owner and finding.by != "watcher"
        owner = desk.held[A][0].owner if desk.held.get(A) else None
        if what == "saw":
            desk.saw(state or None, deleted=state == "", created=created)
            if owner is not None:
                seen.append((desk.now, state, owner))
        elif what in ("ann", "bob", "cyd", "watcher"):
            desk.reported(what, state or None, deleted=state == "")
            said.append((desk.now, state, what))
        else:
            desk.held[A] = [] if what == "free" else [lock(what.removeprefix("hold "))]
    desk.later(60)
    assert desk.unlocked.next_due() is None
    assert not desk.unlocked._pending and not desk.unlocked._timers and desk.unlocked.dropped == 0
    for finding in desk.found:
        state = "" if finding.deleted else finding.hash
        if finding.by is None:
            at = [at for at, what, owner in seen if (what, owner) == (state, finding.owner)]
            assert any(not reports_of(said, finding.owner, state, t) for t in at)
        else:
            assert any(source == finding.by for _, _, source in said)


def reports_of(
    said: list[tuple[float, str | None, str]], owner: str, state: str | None, at: float
) -> list[str]:
    return [who for t, what, who in said if who == owner and what == state and at < t < at + 5]


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
    assert (None, last or None, last == "") in [(f.by, f.hash, f.deleted) for f in desk.found]
    assert {f.to for f in desk.found} == {("ann",)}
