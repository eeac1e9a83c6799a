"""`herdr exec`: run a command as it is, and publish what happened."""

import argparse
import os
import re
import shlex
from typing import Any

from herdr.cli.child import TAIL_MAX, Outcome, run_command
from herdr.cli.client import add_connection, gateway_of
from herdr.cli.reports import Report, read_reports
from herdr.cli.terminal import note
from herdr.clock import SystemClock
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr exec -- pytest -q
  herdr exec --source ci --workspace shop -- npm run lint

Publishes test.failed (pytest), lint.error (ruff, ESLint) or else tool.result. Output, signals and the exit code are
the command's own, whether or not the gateway is there. The command writes to pipes: for colours, tell it so
(--color=yes, FORCE_COLOR=1).
"""
COMMAND_MAX = 4096  # characters; xargs makes longer ones, which say no more
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "exec",
        help="run a command and publish what happened",
        description=__doc__,
        epilog=_EPILOG,
        usage="herdr exec [OPTIONS] -- COMMAND...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", default="exec", help="which tool this is (default: exec)")
    parser.add_argument("--subject", help="what it is about")
    parser.add_argument("--workspace", help="which project (default: default)")
    parser.add_argument("--session", help="conversation that it belongs to")
    parser.add_argument(
        "--timeout-publish",
        type=_seconds,
        default=5.0,
        metavar="S",
        help="seconds that a silent gateway may delay the end (default 5)",
    )
    add_connection(parser, as_json=False)
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command, after --")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, more than 0")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Run the command, publish, and return the command's exit code."""
    command = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not command:
        raise HerdrError("there is no command: herdr exec -- pytest -q", "usage")
    outcome = run_command(command, SystemClock())
    try:
        _publish(args, describe(command, outcome))
    except KeyboardInterrupt:
        note("not published: interrupted")
    except HerdrError as error:
        note(f"not published: {error.detail} (the command itself is not affected)")
    return outcome.exit_code


def describe(command: list[str], outcome: Outcome) -> list[dict[str, Any]]:
    """Return the events that tell of a command's end: one for each report, or `tool.result`."""
    text = _clean(outcome.tail)
    data: dict[str, Any] = {
        "command": shlex.join(command)[:COMMAND_MAX].encode("utf-8", "replace").decode(),
        "exit_code": outcome.exit_code,
        "duration_ms": round(outcome.duration_s * 1000),
        "output_tail": text.encode()[-TAIL_MAX:].decode(errors="ignore"),
    }
    if outcome.signal is not None:
        data["signal"] = outcome.signal
    reports = read_reports(_clean(outcome.stdout)) if outcome.exit_code else []
    if not reports:
        return [{"type": "tool.result", "data": data}]
    return [
        {"type": r.type, "data": {"tool": r.tool, **_with_short_paths(r).details, **data}} for r in reports
    ]


def _clean(output: bytes) -> str:
    """Return output as text without colours and with plain line ends."""
    return _ANSI.sub("", output.decode(errors="replace")).replace("\r\n", "\n")


def _with_short_paths(report: Report) -> Report:
    """Make paths below the working directory relative to it: absolute ones mean nothing elsewhere."""
    if "findings" not in report.details:
        return report
    here = os.path.join(os.getcwd(), "")
    findings = [{**f, "path": f["path"].removeprefix(here)} for f in report.details["findings"]]
    return report._replace(details={**report.details, "findings": findings})


def _publish(args: argparse.Namespace, events: list[dict[str, Any]]) -> None:
    common = {
        name: value
        for name in ("source", "subject", "workspace", "session")
        if (value := getattr(args, name)) is not None
    }
    answer = gateway_of(args, args.timeout_publish).call("POST", "/v1/events", [common | e for e in events])
    for receipt in answer["results"]:
        if receipt["status"] not in ("accepted", "duplicate", "deferred"):
            note(
                f"not stored: {receipt.get('reason') or receipt['status']} (the command itself is not affected)"
            )
