"""SQLite against the model: any history of appends, trims, redactions, reopenings and crashes reads the same."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from storage.samples import EPOCH, FakeClock, make_event, open_sqlite, text

from herdr.bus.log import Batch, Put, RememberedId
from herdr.storage.memory import MemoryLog
from herdr.storage.retention import Retention
from herdr.storage.sqlite.log import SqliteLog

BOUNDS = Retention(max_age_s=60, max_events=40, max_bytes=1 << 30)
LANES = st.lists(st.integers(0, 2), max_size=12)
PUTS = st.lists(
    st.builds(Put, st.sampled_from("ab"), st.sampled_from("xyz"), st.none() | st.binary(max_size=9)),
    max_size=4,
)
HASHES = st.lists(st.integers(-20, 20), max_size=5)
PLACES = st.integers(0, 90)


class LogHistory(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="herdr-log-"))
        self.generation = 0
        self.clock = FakeClock()
        self.model = MemoryLog(EPOCH, BOUNDS, self.clock)
        self.log = self.open()

    def file(self) -> Path:
        return self.folder / str(self.generation) / "events.db"

    def open(self) -> SqliteLog:
        return self.runner.run(open_sqlite(self.file(), self.clock, retention=BOUNDS))

    @rule(lanes=LANES, size=st.integers(0, 3000), puts=PUTS, hashes=HASHES)
    def append(self, lanes, size, puts, hashes) -> None:
        head = self.model.head
        events = [make_event(head + 1 + n, lane, text(size), self.clock.wall) for n, lane in enumerate(lanes)]
        ids = [RememberedId(known, head, self.clock.wall) for known in hashes]
        for log in (self.model, self.log):
            self.runner.run(log.append(Batch(events, puts, ids)))

    @rule(after=st.tuples(PLACES, PLACES, PLACES), limit=st.integers(1, 30), size=st.integers(1, 9000))
    def read(self, after, limit, size) -> None:
        ours, theirs = (self.runner.run(log.read(after, limit, size)) for log in (self.model, self.log))
        assert ours == theirs

    @rule(seq=PLACES, size=st.integers(0, 5000))
    def redact(self, seq, size) -> None:
        body = make_event(seq, 1, text(size, b"y")).body
        ours, theirs = (self.runner.run(log.redact(seq, body)) for log in (self.model, self.log))
        assert ours == theirs

    @rule(seconds=st.sampled_from([1, 10, 70, 50_000]))
    def time_passes(self, seconds) -> None:
        self.clock.advance(seconds)

    @rule()
    def tidy(self) -> None:
        for _ in range(20):
            self.clock.advance(2)
            while self.runner.run(self.log.tidy(calm=True)):
                pass
        self.runner.run(self.model.tidy(calm=True))

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.log.close())
        self.log = self.open()

    @rule()
    def crash(self) -> None:
        """What a killed process leaves: the files as they are, without a word of goodbye."""
        old = self.file()
        self.generation += 1
        self.file().parent.mkdir()
        for left in (old, old.with_name("events.db-wal")):
            shutil.copy(left, self.file().with_name(left.name))
        self.runner.run(self.log.close())
        self.log = self.open()

    @invariant()
    def same(self) -> None:
        model, log, run = self.model, self.log, self.runner.run
        assert (model.epoch, model.first, model.head) == (log.epoch, log.first, log.head)
        assert run(model.read((0, 0, 0), 1000, 1 << 30)) == run(log.read((0, 0, 0), 1000, 1 << 30))
        assert run(model.find_ids(range(-20, 21))) == run(log.find_ids(range(-20, 21)))
        assert run(model.seq_at(self.clock.wall - 30_000_000)) == run(
            log.seq_at(self.clock.wall - 30_000_000)
        )
        for kind in "ab":
            assert run(model.load(kind)) == run(log.load(kind))

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.runner.run(self.log.close())
        self.runner.close()
        shutil.rmtree(self.folder)


TestHistory = LogHistory.TestCase
TestHistory.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
