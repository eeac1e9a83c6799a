"""`herdr doctor`: look at all that may keep the gateway or its clients from working, and say how to mend it."""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args
from urllib.parse import urlsplit

from herdr.cli.checks import bundle, clients, folder, gateway, machine, processes, settings, stream
from herdr.cli.checks.finding import Finding, State, fail, ok, skip
from herdr.cli.checks.gateway import Heard
from herdr.cli.client import TOKEN_VARIABLE, Gateway, add_connection, gateway_of
from herdr.cli.container import in_container
from herdr.cli.terminal import has_colour, note, print_json, print_line
from herdr.clock import SystemClock
from herdr.config import Config, Loaded
from herdr.errors import HerdrError
from herdr.storage.sqlite.folder import LOCK_NAME

_EPILOG = """\
examples:
  herdr doctor
  herdr doctor --config herdr.yaml --data /var/lib/herdr
  herdr doctor --url https://herdr.example.com --json
  herdr doctor --bundle herdr-report.zip

Exit codes: 0 nothing fails, 1 something does. One event of the type doctor.probe is published.
"""
_WORDS: tuple[tuple[State, str], ...] = (
    ("ok", "well"),
    ("warn", "to look at"),
    ("fail", "failed"),
    ("skip", "not checked"),
)
_COLOURS = {"ok": "", "warn": "\x1b[33m", "fail": "\x1b[31m", "skip": "\x1b[2m"}
_CHECK_WIDTH = 13  # the longest name of a check, `configuration`


class Place(NamedTuple):
    """Where the gateway is, as far as we know."""

    local: bool
    """Whether the address in use is this machine's own."""
    process: processes.Process | None
    folder: Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "doctor",
        help="what is wrong, and how to mend it",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the gateway's configuration")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="its data folder (default: the running gateway's, if it can be seen)",
    )
    parser.add_argument(
        "--bundle", type=Path, metavar="FILE", help="write a report without secrets as a zip file"
    )
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Look, report, and return 1 when something fails."""
    reach = gateway_of(args, stream.WAIT_S)
    loaded, findings = settings.configuration(args.config, os.environ)
    heard, trouble = _heard(reach)
    place = _place(args, loaded)
    inside = in_container()
    config = loaded.config if loaded is not None else Config()
    findings += [*_machine(place, config, inside), *_files(loaded, args.url, place)]
    findings += [*_port(args.url, place, heard, trouble), *clients.clients(args.url, Path.home(), Path.cwd())]
    if heard is None:
        findings += _without_gateway(config, inside, trouble)
    else:
        findings += _at_gateway(reach, heard, config, inside, args.token)
    report = _report(findings, args.url)
    if args.bundle is not None:
        secrets = settings.known_secrets(loaded, os.environ, args.token)
        bundle.write_bundle(args.bundle, report, loaded, os.environ, _answers(reach, heard), secrets)
    if args.json:
        print_json(report)
    else:
        _print(findings)
        if args.bundle is not None:
            note(
                f"{args.bundle} holds this report, the configuration and what the gateway says of itself. Secrets "
                "are blanked as far as they are known or look like one: read it before you send it"
            )
    return 0 if report["ok"] else 1


def _heard(reach: Gateway) -> tuple[Heard | None, str]:
    """Return what the gateway says of itself, or why it says nothing."""
    try:
        return gateway.hear(reach, SystemClock().wall_us()), ""
    except HerdrError as error:
        return None, error.detail


def _place(args: argparse.Namespace, loaded: Loaded | None) -> Place:
    parts = urlsplit(args.url)
    local = parts.hostname in settings.LOOPBACK
    port = parts.port or (443 if parts.scheme == "https" else 80)
    process = processes.listener(port) if local else None
    opened = processes.open_file(process.pid, LOCK_NAME) if process is not None else None
    configured = Path((loaded.config if loaded is not None else Config()).bus.persist_path).parent
    return Place(local, process, args.data or (opened.parent if opened is not None else configured))


def _machine(place: Place, config: Config, inside: bool) -> Iterator[Finding]:
    pid = place.process.pid if place.process is not None else None
    yield machine.interpreter()
    yield machine.sqlite()
    yield machine.commands(os.environ.get("PATH", ""))
    yield machine.open_files(pid, config.server.max_connections)
    yield machine.inotify(len(config.workspaces))
    yield machine.proxies(os.environ)
    yield from machine.container(inside, settings.at_loopback(config.models.backends))
    if place.local:
        yield from folder.folder(place.folder)
        if inside and place.folder.exists():
            yield folder.volume(place.folder)
    else:
        yield skip("data folder", "the address in use is another machine's; run `herdr doctor` there too")


def _files(loaded: Loaded | None, url: str, place: Place) -> Iterator[Finding]:
    if loaded is None:
        return
    yield settings.secret_files(loaded)
    yield settings.exposure(loaded)
    if place.local:
        yield settings.allowed_host(loaded.config.server.allowed_hosts, url)


def _port(url: str, place: Place, heard: Heard | None, trouble: str) -> Iterator[Finding]:
    """Tell who listens at the address in use."""
    port = urlsplit(url).port
    if not place.local or port is None:
        return
    if heard is not None:
        yield ok("port", f"{port}: {place.process or 'the gateway, whose process cannot be seen from here'}")
    elif place.process is not None or processes.is_listening(port):
        who = place.process or "a process that only root may see"
        yield fail(
            "port",
            f"{port} is held by {who}: {trouble}",
            "end it, or choose another port (--port, and --url)",
        )
    else:
        yield ok("port", f"{port} is free")


def _without_gateway(config: Config, inside: bool, trouble: str) -> Iterator[Finding]:
    what, _, fix = trouble.partition(
        ": " if ": " in trouble else "; "
    )  # errors for people say what to do last
    yield fail("gateway", what, fix or "name the gateway's address with --url")
    yield from (skip(check, "no gateway answers") for check in ("clock", "token", "stream", "workspaces"))
    yield from settings.keys(config.models.backends, os.environ)
    yield from gateway.reach_backends(config.models.backends, inside)


def _at_gateway(
    reach: Gateway, heard: Heard, config: Config, inside: bool, token: str | None
) -> Iterator[Finding]:
    yield from gateway.state(heard)
    yield gateway.clock(heard)
    yield from gateway.token(reach, token, token == os.environ.get(TOKEN_VARIABLE))
    yield stream.stream(reach)
    yield from gateway.backends(heard, settings.at_loopback(config.models.backends), inside)
    yield from gateway.workspaces(reach, heard)


def _report(findings: Sequence[Finding], url: str) -> dict[str, Any]:
    counts = Counter(finding.state for finding in findings)
    return {
        "ok": not counts["fail"],
        "url": url,
        "counts": {state: counts[state] for state in get_args(State)},
        "checks": [finding._asdict() for finding in findings],
    }


def _answers(reach: Gateway, heard: Heard | None) -> dict[str, str]:
    """Return what the gateway says that belongs into a bundle."""
    if heard is None:
        return {}
    found = {"healthz.json": json.dumps(heard.health)}
    with suppress(HerdrError):
        found["metrics.txt"] = b"".join(reach.chunks("/metrics")).decode(errors="replace")
    return found


def _print(findings: Sequence[Finding]) -> None:
    coloured = has_colour(sys.stdout)
    for finding in findings:
        shown = f"{finding.state:<5} {finding.check:<{_CHECK_WIDTH}} {finding.detail}"
        print_line(shown, _COLOURS[finding.state] if coloured else "")
        if finding.fix:
            print_line(f"{'':<{_CHECK_WIDTH + 6}} → {finding.fix}")
    counts = Counter(finding.state for finding in findings)
    said = ", ".join(f"{counts[state]} {word}" for state, word in _WORDS if counts[state])
    print_line(said)
