"""The pool's numbers for `/healthz` and `/metrics`; OpenTelemetry's names for them stand here and nowhere else."""

from collections.abc import Iterable
from typing import Any, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from herdr.pool.numbers import Histogram, Numbers
from herdr.pool.pool import Pool

SLOT_STATES = ("free", "warm", "busy")


class Recorded(Protocol):
    """What has been counted of finished calls."""

    numbers: Numbers

    @property
    def outcomes(self) -> dict[str, int]:
        """Calls since the start by `ok` or the code of their failure."""
        ...


class ModelNumbers:
    """Reads the pool and its records when somebody asks; nothing is counted for that while calls run."""

    def __init__(self, pool: Pool, recorded: Recorded) -> None:
        self._pool = pool
        self._recorded = recorded

    def backends(self) -> list[dict[str, Any]]:
        """Return what `/healthz`, which everybody may read, says of each backend: no address and no agent."""
        return [
            {
                "name": seen["name"],
                "kind": seen["kind"],
                "state": seen["state"],
                "running": seen["running"],
                "waiting": seen["queue"]["total"],
                "slots": len(seen["slots"]) or seen["concurrency"],
            }
            for seen in self._pool.snapshot()["backends"]
        ]

    @property
    def troubles(self) -> list[str]:
        """Why backends take no calls now."""
        return self._pool.troubles

    def metrics(self) -> Iterable[Metric]:
        """Return the metric families."""
        yield from self._backend_metrics()
        yield from self._call_metrics()
        yield from self._genai_metrics()

    def _backend_metrics(self) -> Iterable[Metric]:
        waiting = GaugeMetricFamily("herdr_pool_waiting_calls", "Calls that wait.", labels=["backend"])
        running = GaugeMetricFamily("herdr_pool_running_calls", "Calls that run.", labels=["backend"])
        slots = GaugeMetricFamily("herdr_pool_slots", "KV slots by state.", labels=["backend", "state"])
        ready = GaugeMetricFamily("herdr_pool_backend_ready", "1 while it takes calls.", labels=["backend"])
        for seen in self._pool.snapshot()["backends"]:
            name = seen["name"]
            waiting.add_metric([name], seen["queue"]["total"])
            running.add_metric([name], seen["running"])
            ready.add_metric([name], int(seen["state"] == "ready"))
            for state in SLOT_STATES:
                slots.add_metric([name, state], sum(slot["state"] == state for slot in seen["slots"]))
        return waiting, running, slots, ready

    def _call_metrics(self) -> Iterable[Metric]:
        numbers = self._recorded.numbers
        calls = CounterMetricFamily("herdr_model_calls", "Calls that ended, by outcome.", labels=["outcome"])
        for outcome, count in sorted(self._recorded.outcomes.items()):
            calls.add_metric([outcome], count)
        yield calls
        yield CounterMetricFamily("herdr_model_prompt_tokens", "Tokens of prompts.", numbers.prompt_tokens)
        yield CounterMetricFamily(
            "herdr_model_cached_tokens", "Tokens of prompts that were reused.", numbers.cached_tokens
        )
        yield _histogram(
            HistogramMetricFamily("herdr_model_queue_seconds", "Time that calls waited for a slot."),
            numbers.queue_s,
        )

    def _genai_metrics(self) -> Iterable[Metric]:
        numbers = self._recorded.numbers
        yield _histogram(
            HistogramMetricFamily("gen_ai_client_operation_duration_seconds", "Whole time of a call."),
            numbers.duration_s,
        )
        yield _histogram(
            HistogramMetricFamily("gen_ai_server_time_to_first_token_seconds", "Time to the first token."),
            numbers.first_token_s,
        )
        usage = HistogramMetricFamily(
            "gen_ai_client_token_usage", "Tokens of a call.", labels=["gen_ai_token_type"]
        )
        usage.add_metric(["input"], numbers.input_tokens.cumulative(), numbers.input_tokens.total)
        usage.add_metric(["output"], numbers.output_tokens.cumulative(), numbers.output_tokens.total)
        yield usage


def _histogram(family: HistogramMetricFamily, values: Histogram) -> Metric:
    family.add_metric([], values.cumulative(), values.total)
    return family
