from collections.abc import Mapping, Sequence

import pytest

from herdr.errors import InvalidInput
from herdr.web.auth import ANYONE
from herdr.web.mcp.agents import Who
from herdr.web.mcp.around import Workspaces, without_nothing

NOBODY = Who(ANYONE, None)


def watching(paths: Mapping[str, str], roots: Mapping[str, Sequence[str]] | None = None) -> Workspaces:
    return Workspaces(lambda: {name: (path, *(roots or {}).get(name, ())) for name, path in paths.items()})


def test_which_workspace_a_call_is_about() -> None:
    one, two = watching({"shop": "/w/shop"}), watching({"shop": "/w/shop", "docs": "/w/docs"})
    assert one.of(None, NOBODY) == "shop" and watching({}).of(None, NOBODY) == "default"
    assert two.of("docs", NOBODY) == "docs"
    assert two.of(None, Who(ANYONE, "x", "docs")) == "docs"
    with pytest.raises(InvalidInput, match="workspace: required: one of docs, shop"):
        two.of(None, NOBODY)


def test_paths_as_a_workspace_calls_them() -> None:
    known = watching({"shop": "/w/shop", "docs": "/w/docs"}, {"shop": ["/host/shop", "C:\\work\\shop"]})
    paths = ["/w/shop/a.py", "/host/shop/src/", "C:\\work\\shop\\b.py", "c.py", "/w/shop"]
    assert known.spots(None, NOBODY, paths) == ("shop", ["a.py", "src/", "b.py", "c.py", "./"])
    assert known.spots("shop", NOBODY, ["src/**/*.py"]) == ("shop", ["src/**/*.py"])
    assert known.spots(None, Who(ANYONE, "x", "docs"), ["/elsewhere/a.py"]) == ("docs", ["/elsewhere/a.py"])
    with pytest.raises(InvalidInput, match="lie in several workspaces: docs, shop"):
        known.spots(None, NOBODY, ["/w/shop/a.py", "/w/docs/a.md"])


def test_a_path_of_another_workspace_than_the_one_asked_for() -> None:
    known = watching({"shop": "/w/shop", "docs": "/w/docs"})
    with pytest.raises(InvalidInput, match="lie in docs, not in shop"):
        known.spots("shop", NOBODY, ["/w/docs/a.md"])


def test_the_workspace_that_a_folder_lies_in() -> None:
    known = watching({"shop": "/w/shop"}, {"shop": ["/host/shop"]})
    assert known.holding("/host/shop/src") == "shop"
    with pytest.raises(InvalidInput, match="herdr workspace add /elsewhere"):
        known.holding("/elsewhere")


def test_nothing_is_left_out_of_answers_but_nothing() -> None:
    value = {"a": None, "b": "", "c": [], "d": {"e": None, "f": 0}, "g": [{"h": None, "i": False}]}
    assert without_nothing(value) == {"d": {"f": 0}, "g": [{"i": False}]}
