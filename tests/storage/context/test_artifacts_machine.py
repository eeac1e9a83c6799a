"""Artifacts on SQLite against a dict: any history of puts, reads, expiries, reopenings and crashes is the same."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from storage.context.artifact_parts import ModelArtifacts, draft
from storage.samples import FakeClock

from herdr.storage.sqlite.context.artifacts import SqliteArtifacts
from herdr.storage.sqlite.context.store import ContextStore

LIMIT, COUNT = 1000, 6
WORKSPACES, NAMES = st.sampled_from("vw"), st.sampled_from("abcd")
SESSIONS = st.sampled_from([None, "s", "t"])


class Shelves(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="herdr-artifacts-"))
        self.generation = 0
        self.clock = FakeClock()
        self.model = ModelArtifacts(self.clock, LIMIT, COUNT)
        self.file().parent.mkdir()
        self.open()

    def file(self) -> Path:
        return self.folder / str(self.generation) / "context.db"

    def open(self) -> None:
        self.store = self.runner.run(
            ContextStore.open(self.file(), clock=self.clock, artifact_bytes=LIMIT, durability="os")
        )
        self.store.artifacts = SqliteArtifacts(self.store._database, self.clock, LIMIT, COUNT)

    @rule(
        workspace=WORKSPACES,
        name=NAMES,
        session=SESSIONS,
        ttl_s=st.sampled_from([5, 50, 500]),
        kind=st.sampled_from(["patch", "digest"]),
        letter=st.sampled_from(b"xyz"),
        size=st.integers(0, 400),
    )
    def put(self, workspace, name, session, ttl_s, kind, letter, size) -> None:
        self.clock.advance(1)
        one = draft(name, ttl_s, workspace, kind=kind, session=session)
        content = bytes([letter]) * size
        stored = self.runner.run(self.store.artifacts.put(one, content))
        expected = self.model.put(one, content)
        assert (stored.artifact, stored.replaced) == expected[:2]
        assert sorted(map(repr, stored.gone)) == sorted(map(repr, expected.gone))

    @rule(workspace=WORKSPACES, name=NAMES)
    def get(self, workspace, name) -> None:
        self.clock.advance(1)
        found = self.runner.run(self.store.artifacts.get(workspace, name))
        expected = self.model.get(workspace, name)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert (found[0].ref, found[0].used_us, found[1]) == (
                expected[0].ref,
                self.clock.wall,
                expected[1],
            )

    @rule(workspace=WORKSPACES, name=NAMES)
    def delete(self, workspace, name) -> None:
        assert self.runner.run(self.store.artifacts.delete(workspace, name)) == self.model.delete(
            workspace, name
        )

    @rule(seconds=st.sampled_from([1, 10, 100]))
    def time_passes(self, seconds) -> None:
        self.clock.advance(seconds)

    @rule()
    def expire(self) -> None:
        assert sorted(map(repr, self.runner.run(self.store.artifacts.expire()))) == sorted(
            map(repr, self.model.expire())
        )

    @rule()
    def tidy(self) -> None:
        self.runner.run(self.store.tidy())

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.store.artifacts.touches.write(self.store._database))
        self.runner.run(self.store.close())
        self.open()

    @rule()
    def crash(self) -> None:
        """What a killed process leaves, with the used times written down: only these may be lost."""
        self.runner.run(self.store.artifacts.touches.write(self.store._database))
        old = self.file()
        self.generation += 1
        self.file().parent.mkdir()
        for left in (old, old.with_name("context.db-wal")):
            shutil.copy(left, self.file().with_name(left.name))
        self.runner.run(self.store.close())
        self.open()

    @invariant()
    def same(self) -> None:
        run, artifacts = self.runner.run, self.store.artifacts
        assert run(artifacts.next_expiry()) == self.model.next_expiry()
        for workspace in "vw":
            for kind, session, limit in ((None, None, 9), ("patch", None, 9), (None, "s", 1)):
                expected = self.model.shelf(workspace, kind, session, limit)
                found = run(artifacts.shelf(workspace, kind, session, limit))
                assert (list(found.artifacts), found.more, found.bytes) == expected
            for name in "abcd":
                expected_one = self.model.alive(workspace, name)
                assert run(artifacts.describe(workspace, name)) == (expected_one and expected_one[0])

    @invariant()
    def books_balance(self) -> None:
        def check(db) -> None:
            owned = db.execute("SELECT id, owners FROM blobs WHERE owners > 0 ORDER BY id").fetchall()
            assert (
                owned
                == db.execute("SELECT blob, count(*) FROM artifacts GROUP BY blob ORDER BY blob").fetchall()
            )

        self.runner.run(self.store._database.read(check))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.runner.run(self.store.close())
        self.runner.close()
        shutil.rmtree(self.folder)


TestShelves = Shelves.TestCase
TestShelves.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
