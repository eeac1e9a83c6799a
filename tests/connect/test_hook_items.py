"""Which hooks are ours: those that go to our address; a group that holds a person's hook stays."""

import json
from typing import Any

import pytest

from herdr.connect.hook_items import has_hook, is_ours, with_hook, without_hooks

AT = "http://127.0.0.1:8787/hooks/codex"
PATH = ("hooks", "Stop")
OURS: dict[str, Any] = {"hooks": [{"type": "command", "command": f"curl {AT} || true"}]}
MINE: dict[str, Any] = {"hooks": [{"type": "command", "command": "say done"}]}
MIXED: dict[str, Any] = {"hooks": [*MINE["hooks"], *OURS["hooks"]]}


def text_of(*groups: Any) -> str:
    return json.dumps({"hooks": {"Stop": list(groups)}}, indent=2)


def groups_of(text: str) -> Any:
    return json.loads(text)["hooks"]["Stop"]


@pytest.mark.parametrize(
    ("sent", "ours"),
    [
        ({"url": AT}, True),
        ({"command": f"curl -sf {AT} || true"}, True),
        ({"command": f"curl '{AT}'"}, True),
        ({"url": f"{AT}-2"}, False),
        ({"url": f"{AT}/x"}, False),
        ({"url": "http://127.0.0.1:3000/hooks/codex"}, False),  # another program's
        ({"command": "/home/me/hooks/codex"}, False),
        ({"command": f"x{AT}"}, False),
        ({"note": AT}, False),
        ({"hooks": []}, False),
        (AT, False),
    ],
)
def test_what_is_ours(sent: Any, ours: bool) -> None:
    assert is_ours(sent, AT) is ours


def test_one_is_added_behind_what_is_there_and_only_once() -> None:
    once = with_hook(text_of(MINE), PATH, OURS, AT)
    assert groups_of(once) == [MINE, OURS]
    assert with_hook(once, PATH, OURS, AT) == once
    assert has_hook(once, PATH, OURS, AT) and not has_hook(text_of(MINE), PATH, OURS, AT)


def test_an_older_one_is_replaced_where_it_is() -> None:
    older = {"matcher": "Edit", **OURS}
    assert groups_of(with_hook(text_of(older, MINE), PATH, OURS, AT)) == [OURS, MINE]
    assert not has_hook(text_of(OURS, older), PATH, OURS, AT)
    assert groups_of(with_hook(text_of(OURS, MINE, older), PATH, OURS, AT)) == [MINE, OURS]


def test_from_a_group_with_another_only_ours_is_taken() -> None:
    assert groups_of(without_hooks(text_of(MIXED, OURS), PATH, AT)) == [MINE]
    assert groups_of(with_hook(text_of(MIXED), PATH, OURS, AT)) == [MINE, OURS]
    assert not has_hook(text_of(MIXED, OURS), PATH, OURS, AT)
