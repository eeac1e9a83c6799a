"""`herdr restore`: put a backup in place of the log of a stopped gateway, under a new epoch."""

import argparse
from pathlib import Path

from herdr.cli.backup import add_place, log_path, print_summary
from herdr.cli.terminal import note
from herdr.clock import SystemClock
from herdr.errors import HerdrError
from herdr.ids import new_epoch
from herdr.storage.sqlite.backup import restore

_EPILOG = """\
example:
  herdr restore /backups/herdr-monday.db --data ./data --force

Stop the gateway first. Followers learn of the new epoch by an event herdr.gap when they come back.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "restore",
        help="put a backup in place",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a file that `herdr backup` made")
    add_place(parser)
    parser.add_argument(
        "--force", action="store_true", help="replace a log that holds events, and take a damaged backup too"
    )


def run(args: argparse.Namespace) -> int:
    """Restore; raises HerdrError when something would be lost and --force was not given."""
    if not args.file.exists():
        raise HerdrError(f"there is no file {args.file}: name one that `herdr backup` made")
    summary = restore(args.file, log_path(args), clock=SystemClock(), new_epoch=new_epoch, force=args.force)
    print_summary(summary, args.json)
    note(f"restored under the new epoch {summary.epoch}; start the gateway again")
    return 0
