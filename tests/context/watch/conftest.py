"""A real repository in a temporary folder, and a watcher that runs on it."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herdr.clock import SystemClock
from herdr.context.watch.changes import Change, Table
from herdr.context.watch.report import WorkspaceEvent
from herdr.context.watch.status import Settings
from herdr.context.watch.tree import Tree
from herdr.context.watch.watcher import Watcher


@pytest.fixture(autouse=True)
def own_git_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


Git = Callable[..., str]


def run_git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ("git", *identity, *arguments), cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(name="git")
def git_fixture() -> Git:
    """Run git in a folder: `git(root, "add", "-A")`; returns what it printed."""
    return run_git


@pytest.fixture
def commit_all(git: Git) -> Callable[[Path], str]:
    """Commit everything and return the commit."""

    def commit(root: Path) -> str:
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "more")
        return git(root, "rev-parse", "HEAD")

    return commit


@pytest.fixture
def root(tmp_path: Path, git: Git, commit_all: Callable[[Path], str]) -> Path:
    """A repository with two files, one folder, and one ignored pattern."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "README").write_text("hello\n")
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    git(folder, "init", "-q")
    commit_all(folder)
    return folder


class Watched:
    """A running watcher and what it said."""

    def __init__(
        self, watcher: Watcher, events: "asyncio.Queue[WorkspaceEvent]", tapped: list[Change]
    ) -> None:
        self.watcher = watcher
        self.events = events
        self.tapped = tapped

    async def next(self) -> WorkspaceEvent:
        return await asyncio.wait_for(self.events.get(), 30)

    async def take(self, count: int) -> list[tuple[str, str | None, Any]]:
        """Wait for this many events; as (type, subject, data as JSON would have it)."""
        taken = [await self.next() for _ in range(count)]
        return [(event.type, event.subject, msgspec.to_builtins(event.data)) for event in taken]

    def assert_silent(self) -> None:
        assert self.events.empty(), self.events.get_nowait()


Start = Callable[..., AbstractAsyncContextManager[Watched]]


@pytest.fixture
def start() -> Start:
    @asynccontextmanager
    async def running(
        root: Path, wait: bool = True, baseline: Table | None = None, **settings: Any
    ) -> AsyncIterator[Watched]:
        events: asyncio.Queue[WorkspaceEvent] = asyncio.Queue()
        tapped: list[Change] = []

        async def emit(batch: Sequence[WorkspaceEvent]) -> None:
            for event in batch:
                events.put_nowait(event)

        async def tap(changes: Sequence[Change]) -> None:
            tapped.extend(changes)

        watcher = Watcher("project", root, emit, SystemClock(), Settings(**settings), tap, baseline)
        task = asyncio.create_task(watcher.run())
        try:
            if wait:
                await asyncio.wait_for(watcher.ready(), 30)
            yield Watched(watcher, events, tapped)
        finally:
            watcher.stop()
            await asyncio.wait_for(task, 30)

    return running


@pytest.fixture
def scan() -> Callable[..., Awaitable[dict[str, int]]]:
    """Take a fresh look at everything in a folder: path -> size."""

    async def scanned(root: Path, **settings: Any) -> dict[str, int]:
        chosen = Settings(**settings)
        tree = Tree(root, SystemClock(), chosen.exclude, chosen.files_max, chosen.hash_bytes_max)
        async for updates in tree.sweep(hashing=False):
            tree.apply(updates)
        return {path: state.size for path, state in tree.table.items()}

    return scanned
