"""Which project a command is about, and what its files are called there."""

import argparse
import os
from collections.abc import Callable, Sequence

from herdr.cli.client import Gateway, part_of
from herdr.cli.places import DEFAULT, places_of, spots_of

ANSWER_S = 30.0  # the gateway holds an answer for up to 10 s while the first index is built
_ROOT = "."


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """Add `--workspace`."""
    parser.add_argument(
        "--workspace", metavar="W", help="which project (default: the one that holds the current folder)"
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
