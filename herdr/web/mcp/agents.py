"""Who the clients are: handles that `register` gives, kept across restarts.

Never the session of the protocol: newer clients have none, and the older ones lose theirs with every restart.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

from herdr.clock import Clock
from herdr.errors import HerdrError
from herdr.web.auth import ANYONE, Caller

KIND = "agent"
"""Under which the log keeps them."""

AGENTS_MAX = 1000  # the one that was used longest ago goes; it registers again
NAME_MAX = 128  # characters, as any owner's

Remember = Callable[[str, str, bytes | None], Awaitable[None]]

_encode = msgspec.json.Encoder().encode


class Agent(msgspec.Struct, frozen=True):
    """One client that has registered."""

    handle: str
    name: str
    caller: str
    """The name of the token that it came with; the handle goes with no other."""
    workspace: str | None = None
    session: str | None = None
    since_us: int = 0


_decode = msgspec.json.Decoder(Agent).decode


class Who(NamedTuple):
    """Who calls a tool."""

    caller: Caller
    name: str | None
    """None: somebody without a token who has not registered."""
    workspace: str | None = None
    session: str | None = None

    def named(self) -> str:
        """Return the name; raises HerdrError without one."""
        if self.name is None:
            raise HerdrError(
                "this needs to know who you are: call the tool `register` first, and pass the handle that it gives "
                "as `agent`",
                "no_agent",
            )
        return self.name


class Agents:
    """All clients that have registered."""

    def __init__(
        self, stored: Mapping[str, bytes], remember: Remember, new_handle: Callable[[], str], clock: Clock
    ) -> None:
        """`stored`: what the log has of KIND."""
        known = sorted(map(_decode, stored.values()), key=lambda agent: agent.since_us)
        self._agents = OrderedDict((agent.handle, agent) for agent in known)
        self._remember = remember
        self._new_handle = new_handle
        self._clock = clock

    def names(self) -> Collection[str]:
        """Return the names of those who have registered."""
        return {agent.name for agent in self._agents.values()}

    def find(self, handle: str | None, caller: Caller) -> Who:
        """Return who calls; raises HerdrError for a handle that is not the caller's."""
        if handle is None:
            return Who(caller, None if caller.name == ANYONE.name else caller.name)
        agent = self._agents.get(handle)
        if agent is None or agent.caller != caller.name:
            raise HerdrError(
                f"the agent handle {handle[:64]!r} is not known (any more); call the tool `register` again, and pass "
                "the handle that it gives",
                "unknown_agent",
            )
        self._agents.move_to_end(handle)
        return Who(caller, agent.name, agent.workspace, agent.session)

    async def register(self, caller: Caller, name: str, workspace: str | None, session: str | None) -> Agent:
        """Return the agent of a name, committed; raises LogUnavailable.

        A name with a slash is one agent's own, however often it registers. Without one it is a tool's, of which
        two windows may be open, so each gets a name of its own.
        """
        known = next((a for a in self._agents.values() if (a.name, a.caller) == (name, caller.name)), None)
        if known is not None:
            handle = known.handle
            workspace, session = workspace or known.workspace, session or known.session
        else:
            handle = self._new_handle()
            name = name if "/" in name else f"{name[: NAME_MAX - 5]}/{handle[:4]}"
        agent = Agent(handle, name, caller.name, workspace, session, self._clock.wall_us())
        await self._remember(KIND, handle, _encode(agent))
        self._agents[handle] = agent
        self._agents.move_to_end(handle)
        while len(self._agents) > AGENTS_MAX:
            oldest, _ = self._agents.popitem(last=False)
            await self._remember(KIND, oldest, None)
        return agent
