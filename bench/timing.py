"""Steady rates, and percentiles."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence


async def paced(per_s: float, seconds: float) -> AsyncIterator[int]:
    """Count up at a steady rate. After a delay it catches up at once, so that a stall is not left out."""
    began = time.perf_counter()
    for number in range(round(per_s * seconds)):
        due = began + number / per_s
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        yield number


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which `percent` of all values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def spread_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the 99th percentile of some times, in milliseconds."""
    return {"p50": 1e3 * percentile(seconds, 50), "p99": 1e3 * percentile(seconds, 99)}
