"""Pure: what slots and shares a load needs, and whether it is possible at all.

Agents that call a model again and again are traffic in Erlang's sense: `concurrency` agents of which each
starts a call of s seconds every i seconds keep a = concurrency * s / i slots busy on average. Fewer slots than
that cannot do it, however they are scheduled. How long a call waits in c slots is the M/M/c queue's formula
(Erlang C, A. K. Erlang 1917): C(c, a) is the chance that all slots are busy, and the mean wait is
C(c, a) * s / (c - a). It takes calls that come at random and vary in length; calls in step and of one length
(D/D/c) do not wait at all while a <= c, so a real load lies between 0 and the formula.
"""

from collections.abc import Mapping
from math import floor

import msgspec

from herdr.pool.shares import parts

SLOTS_MAX = 1_000_000  # the formula walks through them one by one


class RoutePlan(msgspec.Struct, frozen=True):
    """What a route can count on."""

    part: int
    """Slots that it owns; of the other routes: that are left to them for certain."""
    calls_per_minute: float
    """What these slots can do."""
    agents: float
    """Agents of the planned kind that these slots can carry."""


class Plan(msgspec.Struct, frozen=True):
    """The answer to `plan`."""

    load: float
    """Slots that are busy on average (Erlang)."""
    slots: int
    slots_needed: int
    """The fewest slots with which the queue does not grow for ever when calls come at random."""
    possible: bool
    """Whether `slots` are that many."""
    utilisation: float
    """Load for each slot; 1 and above: the queue grows for ever."""
    wait_chance: float
    """How likely a call has to wait, from 0 to 1; 1 where it is not possible."""
    wait_s: float | None
    """Mean wait of all calls in seconds; None where it is not possible: it grows without end."""
    share_needed: float | None
    """The share that a route with this load needs for itself, 0 to 1; None: more than all but one slot."""
    concurrency_max: int
    """Agents of this kind that the slots can carry."""
    interval_min_s: float
    """The interval that these agents have to exceed with these slots."""
    routes: dict[str, RoutePlan]
    """Each owner of a share, and under `OTHERS` what is left to the rest."""


OTHERS = "(others)"


def plan(
    concurrency: int,
    seconds_per_call: float,
    interval_s: float,
    slots: int | None = None,
    shares: Mapping[str, float] | None = None,
) -> Plan:
    """Return what a load comes to on a number of slots; without one, on as many as it needs.

    `concurrency` agents each start a call of `seconds_per_call` every `interval_s` seconds. Raises ValueError
    unless all of them are above 0 and the load is below a million slots.
    """
    if min(concurrency, seconds_per_call, interval_s) <= 0 or (slots is not None and slots <= 0):
        raise ValueError("agents, seconds a call, interval and slots must all be above 0")
    load = concurrency * seconds_per_call / interval_s
    if max(load, slots or 0) >= SLOTS_MAX:
        raise ValueError(f"{load:g} busy slots are beyond what can be planned (under {SLOTS_MAX:,})")
    needed = floor(load) + 1
    slots = needed if slots is None else slots
    chance = erlang_c(slots, load)
    return Plan(
        load=load,
        slots=slots,
        slots_needed=needed,
        possible=slots >= needed,
        utilisation=load / slots,
        wait_chance=chance,
        wait_s=chance * seconds_per_call / (slots - load) if slots > load else None,
        share_needed=needed / slots if needed < slots else None,
        concurrency_max=_most(slots, seconds_per_call, interval_s),
        interval_min_s=concurrency * seconds_per_call / slots,
        routes=_routes(seconds_per_call, interval_s, slots, shares or {}),
    )


def erlang_c(slots: int, load: float) -> float:
    """Return the chance that a call has to wait, from 0 to 1; 1 where the load fills the slots.

    Through Erlang B by its recursion B(c) = a B(c-1) / (c + a B(c-1)), B(0) = 1, which has no factorials
    to overflow; then C = B / (1 - (a / c) (1 - B)).
    """
    if load >= slots:
        return 1.0
    blocked = 1.0
    for count in range(1, slots + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked / (1 - load / slots * (1 - blocked))


def _most(slots: int, seconds_per_call: float, interval_s: float) -> int:
    """Return how many agents stay below what the slots can do."""
    agents = floor(slots * interval_s / seconds_per_call)
    return agents if agents * seconds_per_call / interval_s < slots else agents - 1


def _routes(
    seconds_per_call: float, interval_s: float, slots: int, shares: Mapping[str, float]
) -> dict[str, RoutePlan]:
    owned = parts(slots, shares)
    counts = {**owned, OTHERS: slots - sum(owned.values())}
    return {
        route: RoutePlan(part, part * 60 / seconds_per_call, part * interval_s / seconds_per_call)
        for route, part in counts.items()
    }
