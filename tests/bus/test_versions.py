import msgspec
import pytest
from msgspec import Raw

from herdr.bus import versions as module
from herdr.bus.versions import Version, Versions, content_hash, makes_version
from herdr.event import Draft


@pytest.mark.parametrize(
    ("type_", "subject", "answer"),
    [
        ("file.changed", "a", True),
        ("file.changed", None, False),
        ("change.applied", "a", True),
        ("change.x.y", "a", True),
        ("change.x", None, False),
        ("changes.x", "a", False),
        ("file.read", "a", False),
        ("file.changed.x", "a", False),
        ("files.changed", "a", False),
    ],
)
def test_only_changes_of_a_subject_make_versions(type_: str, subject: str | None, answer: bool) -> None:
    assert makes_version(Draft(type_, subject=subject)) is answer


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"hash":"abc","x":[{}]}', "abc"),
        (b'{"hash":null}', None),
        (b"{}", None),
        (b'{"hash":5}', None),
        (b'{"HASH":"abc"}', None),
        (b"null", None),
        (b'"hash"', None),
        (b"[]", None),
        (b'{"hash":"' + b"a" * 256 + b'"}', "a" * 256),
        (b'{"hash":"' + b"a" * 257 + b'"}', None),
        (b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}", None),
    ],
)
def test_the_hash_is_found_in_the_payload(data: bytes, found: str | None) -> None:
    assert content_hash(Draft("file.changed", data=Raw(data))) == found


def test_the_newest_version_counts_by_workspace() -> None:
    versions = Versions()
    assert versions.get("w", "a") is None
    versions.set("w", "a", Version(1, "x", 5))
    versions.set("v", "a", Version(2, "y", 6))
    versions.set("w", "a", Version(3, "z", 7, "h"))
    assert versions.get("w", "a") == Version(3, "z", 7, "h")
    assert versions.get("v", "a") == Version(2, "y", 6)
    assert len(versions) == 2


def test_the_subject_that_changed_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SUBJECTS_MAX", 2)
    versions = Versions()
    versions.set("w", "a", Version(1, "x", 5))
    versions.set("w", "b", Version(2, "x", 5))
    versions.set("w", "a", Version(3, "x", 5))
    versions.set("w", "c", Version(4, "x", 5))
    assert versions.get("w", "b") is None
    assert len(versions) == 2
    assert versions.take_forgotten() == [("w", "b")], "the store has to forget it too"
    assert versions.take_forgotten() == []


def test_what_is_stored_comes_back_in_the_order_of_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SUBJECTS_MAX", 2)
    stored = {
        f"w\0{name}": msgspec.json.encode(Version(seq, "x", 5))
        for name, seq in (("a", 3), ("b", 1), ("c", 2))
    }
    versions = Versions()
    versions.restore(stored)
    assert versions.get("w", "a") == Version(3, "x", 5)
    assert versions.take_forgotten() == [("w", "b")], "what was changed longest ago"


@pytest.mark.parametrize("version", [Version(1, "x", 5), Version(2**60, "ü", 7, "h")])
def test_a_version_is_stored_and_comes_back(version: Version) -> None:
    assert msgspec.json.decode(msgspec.json.encode(version), type=Version) == version
