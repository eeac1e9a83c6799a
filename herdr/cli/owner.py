"""Who we are to the lock table: a name, so that our own locks are not in our way."""

import getpass
import os
import socket

from herdr.cli.git import setting

OWNER_VARIABLE = "HERDR_OWNER"
OWNER_SETTING = "owner"


def named_owner(option: str | None) -> str | None:
    """Return the name that was given: as an option, in HERDR_OWNER, or in git's `herdr.owner`; None without one."""
    given = option or os.environ.get(OWNER_VARIABLE) or setting(OWNER_SETTING) or ""
    return given.strip() or None


def unique_owner() -> str:
    """Return a name that no other command has while this one runs: two runs of one user are two owners."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = f"uid{os.getuid()}"
    return f"{user[:40]}@{socket.gethostname()[:60]}:{os.getpid()}"  # the gateway takes 128 characters
