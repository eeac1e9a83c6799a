"""How long a cloud asks everybody to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.pool.protocols.retry_after import WAIT_MAX_S, retry_after

NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"Retry-After": "20"}, 20),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0),
        ({"retry-after-ms": "250", "retry-after": "20"}, 0.25),
        ({"retry-after": "99999999"}, WAIT_MAX_S),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e99"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "Wed, 99 Foo 2015"}, None),
        ({"anthropic-ratelimit-requests-reset": "2015-10-21T07:28:10Z"}, 10),
        ({"anthropic-ratelimit-requests-reset": "2015-10-21T09:28:10.25+02:00"}, 10.25),
        ({"anthropic-ratelimit-requests-reset": "2015-10-21T05:28:10-02:00"}, 10),
        ({"anthropic-ratelimit-requests-reset": "2015-10-21T12:58:10+05:30"}, 10),
        ({"anthropic-ratelimit-requests-reset": "2015-13-41T05:28:10Z"}, None),
        ({"anthropic-ratelimit-requests-reset": "tomorrow"}, None),
        ({"retry-after": "3", "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:10Z"}, 3),
        ({"x-ratelimit-reset-requests": "1m30s"}, 90),
        ({"x-ratelimit-reset-requests": "6ms"}, 0.006),
        ({"x-ratelimit-reset-tokens": "1h0m2.5s"}, 3602.5),
        ({"x-ratelimit-reset-tokens": "1d"}, 86_400),
        ({"x-ratelimit-reset-tokens": "12.5"}, 12.5),
        ({"x-ratelimit-reset-tokens": "1x"}, None),
    ],
)
def test_each_way_to_say_it(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after(headers, NOW) == (None if wait_s is None else pytest.approx(wait_s))


def test_of_several_limits_the_last_exhausted_one_counts() -> None:
    headers = {
        "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:05Z",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2015-10-21T07:28:20Z",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2015-10-21T07:29:00Z",
        "anthropic-ratelimit-output-tokens-remaining": "800",
    }
    assert retry_after(headers, NOW) == 20


def test_without_an_exhausted_limit_the_first_to_reset_counts() -> None:
    headers = {
        "x-ratelimit-reset-requests": "8s",
        "x-ratelimit-remaining-requests": "3",
        "x-ratelimit-reset-tokens": "2s",
        "x-ratelimit-remaining-tokens": "149",
    }
    assert retry_after(headers, NOW) == 2


NAMES = ["retry-after", "retry-after-ms", "anthropic-ratelimit-tokens-reset", "x-ratelimit-reset-tokens"]
WORDS = st.lists(
    st.sampled_from(["9", "99999", "-", ":", "T", "Z", "+", "ms", "Wed,", " ", "Oct", "GMT", "."]), max_size=9
).map("".join)


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=30) | WORDS), st.floats(0, 1e11))
def test_whatever_comes_gives_a_bounded_wait(headers: dict[str, str], now: float) -> None:
    wait_s = retry_after(headers, now)
    assert wait_s is None or 0 <= wait_s <= WAIT_MAX_S
