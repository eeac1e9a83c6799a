"""Which project a command is about, and what its files are called there."""

import argparse
import os
from collections.abc import Callable, Sequence

from herdr.cli.client import Gateway, part_of
from herdr.cli.places import DEFAULT, places_of, spots_of

ANSWER_S = 30.0  # the gateway holds an answer for up to 10 s while the first index is built
LIMIT_DEFAULT, LIMIT_MAX = 100, 1000  # of lists, as the gateway has them
_ROOT = "."
_WHICH = "which project (default: the one that holds the current folder)"


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """Add `--workspace`."""
    parser.add_argument("--workspace", metavar="W", help=_WHICH)


def add_its_workspace(parser: argparse.ArgumentParser) -> None:
    """Add a workspace as what the command is about."""
    parser.add_argument("workspace", nargs="?", metavar="WORKSPACE", help=_WHICH)


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add `--limit`."""
    parser.add_argument(
        "--limit",
        type=whole(1, LIMIT_MAX),
        default=LIMIT_DEFAULT,
        metavar="N",
        help=f"at most so many (default {LIMIT_DEFAULT})",
    )


def workspace_of(gateway: Gateway, wanted: str | None) -> str:
    """Return the workspace that is wanted, else the innermost one that holds the current folder, else `default`."""
    if wanted:
        return wanted
    here = os.path.realpath(os.getcwd())
    spot = places_of(gateway, None, here).find(here)
    return spot.workspace if spot else DEFAULT


def paths_of(gateway: Gateway, wanted: str | None, paths: Sequence[str]) -> tuple[str, list[str]]:
    """Return the workspace and what paths from the current folder are called there; as `workspace_of` without any.

    Raises HerdrError (`usage`) for a path outside of every workspace.
    """
    if not paths:
        return workspace_of(gateway, wanted), []
    workspace, found = spots_of(gateway, wanted, paths)
    return workspace, [path.removeprefix("./").rstrip("/") or _ROOT for path in found]


def address(workspace: str, what: str = "") -> str:
    """Return where the gateway has a project's context."""
    return f"/v1/context/{part_of(workspace)}{what}"


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a type of arguments: whole numbers from one to another."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} to {high}")
        return int(text)

    return number
