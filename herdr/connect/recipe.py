"""Pure: the parts that the clients' recipes share."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from herdr.connect.edits import Edit

SERVER = "herdr"
"""What the MCP server and the model provider are called in the clients."""
TOKEN_ENV = "HERDR_GATEWAY_TOKEN"
HOOK_S = 10  # a hook takes some milliseconds, and a gateway that hangs must not hang the tool
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
    home: str = ""
    """The variable that names the user's folder for it, in place of the path's first folder."""

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


class Recipe(NamedTuple):
    """How one client is connected."""

    client: str
    title: str
    files: Mapping[str, Callable[[Wish], list[File]]]
    """By scope: `project`, `user` or both."""
    note: str
    """What is left for the user to do."""
    model: str = ""
    """What is left to do for its model; nothing: its models cannot be the gateway's."""


def address(wish: Wish, client: str) -> str:
    """Return where a client's hooks go, which tells ours from others."""
    return f"{wish.url}/hooks/{client}"


def curl(wish: Wish, client: str) -> str:
    """Return the command line of a hook: always the same for one address, since some clients ask to trust it anew.

    Whatever goes wrong, it prints nothing and the tool goes on.
    """
    header = f' -H "Authorization: Bearer ${TOKEN_ENV}"' if wish.token else ""
    return (
        f"curl -sf --max-time {CURL_S} -H 'Content-Type: application/json'{header} --data-binary @- "
        f"{shlex.quote(address(wish, client))} || true"
    )


def hook(wish: Wish, client: str, event: str, handler: Mapping[str, Any]) -> Edit:
    """Return the edit that adds a handler, or a group of handlers, to an event's list."""
    return Edit("hook", ("hooks", event), dict(handler), address(wish, client))


def grouped(
    wish: Wish, client: str, events: Sequence[tuple[str, str | None]], handler: Mapping[str, Any]
) -> Iterator[Edit]:
    """Yield the edits for a handler in Claude Code's form: a group an event, with the event's matcher."""
    for event, matcher in events:
        group: dict[str, Any] = {"hooks": [dict(handler)]}
        yield hook(wish, client, event, group if matcher is None else {"matcher": matcher, **group})


def command(wish: Wish, client: str, timeout: float = HOOK_S) -> dict[str, Any]:
    """Return a handler that runs curl."""
    return {"type": "command", "command": curl(wish, client), "timeout": timeout}
