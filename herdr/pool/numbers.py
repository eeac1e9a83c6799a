"""Pure: what model calls add up to.

The buckets are those of OpenTelemetry's conventions for GenAI; to the ones for the first token some are added
for prompts that a local model evaluates for minutes.
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/
"""

from collections.abc import Sequence

from herdr.pool.records import CallRecord

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(30.0, 60.0, 120.0, 300.0),
)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)


class Histogram:
    """Counts of values by upper bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        place = next((i for i, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[place] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, int]]:
        """Return (upper bound, count of values up to it), the last bound being `+Inf`."""
        found, so_far = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            found.append((bound, so_far))
        return found


class Numbers:
    """Sums over all calls since the start."""

    def __init__(self) -> None:
        self.duration_s = Histogram(SECONDS)
        self.first_token_s = Histogram(FIRST_TOKEN_S)
        self.queue_s = Histogram(FIRST_TOKEN_S)
        self.input_tokens = Histogram(TOKENS)
        self.output_tokens = Histogram(TOKENS)
        self.cached_tokens = 0
        self.prompt_tokens = 0

    def add(self, record: CallRecord) -> None:
        """Add one call; one that never began to answer says nothing of tokens."""
        self.duration_s.add(record.total_ms / 1000)
        if record.queue_ms is not None:
            self.queue_s.add(record.queue_ms / 1000)
        if record.first_token_ms is None:
            return
        self.first_token_s.add(record.first_token_ms / 1000)
        self.input_tokens.add(record.prompt_tokens)
        self.output_tokens.add(record.output_tokens)
        self.prompt_tokens += record.prompt_tokens
        self.cached_tokens += record.cached_tokens
