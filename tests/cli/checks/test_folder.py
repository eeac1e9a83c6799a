import fcntl
import os
from collections import namedtuple
from pathlib import Path

import pytest

from herdr.cli.checks import folder
from herdr.storage.sqlite.folder import UNSUITABLE

Usage = namedtuple("Usage", ["total", "used", "free"])


def found(path: Path, mounts: Path | None = None) -> dict[str, tuple[str, str]]:
    mounts = mounts or folder.MOUNTS
    return {one.check: (one.state, one.detail) for one in folder.folder(path, mounts)}


def mounted(path: Path, kind: str, root: str = "/", point: str | None = None) -> Path:
    """A table of mounts in which the folder's device has this type."""
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    table = path.parent / "mounts"
    table.write_text(
        f"1 0 0:1 / / rw - overlay none rw\n2 1 {number} {root} {point or path} rw - {kind} disk rw\n"
    )
    return table


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir(mode=0o700)
    return path


def test_a_sound_folder(data: Path) -> None:
    states = {check: state for check, (state, _) in found(data, mounted(data, "ext4")).items()}
    checks = ("file system", "data folder", "privacy", "disk space", "fsync", "lock")
    assert states == dict.fromkeys(checks, "ok")
    assert os.listdir(data) == []  # nothing is left behind


@pytest.mark.parametrize("kind", [*UNSUITABLE, "nfs4", "fuse.sshfs"])
def test_file_systems_on_which_the_log_breaks(data: Path, kind: str) -> None:
    state, detail = found(data, mounted(data, kind))["file system"]
    assert state == "fail" and kind in detail


def test_other_file_systems(data: Path) -> None:
    assert found(data, mounted(data, "tmpfs"))["file system"][0] == "warn"
    assert found(data, data / "none")["file system"][0] == "skip"


def test_a_folder_that_is_not_there_yet(data: Path) -> None:
    assert list(found(data / "a/b")) == ["data folder"]
    assert found(data / "a/b")["data folder"][0] == "ok"


def test_a_folder_that_is_not_ours(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder.os, "access", lambda path, mode: False)  # tests may run as root, who may all
    (one,) = (one for one in folder.folder(data) if one.check == "data folder")
    assert one.state == "fail" and f"chown -R {os.getuid()}:{os.getgid()} {data}" in one.fix
    assert "mode 0700" in one.detail


def test_a_log_that_others_may_read(data: Path) -> None:
    (data / "events.db").touch(0o644)
    data.chmod(0o700)
    assert found(data)["privacy"][0] == "ok"  # the folder keeps them out
    data.chmod(0o755)
    state, detail = found(data)["privacy"]
    assert state == "warn" and str(data / "events.db") in detail
    (data / "events.db").chmod(0o600)
    assert found(data)["privacy"][0] == "ok"


@pytest.mark.parametrize(("free", "state"), [(2**30, "ok"), (2**30 - 1, "warn"), (64 * 2**20 - 1, "fail")])
def test_space(data: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    monkeypatch.setattr(folder.shutil, "disk_usage", lambda path: Usage(2**40, 0, free))
    assert found(data)["disk space"][0] == state


def test_a_slow_disk(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_synced", lambda path: iter([0.001, 0.04, 0.05]))
    assert found(data)["fsync"] == (
        "warn", "median 40.0 ms, slowest 50.0 ms of 11: every receipt waits for one"
    )  # fmt: skip


def test_who_holds_the_lock(data: Path) -> None:
    assert found(data)["lock"][1].startswith("no gateway uses the folder")
    with (data / "herdr.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert found(data)["lock"][1].startswith(f"a gateway uses it: pid {os.getpid()} (")
        file.write("pid 7 on a-host")
        file.flush()
        assert found(data)["lock"][1] == "a gateway uses it: pid 7 on a-host"
    assert found(data)["lock"][1].startswith("no gateway uses the folder")


def test_volumes(data: Path) -> None:
    named = mounted(data, "ext4", "/var/lib/docker/volumes/herdr-data/_data")
    assert folder.volume(data, named).detail == f"a named volume at {data}"
    assert folder.volume(data / "sub", mounted(data, "ext4", "/home/me/data")).detail == f"mounted at {data}"
    beside = mounted(data, "ext4", point=f"{data}-beside")
    assert folder.volume(data, beside).state == "warn"
    assert folder.volume(data, data / "none").state == "skip"
    named.write_text("\n".join(reversed(mounted(data, "ext4").read_text().splitlines())))
    assert folder.volume(data, named).detail == f"mounted at {data}"
