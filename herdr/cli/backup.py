"""`herdr backup`: copy the log of a data folder, also while a gateway writes to it, and verify the copy."""

import argparse
import os
from pathlib import Path

import msgspec

from herdr.cli.terminal import note, print_json, print_line
from herdr.config import load
from herdr.errors import HerdrError
from herdr.storage.sqlite.backup import Summary, backup

_EPILOG = """\
examples:
  herdr backup /backups/herdr-monday.db --data ./data
  herdr backup /backups/herdr-monday.db --config herdr.yaml

It works on the files, so run it on the machine of the gateway, as a user who may read its data folder.
"""
LOG_NAME = "events.db"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "backup",
        help="copy and verify the log",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the new file; never overwrites one")
    add_place(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the log is."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--data", type=Path, metavar="DIR", help=f"the data folder, which holds {LOG_NAME}")
    place.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the gateway's configuration, which names the log (default: as `herdr serve` would find it)",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def log_path(args: argparse.Namespace) -> Path:
    """Return the log's file that a command line means."""
    if args.data is not None:
        folder: Path = args.data
        return folder / LOG_NAME
    return Path(load(args.config, os.environ).config.bus.persist_path)


def run(args: argparse.Namespace) -> int:
    """Make the copy; returns 1 when the log, and so the copy, is damaged."""
    source = log_path(args)
    if not source.exists():
        raise HerdrError(
            f"there is no log at {source}: name its folder with --data, or the gateway's --config"
        )
    summary = backup(source, args.file)
    print_summary(summary, args.json)
    if summary.problems:
        note(
            f"the log is damaged: {args.file} holds what can be read; restore an older backup if there is one"
        )
    return 1 if summary.problems else 0


def print_summary(summary: Summary, as_json: bool) -> None:
    """Print what a verified file holds."""
    if as_json:
        print_json(msgspec.to_builtins(summary))
        return
    events = (
        f"{summary.events} events, seq {summary.first} to {summary.head}" if summary.events else "no events"
    )
    sound = "; ".join(summary.problems) if summary.problems else "verified: every event is whole"
    for line in (
        f"file      {summary.path} ({summary.bytes} bytes)",
        f"holds     {events}",
        f"epoch     {summary.epoch}, schema {summary.schema}",
        f"state     {sound}",
    ):
        print_line(line)
