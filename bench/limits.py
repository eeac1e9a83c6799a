"""Which limit a run has hit: the gateway's event loop, the machine's cores, or neither."""

import os
import time

from bench.process import cpu_s, idle_s

FULL = 90.0  # per cent of a core from which on it counts as the limit; the rest is the kernel's to schedule

_LOOP = "of that its event loop"


class Watch:
    """How busy the gateway, its event loop and some other processes are, from now on."""

    def __init__(self, gateway: int, **others: int) -> None:
        self._began = time.monotonic()
        self._sources = {
            "gateway": (gateway, None),
            _LOOP: (gateway, gateway),  # asyncio runs in the main thread
            **{name: (pid, None) for name, pid in others.items()},
        }
        self._before = {name: cpu_s(*source) for name, source in self._sources.items()}
        self._idle_before = idle_s()

    def note(self) -> str:
        """Return what was used, in per cent of one core, and the limit that this amounts to."""
        elapsed = time.monotonic() - self._began
        used = {
            name: 100 * (cpu_s(*source) - self._before[name]) / elapsed
            for name, source in self._sources.items()
        }
        cores = os.cpu_count() or 1
        idle = 100 * (idle_s() - self._idle_before) / elapsed / cores
        parts = ", ".join(f"{name} {percent:.0f}%" for name, percent in used.items())
        return f"{parts} of a core; {cores} cores idle {idle:.0f}%; limit: {_limit(used, idle, cores)}"


def _limit(used: dict[str, float], idle: float, cores: int) -> str:
    loop = used[_LOOP]
    if loop >= FULL:
        return "the gateway's event loop, which is one core"
    if idle > 100 - FULL:
        return "neither the event loop nor the cores: someone waits for the disk or for the others"
    if sum(used.values()) - loop >= FULL * cores:
        return "the machine's cores, which publisher and readers share with the gateway"
    return "the machine's cores, of which programs outside this run took a part"
