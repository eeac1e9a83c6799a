"""What the guard's hooks run: whether what is staged touches paths that others hold."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from herdr.cli.client import Gateway
from herdr.cli.git import git_dir_of, staged, top_of
from herdr.cli.holders import conflict_lines, owners_of
from herdr.cli.places import Places, as_file, places_of
from herdr.cli.terminal import counted, plain
from herdr.errors import HerdrError

TIMEOUT_S = 3.0  # for each answer; a commit should not hang on a gateway that does
PATHS_MAX = 256  # in one request, as the gateway takes them
SHOWN_MAX = 5  # paths that could not be checked, by name
OF_THE_COMMIT = ("git:HEAD", "git:index")
"""What a commit moves, beside files. Asked for as an intent: only who has it for itself is in the way."""
_NOT_A_PATH = frozenset({"bad_path", "invalid_request", "too_large"})


class Asked(NamedTuple):
    """One question: may these paths of a workspace be written?"""

    workspace: str
    paths: list[str]
    mode: str


class Verdict(NamedTuple):
    """What came out."""

    conflicts: list[Mapping[str, Any]]
    unchecked: list[str]
    """Paths that cannot be asked about, with the reason."""
    outside: int
    """How many paths lie in no watched workspace."""


def judge(gateway: Gateway, owner: str | None, wanted: str | None) -> Verdict:
    """Ask about everything that is staged; raises HerdrError when git or the gateway does not answer."""
    names = staged()
    top = top_of()
    if top is None:
        raise HerdrError("there is no working tree here", "git_failed")
    places = places_of(gateway, wanted, top)
    by_workspace, unchecked, outside = _sorted(places, names)
    questions = [*_about(by_workspace), *_about_git(places)]
    found = [c for question in questions for c in _ask(gateway, owner, question, unchecked)]
    held = [c for c in found if c.get("state") != "waiting"]
    once = {_key(c): c for c in reversed(held)}  # the first of its kind stays
    return Verdict(list(once.values())[::-1], unchecked, outside)


def _key(conflict: Mapping[str, Any]) -> tuple[Any, ...]:
    """Who switches the branch is in the way of HEAD and of the index; to say so once is enough."""
    asked = conflict.get("asked")
    return conflict.get("lock"), conflict.get("path"), "" if asked in OF_THE_COMMIT else asked


def _sorted(places: Places, names: Sequence[bytes]) -> tuple[dict[str, list[str]], list[str], int]:
    """Return the paths by workspace, those that have no name in it, and how many are outside of all."""
    by_workspace: dict[str, list[str]] = {}
    unchecked, outside = [], 0
    for raw in names:
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            unchecked.append(f"{os.fsdecode(raw)!r}: its name is not UTF-8")
            continue
        spot = places.find(f"{places.base}/{name}")
        if spot is None:
            outside += 1
        else:
            by_workspace.setdefault(spot.workspace, []).append(as_file(spot.path))
    return by_workspace, unchecked, outside


def _about(by_workspace: Mapping[str, list[str]]) -> Iterator[Asked]:
    for workspace, paths in by_workspace.items():
        for start in range(0, len(paths), PATHS_MAX):
            yield Asked(workspace, paths[start : start + PATHS_MAX], "write")


def _about_git(places: Places) -> Iterator[Asked]:
    """Yield the questions about this working tree's own HEAD and index, for the workspaces that mean them."""
    ours = git_dir_of(places.base)
    for workspace, folders in places.folders().items():
        if any(folder == places.base or (ours and git_dir_of(folder) == ours) for folder in folders):
            yield Asked(workspace, list(OF_THE_COMMIT), "intent")


def _ask(
    gateway: Gateway, owner: str | None, asked: Asked, unchecked: list[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the conflicts. A path that the gateway does not take is found by halving, and the others are checked."""
    body = {"workspace": asked.workspace, "paths": asked.paths, "mode": asked.mode}
    try:
        answer = gateway.call("POST", "/v1/locks/check", body | ({"owner": owner} if owner else {}))
    except HerdrError as error:
        if error.code not in _NOT_A_PATH:
            raise
        if len(asked.paths) == 1:
            if error.code != "bad_path":
                raise  # it is something else in the request
            unchecked.append(f"{asked.paths[0]}: {error.detail}")
            return
        middle = len(asked.paths) // 2
        for half in (asked.paths[:middle], asked.paths[middle:]):
            yield from _ask(gateway, owner, asked._replace(paths=half), unchecked)
        return
    conflicts = answer.get("conflicts") if isinstance(answer, dict) else None
    if not isinstance(conflicts, list):
        raise gateway.stranger(200)
    yield from conflicts


def refusal(verdict: Verdict, owner: str | None, now_us: int) -> str:
    """Return what to say to whoever commits."""
    who = owners_of(verdict.conflicts)
    lines = [
        "guard: refused, because others have locked what this touches:",
        *conflict_lines(verdict.conflicts, now_us),
        f"Wait, or ask {who} to let go (`herdr locks` shows who holds what); --no-verify commits all the same.",
    ]
    if owner is None:
        lines.append(
            "Nobody has said who you are, so every lock counts as somebody else's: set HERDR_OWNER, or "
            "`git config herdr.owner NAME`."
        )
    else:
        lines.append(f"You are {plain(owner)}.")
    return "\n".join(lines)


def unchecked_lines(verdict: Verdict) -> Iterator[str]:
    """Yield what could not be checked."""
    for text in verdict.unchecked[:SHOWN_MAX]:
        yield f"guard: not checked against locks: {text}"
    if len(verdict.unchecked) > SHOWN_MAX:
        yield f"guard: nor {counted(len(verdict.unchecked) - SHOWN_MAX, 'path')} more"
    if verdict.outside:
        yield (
            f"guard: {counted(verdict.outside, 'path')} not checked against locks: outside of the watched "
            "workspaces (see `herdr guard status`)"
        )
