"""The watcher on a real repository, with real notices; every test waits for what it expects."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from herdr.clock import SystemClock
from herdr.context.watch import notices as notices_module
from herdr.context.watch.report import WorkspaceEvent
from herdr.context.watch.watcher import Watcher
from herdr.errors import LogUnavailable


def digest(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def changed(change: str, path: str, text: str, **more: str) -> tuple[str, str, dict[str, Any]]:
    return (
        "file.changed",
        path,
        {"change": change, "size": len(text.encode()), "hash": digest(text), **more},
    )


def deleted(path: str) -> tuple[str, str, dict[str, Any]]:
    return ("file.changed", path, {"change": "deleted", "size": None, "hash": None})


def sizes(watched: Any) -> dict[str, int]:
    return {path: state.size for path, state in watched.watcher.table.items()}


async def test_what_is_there_at_the_start_is_known_and_not_reported(
    root: Path, start: Any, scan: Any
) -> None:
    async with start(root) as watched:
        assert set(sizes(watched)) == {".gitignore", "README", "src/a.py"}
        assert watched.watcher.state().status == "watching"
        (root / "README").write_text("fence\n")
        assert await watched.take(1) == [changed("modified", "README", "fence\n")]
        watched.assert_silent()


async def test_a_save_in_place_and_a_new_file(root: Path, start: Any) -> None:
    async with start(root) as watched:
        (root / "src" / "a.py").write_text("a = 2\n")
        assert await watched.take(1) == [changed("modified", "src/a.py", "a = 2\n")]
        (root / "src" / "b.py").write_text("b = 1\n")
        assert await watched.take(1) == [changed("created", "src/b.py", "b = 1\n")]


async def test_an_atomic_save_is_one_modification(root: Path, start: Any) -> None:
    async with start(root) as watched:
        (root / "src" / ".a.py.tmp").write_text("a = 3\n")
        os.replace(root / "src" / ".a.py.tmp", root / "src" / "a.py")
        assert await watched.take(1) == [changed("modified", "src/a.py", "a = 3\n")]
        (root / "README").write_text("fence\n")
        assert (await watched.take(1))[0][1] == "README"


async def test_a_save_with_a_backup_is_one_modification_and_one_new_file(root: Path, start: Any) -> None:
    async with start(root) as watched:
        os.rename(root / "README", root / "README~")
        (root / "README").write_text("new\n")
        events = await watched.take(2)
        assert changed("modified", "README", "new\n") in events
        assert changed("created", "README~", "hello\n") in events


async def test_delete_and_recreate_in_one_go_is_a_modification(root: Path, start: Any) -> None:
    async with start(root) as watched:
        (root / "README").unlink()
        (root / "README").write_text("again\n")
        assert await watched.take(1) == [changed("modified", "README", "again\n")]


async def test_a_touched_file_is_no_change_once_its_content_is_known(root: Path, start: Any) -> None:
    async with start(root) as watched:
        (root / "README").write_text("x\n")
        await watched.take(1)
        (root / "README").write_text("x\n")
        (root / "src" / "a.py").write_text("fence\n")
        assert await watched.take(1) == [changed("modified", "src/a.py", "fence\n")]


async def test_delete(root: Path, start: Any) -> None:
    async with start(root) as watched:
        (root / "README").unlink()
        assert await watched.take(1) == [deleted("README")]
        assert "README" not in watched.watcher.table


async def test_rename_of_a_file_whose_content_was_never_read(root: Path, start: Any) -> None:
    async with start(root) as watched:
        os.rename(root / "src" / "a.py", root / "moved.py")
        assert await watched.take(1) == [changed("renamed", "moved.py", "a = 1\n", **{"from": "src/a.py"})]


async def test_rename_of_a_folder_renames_its_files(root: Path, start: Any) -> None:
    async with start(root) as watched:
        os.rename(root / "src", root / "lib")
        assert await watched.take(1) == [changed("renamed", "lib/a.py", "a = 1\n", **{"from": "src/a.py"})]
        (root / "lib" / "a.py").write_text("seen\n")
        assert await watched.take(1) == [changed("modified", "lib/a.py", "seen\n")]


async def test_files_in_new_folders_are_seen_and_followed(root: Path, start: Any) -> None:
    async with start(root) as watched:
        (root / "x" / "y" / "z").mkdir(parents=True)
        (root / "x" / "y" / "z" / "deep.txt").write_text("1")
        assert await watched.take(1) == [changed("created", "x/y/z/deep.txt", "1")]
        (root / "x" / "y" / "z" / "deep.txt").write_text("22")
        assert await watched.take(1) == [changed("modified", "x/y/z/deep.txt", "22")]


async def test_a_folder_made_anew_under_its_old_name_is_watched_again(root: Path, start: Any) -> None:
    async with start(root) as watched:
        shutil.rmtree(root / "src")
        assert await watched.take(1) == [deleted("src/a.py")]
        (root / "src").mkdir()
        (root / "src" / "b.py").write_text("1")
        assert await watched.take(1) == [changed("created", "src/b.py", "1")]
        (root / "src" / "b.py").write_text("22")
        assert await watched.take(1) == [changed("modified", "src/b.py", "22")]


async def test_a_file_in_a_folder_that_was_empty(root: Path, start: Any) -> None:
    (root / "empty").mkdir()
    async with start(root) as watched:
        (root / "empty" / "first").write_text("1")
        assert await watched.take(1) == [changed("created", "empty/first", "1")]


async def test_ignored_files_are_silent_until_the_rules_change(root: Path, start: Any) -> None:
    (root / "build").mkdir()
    async with start(root) as watched:
        (root / "debug.log").write_text("noise")
        (root / "build" / "out.o").write_text("noise")
        (root / "src" / "a.py").write_text("fence\n")
        assert (await watched.take(1))[0][1] == "src/a.py"
        assert "debug.log" not in watched.watcher.table
        (root / ".gitignore").write_text("build/\n")
        paths = {event[1]: event[2]["change"] for event in await watched.take(2)}
        assert paths == {".gitignore": "modified", "debug.log": "created"}


async def test_a_file_that_becomes_ignored_is_dropped_without_a_word(root: Path, start: Any) -> None:
    (root / "notes.txt").write_text("1")
    async with start(root) as watched:
        assert "notes.txt" in watched.watcher.table
        (root / ".gitignore").write_text("*.log\nbuild/\nnotes.txt\n")
        assert (await watched.take(1))[0][1] == ".gitignore"
        assert "notes.txt" not in watched.watcher.table
        (root / "README").write_text("fence\n")
        assert (await watched.take(1))[0][1] == "README"


async def test_a_tracked_file_is_followed_though_a_rule_ignores_it(root: Path, start: Any, git: Any) -> None:
    (root / "kept.log").write_text("1")
    git(root, "add", "-f", "kept.log")
    async with start(root) as watched:
        (root / "kept.log").write_text("22")
        assert await watched.take(1) == [changed("modified", "kept.log", "22")]


async def test_switching_a_branch_is_one_event(
    root: Path, start: Any, git: Any, commit_all: Any, scan: Any
) -> None:
    main = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "-q", "-b", "wide")
    for number in range(300):
        (root / f"many{number % 7}").mkdir(exist_ok=True)
        (root / f"many{number % 7}" / f"{number}.txt").write_text(str(number))
    wide = commit_all(root)
    git(root, "checkout", "-q", "main")
    async with start(root) as watched:
        git(root, "checkout", "-q", "wide")
        head, files = await watched.take(2)
        assert head == ("git.head", None, {"from": main, "to": wide, "branch": "wide"})
        assert files[0] == "files.changed"
        assert files[2]["count"] == len(files[2]["paths"]) == 300
        assert files[2]["cause"] == "head" and not files[2]["truncated"]
        assert len([change for change in watched.tapped if change.kind == "created"]) == 300
        assert sizes(watched) == await scan(root)
        git(root, "checkout", "-q", "main")
        head, files = await watched.take(2)
        assert head[2] == {"from": wide, "to": main, "branch": "main"}
        assert files[2]["count"] == 300
        assert sizes(watched) == await scan(root)
        watched.assert_silent()


async def test_a_commit_moves_head_and_changes_no_file(root: Path, start: Any, git: Any) -> None:
    before = git(root, "rev-parse", "HEAD")
    async with start(root) as watched:
        git(root, "commit", "-q", "--allow-empty", "-m", "empty")
        after = git(root, "rev-parse", "HEAD")
        assert await watched.take(1) == [("git.head", None, {"from": before, "to": after, "branch": "main"})]


async def test_a_moved_head_alone_makes_it_look_at_everything(
    root: Path, start: Any, git: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices_module.Notices, "_deliver_now", lambda self, paths: None, raising=True)
    async with start(root) as watched:
        git(root, "checkout", "-q", "-b", "side")
        (root / "README").write_text("unseen\n")
        watched.watcher.hint([str(root / ".git" / "HEAD")])
        head, file = await watched.take(2)
        assert head[2]["branch"] == "side"
        assert file == changed("modified", "README", "unseen\n")


async def test_a_linked_work_tree_has_its_own_head(root: Path, start: Any, git: Any, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    async with start(tmp_path / "side") as watched:
        (tmp_path / "side" / "README").write_text("side\n")
        assert (await watched.take(1))[0][1] == "README"
        git(tmp_path / "side", "commit", "-q", "-a", "-m", "on the side")
        assert (await watched.take(1))[0][2]["branch"] == "side"
        (root / "README").write_text("not mine\n")
        (tmp_path / "side" / "README").write_text("fence\n")
        assert await watched.take(1) == [changed("modified", "README", "fence\n")]


async def test_a_burst_of_new_files_is_one_event(root: Path, start: Any, scan: Any) -> None:
    async with start(root) as watched:
        for number in range(60):
            (root / "src" / f"{number}.txt").write_text("x")
        [(kind, subject, data)] = await watched.take(1)
        assert (kind, subject, data["count"], data["cause"]) == ("files.changed", None, 60, "burst")
        assert sizes(watched) == await scan(root)


async def test_lost_notices_are_made_good_by_a_sweep(
    root: Path, start: Any, scan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an overflow of the kernel's queue does: the changes happen and no notice arrives."""
    monkeypatch.setattr(notices_module.Notices, "_deliver_now", lambda self, paths: None, raising=True)
    async with start(root) as watched:
        for number in range(200):
            (root / f"new{number % 3}").mkdir(exist_ok=True)
            (root / f"new{number % 3}" / f"{number}").write_text(str(number))
        (root / "src" / "a.py").unlink()
        os.rename(root / "README", root / "README.md")
        watched.watcher.hint([str(root / "new0")])
        [(kind, _subject, data)] = await watched.take(1)
        assert kind == "files.changed" and data["count"] == 203
        assert sizes(watched) == await scan(root)


async def test_sweeps_come_by_themselves(root: Path, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices_module.Notices, "_deliver_now", lambda self, paths: None, raising=True)
    async with start(root, sweep_every_s=0.2) as watched:
        (root / "src" / "a.py").write_text("unseen\n")
        assert await watched.take(1) == [changed("modified", "src/a.py", "unseen\n")]


async def test_watches_that_stopped_working_are_placed_anew(
    root: Path, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf: list[object] = []
    heard = asyncio.Event()

    def deliver(self: Any, paths: set[str]) -> None:
        if not deaf or self in deaf:
            deaf[:] = [self]
        else:
            heard.set()
            self._deliver(paths)

    monkeypatch.setattr(notices_module.Notices, "_deliver_now", deliver)
    async with start(root, sweep_every_s=0.2) as watched:
        (root / "README").write_text("not told\n")
        assert await watched.take(1) == [changed("modified", "README", "not told\n")]
        for number in range(100):
            (root / "README").write_text(f"{number}\n")
            assert (await watched.take(1))[0][1] == "README"
            if heard.is_set():
                break
        assert heard.is_set()


async def test_polling_finds_changes_too(root: Path, start: Any) -> None:
    async with start(root, force_polling=True) as watched:
        (root / "src" / "b.py").write_text("polled\n")
        assert await watched.take(1) == [changed("created", "src/b.py", "polled\n")]


async def test_a_name_that_is_not_utf8_does_not_end_the_watching(root: Path, start: Any) -> None:
    async with start(root) as watched:
        os.close(os.open(os.fsencode(root) + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY))
        (root / "README").write_text("after\n")
        assert await watched.take(1) == [changed("modified", "README", "after\n")]
        (root / "src" / "a.py").write_text("later\n")
        assert await watched.take(1) == [changed("modified", "src/a.py", "later\n")]
        assert watched.watcher.state().skipped["name"] == 1
        assert watched.watcher.state().restarts >= 1


async def test_links_pipes_nested_repositories_and_odd_names_are_not_followed(
    root: Path, start: Any, tmp_path: Path, git: Any
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root)
    (root / "out.txt").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    (root / "line\nbreak").write_text("x")
    (root / "nested").mkdir()
    git(root / "nested", "init", "-q")
    (root / "nested" / "file").write_text("x")
    async with start(root) as watched:
        assert set(sizes(watched)) == {".gitignore", "README", "src/a.py"}
        state = watched.watcher.state()
        assert state.skipped["symlink"] == 3
        assert state.skipped["nested_repository"] == 1
        assert state.skipped["name"] == 1
        (outside / "secret").write_text("changed")
        (root / "nested" / "file").write_text("changed")
        (root / "README").write_text("fence\n")
        assert await watched.take(1) == [changed("modified", "README", "fence\n")]
        (root / "README").unlink()
        os.mkfifo(root / "README")
        assert await watched.take(1) == [deleted("README")]


async def test_a_folder_replaced_by_a_link_takes_its_files_along(
    root: Path, start: Any, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.py").write_text("not ours")
    async with start(root) as watched:
        shutil.rmtree(root / "src")
        (root / "src").symlink_to(tmp_path / "outside")
        assert await watched.take(1) == [deleted("src/a.py")]
        assert "src/a.py" not in watched.watcher.table


async def test_the_gateways_own_folder_is_left_out(root: Path, start: Any) -> None:
    (root / "data").mkdir()
    async with start(root, exclude=(str(root / "data"),)) as watched:
        (root / "data" / "events.db").write_text("x")
        (root / "README").write_text("fence\n")
        assert await watched.take(1) == [changed("modified", "README", "fence\n")]
        assert not any(path.startswith("data") for path in watched.watcher.table)


async def test_a_plain_folder_follows_its_own_rules(tmp_path: Path, start: Any) -> None:
    (tmp_path / "plain" / "sub").mkdir(parents=True)
    (tmp_path / "plain" / "sub" / ".gitignore").write_text("*.tmp\n")
    async with start(tmp_path / "plain") as watched:
        assert watched.watcher.state().listing == "walk"
        (tmp_path / "plain" / "sub" / "x.tmp").write_text("no")
        (tmp_path / "plain" / "sub" / "x.txt").write_text("yes")
        assert await watched.take(1) == [changed("created", "sub/x.txt", "yes")]


async def test_a_lost_folder_is_waited_for(
    root: Path, start: Any, tmp_path: Path, commit_all: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with start(root) as watched:
        os.rename(root, tmp_path / "away")
        watched.watcher.hint([str(root)])
        while watched.watcher.state().status != "lost":
            await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, os.sched_yield), 30)
        while watched.watcher._lost_retry_s < 2:  # it has looked for the folder again, twice
            watched.watcher.hint([])
            await asyncio.to_thread(os.sched_yield)
        (tmp_path / "away" / "README").write_text("changed elsewhere\n")
        commit_all(tmp_path / "away")
        os.rename(tmp_path / "away", root)
        head, file = await watched.take(2)
        assert head[0] == "git.head" and head[2]["from"] != head[2]["to"]
        assert file == changed("modified", "README", "changed elsewhere\n")
        (root / "src" / "a.py").write_text("watched again\n")
        assert await watched.take(1) == [changed("modified", "src/a.py", "watched again\n")]
    assert len([record for record in caplog.records if "looked for again" in record.message]) == 1


async def test_a_folder_that_is_missing_at_the_start_is_waited_for(tmp_path: Path, start: Any) -> None:
    async with start(tmp_path / "later", wait=False) as watched:
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "first").write_text("1")
        await asyncio.wait_for(watched.watcher.ready(), 30)
        (tmp_path / "later" / "second").write_text("2")
        assert (await watched.take(1))[0][1] == "second"


async def test_large_files_have_no_hash_and_still_change(root: Path, start: Any) -> None:
    (root / "big").write_text("x" * 2000)
    async with start(root, hash_bytes_max=1000) as watched:
        (root / "big").write_text("x" * 3000)
        assert await watched.take(1) == [
            ("file.changed", "big", {"change": "modified", "size": 3000, "hash": None})
        ]


async def test_a_bus_that_refuses_is_counted_and_watching_goes_on(root: Path) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def emit(events: Sequence[WorkspaceEvent]) -> None:
        heard.put_nowait(events[0].subject or "")
        raise LogUnavailable("the disk is full")

    watcher = Watcher("project", root, emit, SystemClock())
    task = asyncio.create_task(watcher.run())
    await asyncio.wait_for(watcher.ready(), 30)
    for path in ("README", "src/a.py"):
        (root / path).write_text("x")
        assert await asyncio.wait_for(heard.get(), 30) == path
    watcher.stop()
    await asyncio.wait_for(task, 30)
    assert watcher.state().undelivered == 2


async def test_a_stop_reports_what_was_gathered(root: Path, start: Any) -> None:
    async with start(root) as watched:
        (root / "README").write_text("last words")
        watched.watcher.hint([str(root / "README")])
        while not watched.tapped:
            await asyncio.wait_for(asyncio.to_thread(os.sched_yield), 30)
        watched.watcher.stop()
        assert await watched.take(1) == [changed("modified", "README", "last words")]


async def test_an_earlier_table_makes_the_start_report_what_changed_since(root: Path, start: Any) -> None:
    async with start(root) as watched:
        earlier = dict(watched.watcher.table)
    (root / "README").unlink()
    async with start(root, baseline=earlier) as watched:
        assert await watched.take(1) == [deleted("README")]


async def test_git_at_work_holds_the_report_back(root: Path, start: Any) -> None:
    lock = root / ".git" / "index.lock"
    async with start(root) as watched:
        lock.touch()
        (root / "README").write_text("half of it")
        while not watched.tapped:
            await asyncio.wait_for(asyncio.to_thread(os.sched_yield), 30)
        (root / "src" / "a.py").write_text("other half")
        while len(watched.tapped) < 2:
            await asyncio.wait_for(asyncio.to_thread(os.sched_yield), 30)
        while not watched.watcher._git_busy:
            await asyncio.wait_for(asyncio.to_thread(os.sched_yield), 30)
        watched.assert_silent()
        lock.unlink()
        assert [event[1] for event in await watched.take(2)] == ["README", "src/a.py"]


async def test_a_root_whose_name_is_not_utf8_is_swept_instead(tmp_path: Path, start: Any) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    odd.mkdir()
    async with start(odd) as watched:
        assert watched.watcher.state().status == "sweeping"
        (odd / "a").write_text("found")
        assert await watched.take(1) == [changed("created", "a", "found")]


async def test_files_over_the_limit_are_counted(root: Path, start: Any) -> None:
    async with start(root, files_max=2) as watched:
        state = watched.watcher.state()
        assert (state.files, state.skipped["limit"]) == (2, 1)
