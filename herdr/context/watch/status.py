"""What may be set for one workspace, and what it tells about itself."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from herdr.context.watch.files import HASH_BYTES_MAX

Status = Literal["starting", "watching", "sweeping", "lost"]


class Settings(NamedTuple):
    """What may be set per workspace."""

    exclude: Sequence[str] = ()
    """Absolute paths left out with all below them: the gateway's own data."""
    sweep_every_s: float = 300.0
    """Between two sweeps that nothing asked for: how long a lost notice can stay unnoticed."""
    force_polling: bool | None = None
    """For mounts without inotify (some container bind mounts, network disks)."""
    files_max: int = 500_000
    """About 250 bytes of memory each; files beyond it are counted and not followed."""
    hash_bytes_max: int = HASH_BYTES_MAX
    """Larger files are told apart by size and time, and their hash is null."""


class WatchState(msgspec.Struct, frozen=True):
    """One workspace's line in `/healthz`."""

    status: Status
    """`sweeping`: watches cannot be placed, `note` says why; changes are found some seconds late."""
    files: int
    folders: int
    ignored: int
    """Entries that the rules leave out; a folder counts once."""
    skipped: Mapping[str, int]
    """Entries not followed, by reason: name, symlink, special, unreadable, nested_repository, limit."""
    listing: Literal["git", "walk"]
    sweeps: int
    last_sweep_s: float
    restarts: int
    """How often the watches failed."""
    undelivered: int
    """Reports that the bus refused."""
    note: str | None


def status_of(lost: bool, ready: bool, failing: bool) -> Status:
    """Return the one word for it; a lost folder is the worst that can be said."""
    if lost:
        return "lost"
    if not ready:
        return "starting"
    return "sweeping" if failing else "watching"
