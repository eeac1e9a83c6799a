"""The container's entry point: makes /data writable, gives up root, and becomes the gateway.

`docker run -v $(pwd)/data:/data` mounts a folder that belongs to whoever made it. As root this program
hands it to the gateway's user and drops to that user; started with `--user` it only says what is missing.
"""

import os
import sys
from pathlib import Path

from herdr.cli.main import main
from herdr.config import load

UID = GID = 10001
DATA = Path("/data")
CONFIG = Path("/etc/herdr/config.yaml")
LISTEN = {"HERDR_GATEWAY_SERVER__HOST": "0.0.0.0"}  # the container's own network
PLACES = {"HERDR_GATEWAY_BUS__PERSIST_PATH": str(DATA / "events.db")}


def run() -> int:
    """Prepare, then run the command line; without a command, `serve`."""
    os.environ.setdefault("HERDR_IN_CONTAINER", "1")
    if os.geteuid() == 0:
        hand_over(DATA)
        os.setgroups([])
        os.setgid(GID)
        os.setuid(UID)
    arguments = sys.argv[1:] or ["serve"]
    if arguments == ["health"]:
        return main(["status", "--quiet", "--url", own_address()])
    if arguments[0].startswith("-"):
        arguments.insert(0, "serve")
    if arguments[0] == "serve":
        # The minimal file says `host: 127.0.0.1` or `./data`, which mean nothing in here
        os.environ.update(
            {name: value for name, value in (LISTEN | PLACES).items() if name not in os.environ}
        )
        if CONFIG.exists():
            arguments[1:1] = [
                "--config",
                str(CONFIG),
            ]  # first: of two the later counts, in whatever form it stands
    return main(arguments)


def own_address() -> str:
    """Return where the gateway of this container listens: the mounted configuration may name another port."""
    path = CONFIG if CONFIG.exists() else None
    return f"http://127.0.0.1:{load(path, os.environ).config.server.port}"


def hand_over(folder: Path) -> None:
    """Give the data folder, and what the gateway keeps in it, to the gateway's user where it is not so yet."""
    for path in (folder, *folder.glob("events.db*"), *folder.glob("herdr.lock")):
        try:
            if path.stat().st_uid != UID:
                os.chown(path, UID, GID, follow_symlinks=False)
        except OSError as error:
            print(f"herdr: cannot hand {path} to user {UID}: {error.strerror}", file=sys.stderr)
