"""Whether the gateway runs in a container, and which address its host has there."""

import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

MARKERS = ("/.dockerenv", "/run/.containerenv")
ROUTES = Path("/proc/net/route")


def in_container(environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this is a container: by what Docker and Podman leave there, or our own image's word."""
    return environ.get("HERDR_IN_CONTAINER") == "1" or any(Path(marker).exists() for marker in MARKERS)


def container_peers(environ: Mapping[str, str] = os.environ, routes: Path = ROUTES) -> frozenset[str] | None:
    """Return the addresses under which a container sees its host; None outside a container.

    A port that is published on the host's loopback arrives from the container's default gateway.
    """
    if not in_container(environ):
        return None
    try:
        return default_gateways(routes.read_text())
    except OSError:
        return frozenset()


def default_gateways(table: str) -> frozenset[str]:
    """Return the default gateways in a `/proc/net/route` table (addresses are little-endian hex)."""
    found: set[str] = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000" and fields[2] != "00000000":
            address = socket.inet_ntoa(struct.pack("<L", int(fields[2], 16)))
            found.update((address, f"::ffff:{address}"))
    return frozenset(found)
