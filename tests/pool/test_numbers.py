from itertools import pairwise
from typing import Any

import msgspec
import pytest
from model_records import RECORD

from herdr.pool.numbers import SECONDS, TOKENS, Histogram, Numbers


def numbers(**changes: Any) -> Numbers:
    found = Numbers()
    found.add(msgspec.structs.replace(RECORD, **changes))
    return found


def counted(histogram: Histogram) -> int:
    return histogram.cumulative()[-1][1]


@pytest.mark.parametrize(
    ("value", "first"), [(0, "1"), (1, "1"), (1.5, "2"), (2, "2"), (2.0001, "+Inf"), (99, "+Inf")]
)
def test_a_value_counts_from_the_first_bound_that_holds_it(value: float, first: str) -> None:
    histogram = Histogram((1, 2))
    histogram.add(value)
    assert next(bound for bound, count in histogram.cumulative() if count) == first
    assert histogram.cumulative()[-1] == ("+Inf", 1)
    assert histogram.total == value


def test_counts_add_up_over_the_bounds() -> None:
    histogram = Histogram((1, 2, 4))
    for value in (0.5, 1.5, 1.7, 3, 100):
        histogram.add(value)
    assert histogram.cumulative() == [("1", 1), ("2", 3), ("4", 4), ("+Inf", 5)]


@pytest.mark.parametrize("bounds", [SECONDS, TOKENS])
def test_the_bounds_are_those_of_the_conventions(bounds: tuple[float, ...]) -> None:
    assert len(bounds) in (12, 14)
    ratios = {round(b / a, 6) for a, b in pairwise(bounds)}
    assert ratios in ({2.0}, {4.0})


def test_a_whole_call() -> None:
    found = numbers()
    assert (found.duration_s.total, found.first_token_s.total, found.queue_s.total) == (2.5, 1.5, 0.02)
    assert (found.input_tokens.total, found.output_tokens.total) == (100, 7)
    assert (found.prompt_tokens, found.cached_tokens) == (100, 60)


def test_a_call_that_never_ran_has_a_duration_and_a_wait_and_no_tokens() -> None:
    found = numbers(queue_ms=None, first_token_ms=None)
    assert counted(found.duration_s) == 1
    assert counted(found.queue_s) == counted(found.first_token_s) == counted(found.input_tokens) == 0
    assert found.prompt_tokens == 0, "an estimate of what was never read is not counted"


def test_a_call_without_a_wait_is_a_wait_of_nothing() -> None:
    assert counted(numbers(queue_ms=0).queue_s) == 1
