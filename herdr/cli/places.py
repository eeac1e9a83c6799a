"""Where a file is for the gateway: which workspace it lies in, and what it is called there."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from herdr.cli.client import Gateway
from herdr.cli.git import setting, top_of
from herdr.errors import HerdrError

DEFAULT = "default"
"""The workspace of everything that no watched folder holds."""
RESOURCE = "git:"
"""Begins what is no file: `git:HEAD` and `git:index`."""


class Workspace(NamedTuple):
    """A workspace and its folder, under each path that it is known by."""

    name: str
    folders: tuple[str, ...]


class Spot(NamedTuple):
    """A path as the gateway knows it."""

    workspace: str
    path: str
    """Relative to the workspace's folder, which itself is `.`"""


class Places:
    """The workspaces that matter from one folder on, the `base`: a repository's top, or where we are.

    When no watched folder holds the base or lies in it, the base stands for the workspace `default`.
    """

    def __init__(self, workspaces: Iterable[Workspace], base: str, wanted: str | None = None) -> None:
        self.base = base
        self._known = [w for w in workspaces if wanted is None or w.name == wanted]
        near = any(_near(folder, base) for workspace in self._known for folder in workspace.folders)
        taken = wanted is None and any(w.name == DEFAULT for w in self._known)
        if not (near or taken):
            self._known.append(Workspace(wanted or DEFAULT, (base,)))

    def find(self, path: str) -> Spot | None:
        """Return where an absolute path lies: in the innermost workspace that holds it, or in none (None)."""
        best, inside = None, ""
        for workspace in self._known:
            for folder in workspace.folders:
                relative = _inside(path, folder)
                if relative is not None and (best is None or len(relative) < len(inside)):
                    best, inside = workspace.name, relative
        return None if best is None else Spot(best, inside or ".")

    def folders(self) -> dict[str, list[str]]:
        """Return the folders that hold the base or lie in it, by workspace."""
        near = {w.name: [f for f in w.folders if _near(f, self.base)] for w in self._known}
        return {name: folders for name, folders in near.items() if folders}


def _near(folder: str, base: str) -> bool:
    return _inside(base, folder) is not None or _inside(folder, base) is not None


def _inside(path: str, folder: str) -> str | None:
    """Return a path relative to a folder that holds it (nothing for the folder itself), or None."""
    if path == folder:
        return ""
    prefix = os.path.join(folder, "")
    return path[len(prefix) :] if path.startswith(prefix) else None


def places_of(gateway: Gateway, wanted: str | None, base: str) -> Places:
    """Ask the gateway for its workspaces. `wanted`, or git's `herdr.workspace`, is then the only one."""
    answer = gateway.call("GET", "/v1/workspaces")
    listed = answer.get("workspaces") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise gateway.stranger(200)
    return Places(map(_workspace, listed), base, wanted or setting("workspace"))


def _workspace(listed: Mapping[str, Any]) -> Workspace:
    folders = [listed.get("path"), *(listed.get("roots") or ())]
    return Workspace(str(listed.get("name")), tuple(os.path.realpath(f) for f in folders if f))


def spots_of(gateway: Gateway, wanted: str | None, paths: Sequence[str]) -> tuple[str, list[str]]:
    """Return the workspace that paths from the command line lie in, and what they are called there.

    Raises HerdrError (`usage`) for a path outside of all, and for paths of several.
    """
    here = os.getcwd()
    places = places_of(gateway, wanted, top_of() or here)
    spots = [_spot(places, os.path.join(here, p), p) for p in paths if not p.startswith(RESOURCE)]
    spots = spots or [_spot(places, here, ".")]
    workspaces = sorted({spot.workspace for spot in spots})
    if len(workspaces) > 1:
        raise HerdrError(
            f"the paths lie in several workspaces ({', '.join(workspaces)}): lock those of one at a time",
            "usage",
        )
    found = iter(spots)
    return workspaces[0], [p if p.startswith(RESOURCE) else next(found).path for p in paths]


def as_file(path: str) -> str:
    """Return a relative path so that it is read as one: `git:HEAD` may be a file, and `c:` no drive."""
    return f"./{path}" if ":" in path.partition("/")[0] else path


def _spot(places: Places, absolute: str, asked: str) -> Spot:
    straight = os.path.normpath(absolute)
    parent, name = os.path.split(straight)
    for path in (straight, os.path.join(os.path.realpath(parent), name)):
        if spot := places.find(path):
            whole = (
                spot.path + "/" if asked.endswith("/") else spot.path
            )  # the slash says: and all that is in it
            return Spot(spot.workspace, as_file(whole))
    raise HerdrError(
        f"{asked} lies in no watched workspace: see `herdr workspace list`, or name one with --workspace",
        "usage",
    )
