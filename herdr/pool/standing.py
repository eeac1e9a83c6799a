"""Pure: the state of one backend's schedule, as `GET /v1/pool` shows it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from herdr.pool.shares import Shares
from herdr.pool.slots import NEVER, Slot


class SlotView(msgspec.Struct, frozen=True):
    """A slot, and who holds it."""

    slot: int
    state: Literal["free", "warm", "busy"]
    agent: str | None
    prefix: str | None
    route: str | None
    call: str | None
    cached_tokens: int
    """Of its last content; a free slot may still have some."""
    last_used_s_ago: float | None
    """None: never used."""


class ShareView(msgspec.Struct, frozen=True):
    """A route: slots that it owns, calls of it that run, slots that its conversations hold."""

    part: int
    running: int
    held: int


class Snapshot(msgspec.Struct, frozen=True):
    """One backend's slots, queue and shares at one moment."""

    slots: tuple[SlotView, ...]
    queue: dict[int, int]
    """Priority → calls that wait."""
    shares: dict[str, ShareView]
    paused_s: float
    """Seconds until the backend may be asked again; 0: now."""
    restores: bool
    """Whether evicted conversations are saved and restored."""


def slot_view(slot: Slot, now: float) -> SlotView:
    """Return a slot's state at monotonic `now`."""
    holder = slot.held_by
    return SlotView(
        slot=slot.number,
        state="busy" if slot.call is not None else "free" if holder is None else "warm",
        agent=None if holder is None else holder.agent,
        prefix=None if holder is None else holder.prefix,
        route=None if holder is None else slot.route,
        call=slot.call,
        cached_tokens=slot.tokens,
        last_used_s_ago=None if slot.used_at == NEVER else max(0.0, now - slot.used_at),
    )


def share_views(shares: Shares, held: Mapping[str, int]) -> dict[str, ShareView]:
    """Return every route that owns, runs or holds anything."""
    return {
        route: ShareView(shares.parts.get(route, 0), shares.running.get(route, 0), held.get(route, 0))
        for route in sorted({*shares.parts, *shares.running, *held})
    }
