"""Pure: the parts that the clients' recipes share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from herdr.connect.edits import Edit

SERVER = "herdr"
"""What the MCP server and the model provider are called in the clients."""
TOKEN_ENV = "HERDR_GATEWAY_TOKEN"
HOOK_S = (
    10  # that a hook may take; it takes some milliseconds, and a gateway that hangs must not hang the tool
)
CURL_S = 5


class File(NamedTuple):
    """One file that connecting changes."""

    path: str
    """Below the folder that the recipe is for: the project, or the user's home."""
    edits: tuple[Edit, ...] = ()
    whole: str | None = None
    """Instead of edits: all that is in the file, which is ours alone."""
    others: tuple[str, ...] = ()
    """Other names of the file; the first one that exists is taken."""

    @property
    def is_toml(self) -> bool:
        """Whether it is TOML, not JSON."""
        return self.path.endswith(".toml")


class Wish(NamedTuple):
    """How a client is to be connected."""

    url: str
    """Of the gateway, without a slash at the end."""
    token: bool = False
    """Whether the gateway asks for one; it is never written, only the name of its variable."""
    model: bool = False
    """Whether the client should ask the gateway's models."""
    user: bool = False
    """For all of the user's projects, not for one."""


class Recipe(NamedTuple):
    """How one client is connected."""

    client: str
    title: str
    files: Mapping[str, Any]
    """`project`, `user` or both → a function of the wish that returns the files."""
    note: str = ""
    """What is left for the user to do."""


def curl(wish: Wish, client: str) -> str:
    """Return the command line of a hook: always the same for one address, since some clients ask to trust it anew.

    Whatever goes wrong, it prints nothing and the tool goes on.
    """
    header = f' -H "Authorization: Bearer ${TOKEN_ENV}"' if wish.token else ""
    return (
        f"curl -sf --max-time {CURL_S} -H 'Content-Type: application/json'{header} --data-binary @- "
        f"{wish.url}/hooks/{client} || true"
    )


def mark(client: str) -> str:
    """Return what a hook of ours has in it, whatever the gateway's address."""
    return f"/hooks/{client}"


def command_hooks(
    client: str, wish: Wish, events: Sequence[tuple[str, str | None]], *, timeout: float = HOOK_S
) -> Iterator[Edit]:
    """Yield the edits for hooks that run a command, in Claude Code's form; events with their matchers."""
    handler = {"type": "command", "command": curl(wish, client), "timeout": timeout}
    for event, matcher in events:
        group: dict[str, Any] = {"hooks": [handler]}
        if matcher is not None:
            group = {"matcher": matcher, **group}
        yield Edit("append", ("hooks", event), group, mark(client))
