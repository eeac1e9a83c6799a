import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from model_records import RECORD
from prometheus_client.core import Metric
from scripted_backend import Desk, Scripted, desk, held, inquiry, until
from virtual_time import VirtualClock, run

from herdr.pool.failures import ModelError
from herdr.pool.numbers import Numbers
from herdr.web.model_numbers import ModelNumbers


class Recorded:
    """What was counted."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.outcomes: dict[str, int] = Counter()


def play(main: Callable[[Desk, ModelNumbers, Recorded], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        it = desk(clock, Scripted(clock, total=2), Scripted(clock, "cloud", 5, kind="openai"))
        recorded = Recorded()
        await it.open_up()
        await main(it, ModelNumbers(it.pool, recorded), recorded)
        await it.pool.stop()

    run(whole(), clock)


def values(metrics: Any, name: str) -> dict[tuple[str, ...], float]:
    """Samples of one family by their labels' values, or by `le`."""
    found: list[Metric] = [metric for metric in metrics if metric.name == name]
    assert len(found) == 1, f"{name}: {found}"
    return {
        (sample.name.removeprefix(name), *sample.labels.values()): sample.value for sample in found[0].samples
    }


def test_health_says_how_each_backend_is_and_no_address() -> None:
    async def main(it: Desk, numbers: ModelNumbers, _: Recorded) -> None:
        told = json.dumps(numbers.backends())
        assert numbers.backends() == [
            {"name": "local", "kind": "llamacpp", "state": "ready", "running": 0, "waiting": 0, "slots": 2},
            {"name": "cloud", "kind": "openai", "state": "ready", "running": 0, "waiting": 0, "slots": 5},
        ]
        away = ModelError("backend_unreachable", f"{it.backend.url} cannot be reached")
        it.backend.to_look.extend([away] * 9)
        await it.line._lookout.look()
        told += json.dumps([numbers.backends(), numbers.troubles])
        assert "unreachable" in told and numbers.troubles == ["the backend local is unreachable"]
        for backend in it.backends.values():
            assert backend.url not in told and f"{backend.name}.invalid" not in told

    play(main)


def test_what_runs_and_what_waits() -> None:
    async def main(it: Desk, numbers: ModelNumbers, _: Recorded) -> None:
        release = asyncio.Event()
        it.backend.to_say.extend([held(release)] * 2)
        asked = [asyncio.create_task(it.read(inquiry(f"Q{n}", f"agent {n}"))) for n in range(3)]
        await until(lambda: it.line.snapshot()["queue"]["total"] == 1)
        local, _cloud = numbers.backends()
        assert (local["running"], local["waiting"]) == (2, 1)
        metrics = list(numbers.metrics())
        assert values(metrics, "herdr_pool_waiting_calls")[("", "local")] == 1
        assert values(metrics, "herdr_pool_running_calls")[("", "local")] == 2
        slots = values(metrics, "herdr_pool_slots")
        assert (slots[("", "local", "busy")], slots[("", "local", "warm")]) == (2, 0)
        release.set()
        await asyncio.gather(*asked)
        slots = values(numbers.metrics(), "herdr_pool_slots")
        assert (slots[("", "local", "busy")], slots[("", "local", "warm")]) == (0, 2)

    play(main)


@pytest.mark.parametrize("state", ["ready", "paused", "unreachable"])
def test_readiness(state: str) -> None:
    async def main(it: Desk, numbers: ModelNumbers, _: Recorded) -> None:
        if state == "paused":
            it.line.pause(9.0)
        if state == "unreachable":
            it.backend.to_look.extend([ModelError("backend_unreachable", "gone")] * 9)
            await it.line._lookout.look()
        assert numbers.backends()[0]["state"] == state
        ready = values(numbers.metrics(), "herdr_pool_backend_ready")
        assert ready[("", "local")] == (state == "ready") and ready[("", "cloud")] == 1

    play(main)


def test_calls_tokens_and_times() -> None:
    async def main(it: Desk, numbers: ModelNumbers, recorded: Recorded) -> None:
        recorded.numbers.add(RECORD)
        recorded.outcomes.update({"ok": 3, "client_gone": 1})
        metrics = list(numbers.metrics())
        calls = values(metrics, "herdr_model_calls")
        assert (calls[("_total", "ok")], calls[("_total", "client_gone")]) == (3, 1)
        assert values(metrics, "herdr_model_prompt_tokens")[("_total",)] == 100
        assert values(metrics, "herdr_model_cached_tokens")[("_total",)] == 60
        duration = values(metrics, "gen_ai_client_operation_duration_seconds")
        assert (duration[("_bucket", "1.28")], duration[("_bucket", "2.56")]) == (0, 1)
        assert duration[("_sum",)] == 2.5 and duration[("_count",)] == 1
        first = values(metrics, "gen_ai_server_time_to_first_token_seconds")
        assert first[("_sum",)] == 1.5
        usage = values(metrics, "gen_ai_client_token_usage")
        assert (usage[("_sum", "input")], usage[("_sum", "output")]) == (100, 7)
        assert values(metrics, "herdr_model_queue_seconds")[("_sum",)] == 0.02

    play(main)
