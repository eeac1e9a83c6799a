"""`herdr serve`: run the gateway in the foreground until it is told to stop."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from herdr import __version__
from herdr.app import gateway
from herdr.bus.bus import Bus
from herdr.cli.container import container_peers
from herdr.cli.logs import set_up_logging
from herdr.clock import SystemClock
from herdr.config import Config, advice, load
from herdr.errors import StartupError
from herdr.reload import RoutesFile
from herdr.tuning import tune_process
from herdr.web.auth import LOOPBACK
from herdr.web.server import Deadlines, GatewayServer, server_config

_log = logging.getLogger("herdr")


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser("serve", help="run the gateway", description=__doc__)
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the configuration (default: none is needed)"
    )
    parser.add_argument("--host", metavar="H", help="address to listen on (default 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, metavar="P", help="port (default 8787); 0 takes a free one and prints it"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the log (default ./data)")
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="PATH",
        action="append",
        default=[],
        help="watch this folder; repeatable",
    )
    parser.add_argument(
        "--model", type=Path, metavar="GGUF", help="run this model with llama.cpp, as a child of the gateway"
    )
    parser.add_argument("--slots", type=int, metavar="N", help="slots of that model (default 4)")
    parser.add_argument("--context", type=int, metavar="N", help="tokens in each slot (default 8192)")
    parser.add_argument(
        "--ci",
        action="store_true",
        help="for CI: keep nothing that is said or stored, and remove the data folder at the end",
    )
    parser.add_argument(
        "--snapshot", type=Path, metavar="FILE", help="begin the project graph with this snapshot"
    )
    parser.add_argument(
        "--log-format", choices=["text", "json"], help="default: text on a terminal, else json"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code."""
    set_up_logging(args.log_format)
    with _data_folder(args):
        _run(args)
    return 0


@contextlib.contextmanager
def _data_folder(args: argparse.Namespace) -> Iterator[None]:
    """For CI without --data, use a folder that is removed at the end."""
    if not args.ci or args.data is not None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="herdr-ci-", ignore_cleanup_errors=True) as folder:
        args.data = Path(folder)
        yield


def _run(args: argparse.Namespace) -> None:
    loaded = load(args.config, os.environ, _flags(args))
    peers = check_exposure(loaded.config)
    for hint in advice(loaded.config):  # in the log only: /healthz is public
        _log.warning("%s", hint)
    tune_process()
    with contextlib.suppress(asyncio.CancelledError):  # told to stop while it was starting
        uvloop.run(_serve(loaded.config, loaded.path, args, peers))


def _flags(args: argparse.Namespace) -> dict[str, object]:
    return {
        "server.host": args.host,
        "server.port": args.port,
        "bus.persist_path": None if args.data is None else str(args.data / "events.db"),
        "models.local.model": None if args.model is None else str(args.model),
        "models.local.slots": args.slots,
        "models.local.context": args.context,
        "workspaces+": [{"path": str(path)} for path in _workspaces(args)] or None,
        "models.audit": "metadata" if args.ci else None,
    }


def _workspaces(args: argparse.Namespace) -> list[Path]:
    """Return the folders to watch; a snapshot without any is of the current one."""
    return args.workspace or ([Path.cwd()] if args.snapshot is not None and args.config is None else [])


def check_exposure(config: Config) -> frozenset[str] | None:
    """Return the only peers to answer (None: all); raises StartupError when nobody decided who may come in."""
    if config.auth.tokens or config.auth.open or config.server.host in ("127.0.0.1", "::1", "localhost"):
        return None
    peers = container_peers()
    if peers is None:
        raise StartupError(
            f"server.host is {config.server.host}, which others can reach, and there are no tokens: configure "
            "auth.tokens, listen on 127.0.0.1, or write auth.open: true if everyone may come in"
        )
    return LOOPBACK | peers


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises StartupError that names what holds the port."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise StartupError(
            f"server.host {host!r} is not an address of this machine: {error.strerror}"
        ) from None
    listener = socket.socket(family, kind, proto)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise StartupError(
            f"cannot listen on {host}:{port}: {error.strerror}; end what holds the port, or choose another with "
            "--port (0 takes a free one)"
        ) from None
    listener.listen(2048)
    listener.setblocking(False)
    return listener


async def _serve(
    config: Config,
    path: Path | None,
    args: argparse.Namespace,
    peers: frozenset[str] | None,
) -> None:
    warnings = _warnings(config, peers)
    _end_on_signals()
    clock = SystemClock()
    async with gateway(
        config,
        clock,
        peers_allowed=peers,
        warnings=warnings,
        environ=os.environ,
        snapshot=args.snapshot,
        read_only=args.ci,
    ) as parts:
        # After the data folder: who starts a second gateway should hear of that one first
        with listen(config.server.host, config.server.port) as listener:
            deadlines = Deadlines(config.server.header_timeout_s, config.server.body_timeout_s)
            web = server_config(parts.app, config.server.body_max_bytes)
            server = GatewayServer(
                web,
                deadlines,
                parts.streams.say_goodbye,
                lambda: _announce(config, parts.bus, listener, warnings),
            )
            routes = RoutesFile(path, lambda: load(path, os.environ, _flags(args)).config.routes, parts.bus)
            async with routes.watched():
                await server.serve(sockets=[listener])
    _log.info("stopped")


def _end_on_signals() -> None:
    """Stop cleanly while the gateway is still starting; once it listens, the server takes the signals over."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)


def _warnings(config: Config, peers: frozenset[str] | None) -> tuple[str, ...]:
    if peers is not None:
        return ("no tokens are configured: only this container's host is answered",)
    if (
        config.auth.open
        and not config.auth.tokens
        and config.server.host not in ("127.0.0.1", "::1", "localhost")
    ):
        return ("auth.open: everyone who reaches the port may publish, follow and change routes",)
    return ()


def _announce(config: Config, bus: Bus, listener: socket.socket, warnings: tuple[str, ...]) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    for warning in warnings:
        _log.warning("%s", warning)
    print(f"herdr {__version__} listens on http://{shown}:{port}", flush=True)
    folder = Path(config.bus.persist_path).parent.resolve()
    if bus.head:
        _log.info("data in %s: events %d to %d", folder, bus.log.first, bus.head)
    else:
        _log.info("data in %s: a new, empty log", folder)
    sys.stdout.flush()
