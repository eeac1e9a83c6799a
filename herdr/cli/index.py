"""`herdr index`: have the gateway compare its graph of a project with the folder, and follow it."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from herdr.cli.client import Gateway, add_connection, gateway_of
from herdr.cli.listing import cells, cut, many, number, print_rows, size, width_of
from herdr.cli.project import ANSWER_S, add_its_workspace, address, workspace_of
from herdr.cli.terminal import plain, print_json, print_line
from herdr.clock import SystemClock
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr index
  herdr index shop --fresh
  herdr index --json | jq .graph.skipped

The gateway does this by itself; the command is for a first look, and for doubts. Exit code 1 if it failed.
"""
EVERY_S = 0.2  # between two looks: a bar that moves, at a cost of a few requests a second
SKIPPED_SHOWN = 20  # named; the rest is counted
BAR = 24  # characters
_ERASE = "\r\x1b[K"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "index",
        help="index a project, and see what was skipped",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_its_workspace(parser)
    parser.add_argument("--fresh", action="store_true", help="parse every file anew")
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Index, and say what came of it; returns 1 when it failed."""
    gateway, clock = gateway_of(args, ANSWER_S), SystemClock()
    where = address(workspace_of(gateway, args.workspace))
    since = clock.monotonic()
    begun = gateway.object(gateway.call("POST", f"{where}/index", {"fresh": args.fresh}))
    manifest, rate = _follow(gateway, where, begun)
    took_s = clock.monotonic() - since
    graph = gateway.object(manifest.get("graph"))
    if args.json:
        print_json(manifest)
    elif graph.get("state") == "ready":
        for line in describe(manifest, took_s, rate):
            print_line(line)
        _print_tables(gateway, where, graph)
    if graph.get("state") != "ready":
        raise HerdrError(_failure(manifest))
    return 0


def _follow(gateway: Gateway, where: str, begun: Mapping[str, Any]) -> tuple[Mapping[str, Any], float | None]:
    """Look until it is no longer being indexed; returns the manifest, and the newest rate in files/s."""
    bar, rate, manifest = Bar(), None, begun
    try:
        while True:
            graph = gateway.object(manifest.get("graph"))
            progress = graph.get("progress") or {}
            rate = progress.get("files_per_s") or rate
            if _is_busy(graph):
                bar.show(progress)
                time.sleep(EVERY_S)
            elif manifest is not begun:
                return manifest, rate
            manifest = gateway.read(where)
    finally:
        bar.clear()


def _is_busy(graph: Mapping[str, Any]) -> bool:
    """Tell whether there is more to come: a graph that is ready may still take in changes."""
    return graph.get("state") == "indexing" or bool(graph.get("state") == "ready" and graph.get("progress"))


class Bar:
    """A line at the terminal that is drawn again and again; none where there is no terminal."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, progress: Mapping[str, Any]) -> None:
        """Draw how far it is."""
        if self._live:
            sys.stderr.write(_ERASE + cut(bar_line(progress), width_of(sys.stderr) - 1))
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._live:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def bar_line(progress: Mapping[str, Any]) -> str:
    """Return a bar with the numbers before it, so that a narrow terminal cuts the bar."""
    done, total, rate = (progress.get(name) or 0 for name in ("done", "total", "files_per_s"))
    if not total:
        return "indexing: looking for files"
    filled = min(BAR, int(BAR * done / total))
    said = f"indexing {number(done)}/{number(total)} files, {number(rate)} files/s"
    return f"{said}  [{'#' * filled}{'-' * (BAR - filled)}]"


def describe(manifest: Mapping[str, Any], took_s: float, rate: float | None) -> Iterator[str]:
    """Yield the lines that say what was indexed, without tables."""
    graph = manifest.get("graph") or {}
    speed = f" ({number(rate)} files/s)" if rate else ""
    yield f"{manifest.get('workspace')}: {many(graph.get('files'), 'file')} in {took_s:.1f} s{speed}"
    found = ("parsed", "symbols", "calls", "imports")
    yield "  " + ", ".join(f"{number(graph.get(name))} {name}" for name in found)


def _print_tables(gateway: Gateway, where: str, graph: Mapping[str, Any]) -> None:
    languages = sorted((graph.get("languages") or {}).items(), key=lambda one: -(one[1].get("files") or 0))
    if languages:
        counts = ([name, number(one.get("files")), number(one.get("symbols"))] for name, one in languages)
        print_line("")
        print_rows(("language", "files", "symbols"), counts)
    if reasons := graph.get("skipped"):
        shown = gateway.read(f"{where}/graph/skipped", {"limit": SKIPPED_SHOWN})
        print_line("")
        print_line("skipped: " + ", ".join(f"{number(count)} {reason}" for reason, count in reasons.items()))
        files = (
            [*cells(file, "path", "reason"), size(file.get("bytes"))] for file in shown.get("skipped") or ()
        )
        print_rows(("file", "reason", "size"), files)
        if more := shown.get("more"):
            print_line(f"… and {number(more)} more")


def _failure(manifest: Mapping[str, Any]) -> str:
    graph = manifest.get("graph") or {}
    reasons = {
        "lost": "its folder is away",
        "none": "it has no graph: `herdr workspace add PATH` has the gateway watch a folder",
        "failed": "the index failed",
    }
    state = str(graph.get("state"))
    detail = graph.get("detail")
    return plain(
        f"{manifest.get('workspace')} is not indexed: {reasons.get(state, state)}"
        + (f" ({detail})" if detail else "")
    )
