"""Files are changed all or none, keep their mode, and what they were is remembered for their owner alone."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from herdr.cli import connections
from herdr.cli.connections import Connected, Connections
from herdr.cli.files import write_whole
from herdr.connect.plan import Kept, Step
from herdr.errors import HerdrError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def step(path: Path, then: bytes | None) -> Step:
    now = path.read_bytes() if path.exists() else None
    return Step(str(path), now, then, Kept(str(path), now, then or b"", ()))


def remembered(*steps: Step) -> Connected:
    return Connected([one.keep for one in steps if one.keep is not None], token=True)


@pytest.fixture
def three(tmp_path: Path) -> list[Step]:
    """Three steps: a file that is there, and two in folders that are not."""
    (tmp_path / "a").write_bytes(b"old")
    return [step(tmp_path / name, b"new") for name in ("a", "x/y/b", "x/z/c")]


def failing(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let writing fail once: the n-th time, where the first writes what is remembered."""
    count = 0

    def write(
        path: Path, blocks: Iterable[bytes], mode: int | None = None, owner: tuple[int, int] | None = None
    ) -> int:
        nonlocal count
        count += 1
        if count == at:
            raise OSError(28, "No space left on device", str(path))
        return write_whole(path, blocks, mode, owner)

    monkeypatch.setattr(connections, "write_whole", write)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_all_or_none(at: int, three: list[Step], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(at, monkeypatch)
    ours = Connections("codex", "user", tmp_path)
    with pytest.raises(HerdrError, match=r"No space left on device\); nothing was changed"):
        ours.carry_out(three, remembered(*three))
    assert (tmp_path / "a").read_bytes() == b"old" and not (tmp_path / "x").exists()
    assert ours.read() == Connected()


def test_a_failure_leaves_the_connection_that_there_was(
    three: list[Step], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Connections("codex", "user", tmp_path)
    ours.carry_out(three, remembered(*three))
    before = ours.read()
    failing(3, monkeypatch)
    again = [step(tmp_path / name, b"newer") for name in ("a", "x/y/b")]
    with pytest.raises(HerdrError, match="nothing was changed"):
        ours.carry_out(again, remembered(*again))
    assert [path.read_bytes() for path in (tmp_path / "a", tmp_path / "x/y/b")] == [b"new", b"new"]
    assert ours.read() == before


def test_what_cannot_be_put_back_is_named(
    three: list[Step], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, blocks: Iterable[bytes], *more: object) -> int:
        if path.name == "a" and b"".join(blocks) == b"old":
            raise OSError(5, "Input/output error", str(path))
        if path.name == "b":
            raise OSError(28, "No space left on device", str(path))
        return write_whole(path, [b"new"])

    monkeypatch.setattr(connections, "write_whole", write)
    with pytest.raises(HerdrError, match=f"could not be put back: {tmp_path / 'a'}"):
        Connections("codex", "user", tmp_path).carry_out(three, remembered(*three))


def test_a_file_that_its_program_writes_at_the_same_time_wins(three: list[Step], tmp_path: Path) -> None:
    (tmp_path / "x/z").mkdir(parents=True)
    (tmp_path / "x/z/c").write_bytes(b"just now")
    with pytest.raises(HerdrError, match="was changed at this moment"):
        Connections("codex", "user", tmp_path).carry_out(three, remembered(*three))
    assert (tmp_path / "a").read_bytes() == b"old" and (tmp_path / "x/z/c").read_bytes() == b"just now"


def test_mode_and_owner_stay_and_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(real, 12345, 54321)
    link.symlink_to("real")
    was = real.stat()
    one = step(link, b"new")
    Connections("codex", "user", tmp_path).carry_out([one], remembered(one))
    now = real.stat()
    assert link.is_symlink() and real.read_bytes() == b"new"
    assert (now.st_mode, now.st_uid, now.st_gid) == (was.st_mode, was.st_uid, was.st_gid)


def test_a_secret_is_nobody_elses_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    sync = os.fsync

    def watch(handle: int) -> None:
        seen.append(os.fstat(handle).st_mode & 0o777)
        sync(handle)

    monkeypatch.setattr(os, "fsync", watch)
    secret = tmp_path / "secret"
    secret.write_bytes(b"old")
    secret.chmod(0o600)
    one = step(secret, b"new")
    Connections("codex", "user", tmp_path).carry_out([one], remembered(one))
    assert seen == [0o600, 0o600]


def test_what_is_remembered_is_for_its_owner_alone_and_goes_at_the_end(
    three: list[Step], tmp_path: Path, state: Path
) -> None:
    ours = Connections("codex", "user", tmp_path)
    ours.carry_out(three, remembered(*three))
    (kept,) = (state / "herdr/connect").iterdir()
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert ours.read().token is True and [k.before for k in ours.read().files] == [b"old", None, None]
    assert Connections("codex", "project", tmp_path).read() == Connected()
    ours.carry_out([Step(s.path, s.then, s.now) for s in three], None)
    assert not kept.exists() and not (tmp_path / "x").exists()


def test_folders_that_were_there_or_hold_something_stay(tmp_path: Path) -> None:
    (tmp_path / "was").mkdir()
    steps = [step(tmp_path / "was/a", b"1"), step(tmp_path / "made/b", b"1"), step(tmp_path / "full/c", b"1")]
    ours = Connections("codex", "user", tmp_path)
    ours.carry_out(steps, remembered(*steps))
    (tmp_path / "full/mine").write_bytes(b"")
    ours.carry_out([Step(s.path, s.then, None) for s in steps], None)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "state") == ["full", "was"]


def test_damage_to_what_is_remembered_is_said(tmp_path: Path, state: Path, three: list[Step]) -> None:
    ours = Connections("codex", "user", tmp_path)
    ours.carry_out(three, remembered(*three))
    (kept,) = (state / "herdr/connect").iterdir()
    kept.write_bytes(b"[")
    with pytest.raises(HerdrError, match="is damaged"):
        ours.read()


def test_a_folder_in_place_of_a_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(HerdrError, match="Is a directory"):
        connections.read_file(str(tmp_path))
