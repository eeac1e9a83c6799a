"""`herdr status`: ask a gateway how it is, and say it in words."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.terminal import counted, print_json, print_line, span

_EPILOG = """\
examples:
  herdr status
  herdr status --quiet || systemctl restart herdr

Exit codes: 0 ok or degraded, 1 failing, 3 the gateway cannot be reached.
"""
TIMEOUT_S = 4.0  # below the 5 s that the container's health check waits


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "status",
        help="how the gateway is",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing; the exit code tells")
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Print the state of the gateway; returns 1 when it is failing."""
    gateway = gateway_of(args, TIMEOUT_S)
    answer = gateway.ask("GET", "/healthz")
    report = answer.value
    if not isinstance(report, dict) or report.get("status") not in ("ok", "degraded", "failing"):
        raise gateway.problem(answer)
    if args.json:
        print_json(report)
    elif not args.quiet:
        for line in describe(report, args.url):
            print_line(line)
    return 1 if report["status"] == "failing" else 0


def describe(report: Mapping[str, Any], url: str) -> Iterator[str]:
    """Yield the lines that say what a `/healthz` body holds."""
    yield f"{report['status']}: herdr {report.get('version')} at {url}, up {span(report.get('uptime_s', 0))}"
    for reason in report.get("reasons", ()):
        yield f"  {reason}"
    connections, queue = report.get("connections", {}), report.get("queue_depth", {})
    yield f"connections  {connections.get('sse', 0)} over SSE, {connections.get('websocket', 0)} over WebSocket"
    lanes = ", ".join(f"{lane} {queue.get(lane, 0)}" for lane in ("P0", "P1", "P2"))
    yield f"queue        {queue.get('total', 0)} waiting ({lanes})"
    throughput = report.get("throughput", {})
    yield (
        f"throughput   {throughput.get('published_per_s', 0):g} published/s, "
        f"{throughput.get('delivered_per_s', 0):g} delivered/s"
    )
    yield f"dropped      {_dropped(report.get('dropped', {}))}"
    store = report.get("store", {})
    held = f"events {store.get('first')} to {store.get('head')}" if store.get("head") else "no events yet"
    yield f"store        {store.get('kind')}, {held}, {_size(store.get('bytes', 0))}, epoch {report.get('epoch')}"
    for name, workspace in report.get("workspaces", {}).items():
        said = [
            str(workspace.get("status")),
            counted(workspace.get("files", 0), "file"),
            workspace.get("note"),
        ]
        yield f"workspace    {name}: {', '.join(filter(None, said))}"


def _dropped(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n) or "nothing"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
