import pytest

from herdr.bus import targets as module
from herdr.bus.targets import Targets, encode_target


def test_a_target_is_known_before_it_acknowledges() -> None:
    targets = Targets({})
    assert "a" not in targets
    assert targets.set("a", None) is None
    assert "a" in targets
    assert targets.positions("a") is None
    targets.set("a", (1, 2, 3))
    assert targets.positions("a") == (1, 2, 3)
    assert targets.positions("b") is None
    assert len(targets) == 1


def test_what_is_stored_comes_back() -> None:
    targets = Targets({"a": encode_target((1, 2, 3)), "b": encode_target(None)})
    assert targets.positions("a") == (1, 2, 3)
    assert "b" in targets
    assert targets.positions("b") is None


def test_the_one_that_acknowledged_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TARGETS_MAX", 2)
    targets = Targets({})
    targets.set("a", (1, 1, 1))
    targets.set("b", (1, 1, 1))
    targets.set("a", (2, 2, 2))
    assert targets.set("c", None) == "b"
    assert len(targets) == 2
    assert "b" not in targets
    assert targets.positions("a") == (2, 2, 2)


def test_made_up_names_push_out_each_other_and_no_place_of_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TARGETS_MAX", 3)
    targets = Targets({})
    targets.set("tool", (1, 1, 1))
    forgotten = [targets.set(f"junk-{n}", None) for n in range(6)]
    assert forgotten == [None, None, "junk-0", "junk-1", "junk-2", "junk-3"]
    assert targets.positions("tool") == (1, 1, 1)
    targets.set("junk-5", (2, 2, 2))
    assert (targets.positions("junk-5"), len(targets)) == ((2, 2, 2), 3)
