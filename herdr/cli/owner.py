"""Who we are to the gateway: a name, so that our own locks are not in our way, and tasks know who has them."""

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


def lasting_owner(option: str | None, *, has_token: bool) -> str | None:
    """Return a name that later commands have too; None: the gateway has the token's name."""
    named = named_owner(option)
    return named if named is not None or has_token else _person()


def unique_owner() -> str:
    """Return a name that no other command has while this one runs: two runs of one user are two owners."""
    return f"{_person()}:{os.getpid()}"  # the gateway takes 128 characters


def _person() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = f"uid{os.getuid()}"
    return f"{user[:40]}@{socket.gethostname()[:60]}"
