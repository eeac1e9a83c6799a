"""The `herdr` command: finds the group, runs it, and turns what goes wrong into one clean message.

Exit codes: 0 done; 1 it failed; 2 the command line is wrong; 3 the gateway cannot be reached;
4 the gateway refused (a token is missing, wrong, or lacks a scope); 75 somebody else holds what was asked
for; 130 interrupted; 141 the reader of our output went away. Data goes to stdout, everything for people to
stderr.

A group is a module of `herdr.cli` with `add_parser(subparsers)` and `run(args) -> exit code`. Its errors
are HerdrErrors; `code` decides the exit code. Only the group at hand is imported: the gateway's own imports
take 0.3 s, which `status` as a container's health check, and `publish` in a loop, should not pay.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, NoReturn

from herdr import __version__
from herdr.config.problem import did_you_mean
from herdr.errors import HerdrError

GROUPS = (
    *("artifacts", "backup", "callers", "calls", "config", "connect", "doctor", "exec", "guard", "index"),
    *("lock", "locks", "map", "open", "pool", "publish", "redact", "restore", "routes", "run", "serve"),
    *("session", "snapshot", "status", "symbols", "tail", "task", "top", "workspace"),
)
"""The commands; each is the module of its name."""

FAILED, USAGE, UNREACHABLE, REFUSED, INTERRUPTED, READER_GONE = 1, 2, 3, 4, 130, 141
LOCKED = 75  # EX_TEMPFAIL of sysexits.h; a command run under a lock has the low numbers for itself
_EXIT_CODES: Mapping[str, int] = MappingProxyType(
    {
        "usage": USAGE,
        "unreachable": UNREACHABLE,
        **dict.fromkeys(("unauthorized", "forbidden", "missing_scope", "foreign_host"), REFUSED),
        **dict.fromkeys(("locked", "deadlock", "task_held", "no_task"), LOCKED),
    }
)
_EPILOG = (
    "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 the gateway cannot be reached, 4 it refused, 75 locked. "
    "Settings: HERDR_GATEWAY_*; clients read HERDR_GATEWAY_URL and HERDR_GATEWAY_TOKEN. "
    "`herdr help COMMAND` describes one command."
)
_HELP_COLUMN = 34  # where descriptions begin at most: all but a few options stand on one line with theirs
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


class Parser(argparse.ArgumentParser):
    """argparse, but it never guesses abbreviations and it names the nearest command or option."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["allow_abbrev"] = False
        look = kwargs.get("formatter_class", argparse.HelpFormatter)
        kwargs["formatter_class"] = partial(look, max_help_position=_HELP_COLUMN)
        super().__init__(*args, **kwargs)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown options here, where the options of the command at hand are known."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            hint = did_you_mean(rest[0].partition("=")[0], self._option_string_actions)
            kind = "option" if rest[0].startswith("-") else "argument"
            self.error(f"unknown {kind} {rest[0]}{hint}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            hint = did_you_mean(str(value), known) or f"; known are {', '.join(known)}"
            what = str(action.metavar or action.dest).lower()
            raise argparse.ArgumentError(None, f"unknown {what} {value!r}{hint}")

    def error(self, message: str) -> NoReturn:
        """Print one message and how to get help, and exit with the code for a wrong command line."""
        _complain(f"{message}\nTry `{self.prog} --help`.")
        sys.exit(USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()  # here, so that a reader that went away is noticed here
    except HerdrError as error:
        _complain(error.detail)
        return _EXIT_CODES.get(error.code, FAILED)
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it exits and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return FAILED
    return code


def _run(argv: Sequence[str]) -> int:
    if not argv:
        build_parser().print_help(sys.stderr)
        return USAGE
    if argv[0] == "help":
        argv = [*argv[1:2], "--help"]
    try:
        args = build_parser(argv[:1] if argv and argv[0] in GROUPS else GROUPS).parse_args(argv)
    except SystemExit as done:  # --help, --version, or a wrong command line; argparse has said so
        return done.code if isinstance(done.code, int) else 0
    code: int = import_module(f"herdr.cli.{args.command}").run(args)
    return code


def build_parser(groups: Sequence[str] = GROUPS) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of some of its groups."""
    parser = Parser(
        prog="herdr", description="One event bus for all of a project's AI tools.", epilog=_EPILOG
    )
    parser.add_argument("-V", "--version", action="version", version=f"herdr {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in groups:
        import_module(f"herdr.cli.{group}").add_parser(subparsers)
    return parser


def _complain(message: str) -> None:
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    print(f"{_RED}herdr:{_PLAIN} {message}" if colour else f"herdr: {message}", file=sys.stderr)
