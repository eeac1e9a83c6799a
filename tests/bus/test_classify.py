import pytest

from herdr.bus.classify import RESERVED, class_of, default_lane, is_reserved, tags_of
from herdr.event import Lane


@pytest.mark.parametrize(
    ("type_", "class_", "lane", "tags"),
    [
        ("user.message", "user", Lane.P0, ("instruction",)),
        ("user.", "user", Lane.P0, ("instruction",)),
        ("users.listed", "tool", Lane.P1, ()),
        ("user", "tool", Lane.P1, ()),
        ("assistant.message", "tool", Lane.P1, ()),
        ("tool.result", "tool", Lane.P1, ()),
        ("tool.failed", "tool", Lane.P1, ("failure",)),
        ("change.applied", "tool", Lane.P1, ()),
        ("file.changed", "environment", Lane.P2, ("change",)),
        ("files.changed", "environment", Lane.P2, ("change",)),
        ("files.failed", "environment", Lane.P2, ("change", "failure")),
        ("filesystem.full", "tool", Lane.P1, ()),
        ("git.committed", "environment", Lane.P1, ("change",)),
        ("test.failed", "environment", Lane.P1, ("failure",)),
        ("test.failed.again", "environment", Lane.P1, ()),
        ("lint.error", "environment", Lane.P1, ("failure",)),
        ("index.updated", "environment", Lane.P2, ()),
        ("session.started", "tool", Lane.P2, ()),
    ],
)
def test_a_type_tells_class_lane_and_tags(type_: str, class_: str, lane: Lane, tags: tuple[str, ...]) -> None:
    assert (class_of(type_), default_lane(type_), tags_of(type_)) == (class_, lane, tags)


@pytest.mark.parametrize("start", RESERVED)
def test_the_gateways_own_types_are_reserved(start: str) -> None:
    assert is_reserved(start + "x")
    assert not is_reserved("my." + start + "x")
    assert not is_reserved(start.removesuffix(".") + "s.x")
