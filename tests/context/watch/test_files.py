import os
import socket
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from herdr.context.watch import files as module
from herdr.context.watch.changes import FileState
from herdr.context.watch.files import Absent, Files, presentable


class Clock:
    """A wall clock a minute after whatever was written just now."""

    def wall_us(self) -> int:
        return 2**53

    def monotonic(self) -> float:
        return 0.0


def files(root: Path, hash_bytes_max: int = 1000) -> Files:
    return Files(str(root), Clock(), Counter(), hash_bytes_max)


def test_a_regular_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    seen = os.lstat(tmp_path / "a")
    expected = FileState(3, seen.st_mtime_ns, seen.st_ino, "sha256:" + sha256(b"abc").hexdigest())
    assert files(tmp_path).look("a") == expected


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        look = files(tmp_path).look
        assert look("pipe") is Absent.SPECIAL
        assert look("socket") is Absent.SPECIAL
        assert look("folder") is Absent.FOLDER
        assert look("link") is Absent.SYMLINK
        assert look("none") is Absent.GONE
        assert look("n\0ul") is Absent.UNKNOWN


def test_nothing_is_read_through_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("secret")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "d").symlink_to(tmp_path / "outside")
    assert files(tmp_path / "root").look("d/a") is Absent.GONE


def test_a_pipe_that_takes_the_files_place_after_the_look_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    regular = os.lstat(tmp_path / "a")
    (tmp_path / "a").unlink()
    os.mkfifo(tmp_path / "a")
    monkeypatch.setattr(module, "_lstat", lambda full: regular)
    assert files(tmp_path).look("a") is Absent.SPECIAL


@pytest.mark.parametrize(("size", "hashed"), [(1000, True), (1001, False)])
def test_only_files_up_to_the_limit_are_hashed(tmp_path: Path, size: int, hashed: bool) -> None:
    (tmp_path / "a").write_bytes(b"x" * size)
    found = files(tmp_path).look("a")
    assert isinstance(found, FileState) and found.size == size and (found.hash is not None) is hashed


def test_a_file_that_grows_past_the_limit_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)
    digest, _seen, _steady = module._read(str(tmp_path / "a"), 10)
    assert digest is None


def change_while_reading(monkeypatch: pytest.MonkeyPatch, path: Path, times: int) -> None:
    original, left = module._digest, [times]

    def digest(fd: int, bytes_max: int) -> str | None:
        found = original(fd, bytes_max)
        if left[0]:
            left[0] -= 1
            with path.open("a") as more:
                more.write("more")
        return found

    monkeypatch.setattr(module, "_digest", digest)


def test_a_file_that_changes_while_it_is_read_is_read_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("abc")
    change_while_reading(monkeypatch, tmp_path / "a", times=1)
    found = files(tmp_path).look("a")
    assert isinstance(found, FileState) and found.hash == "sha256:" + sha256(b"abcmore").hexdigest()


def test_a_file_that_keeps_changing_has_no_hash_and_is_not_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("abc")
    change_while_reading(monkeypatch, tmp_path / "a", times=9)
    found = files(tmp_path).look("a")
    assert isinstance(found, FileState) and found.hash is None and not found.settled


def test_the_content_is_read_again_only_when_the_numbers_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("abc")
    known = files(tmp_path).look("a")
    assert isinstance(known, FileState)
    monkeypatch.setattr(module, "_read", lambda full, bytes_max: pytest.fail("was read"))
    assert files(tmp_path).check("a", known, hashing=True) is None
    monkeypatch.undo()
    (tmp_path / "a").write_text("abcd")
    assert files(tmp_path).check("a", known, hashing=True) == files(tmp_path).look("a")


def test_a_file_changed_within_one_tick_of_the_files_clock_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abc")
    seen = os.lstat(tmp_path / "a")
    hasty = FileState(3, seen.st_mtime_ns, seen.st_ino, "sha256:old", settled=False)
    assert files(tmp_path).check("a", hasty, hashing=True) == files(tmp_path).look("a")


@pytest.mark.parametrize(
    ("path", "shown"), [("a/ü b.py", True), ("a\nb", False), ("\x7f", False), (os.fsdecode(b"\xff"), False)]
)
def test_which_names_an_event_can_carry(path: str, shown: bool) -> None:
    assert presentable(path) is shown
