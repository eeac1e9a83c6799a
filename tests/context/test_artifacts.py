"""Which artifacts go, and what kinds and times to live there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.context.artifacts import TTL_MAX_S, Used, check, surplus
from herdr.errors import InvalidInput

SIZES = st.lists(st.integers(0, 50), max_size=12)


def test_the_least_recently_used_go_and_no_more_than_needed():
    shelf = [Used(1, 10), Used(2, 20), Used(3, 30)]
    assert surplus(shelf, 60 + 40, 4, limit_bytes=100, count_max=9) == []
    assert surplus(shelf, 60 + 41, 4, limit_bytes=100, count_max=9) == [1]
    assert surplus(shelf, 60 + 60, 4, limit_bytes=100, count_max=9) == [1, 2]
    assert surplus(shelf, 60 + 100, 4, limit_bytes=100, count_max=9) == [1, 2, 3]
    assert surplus(shelf, 60, 4, limit_bytes=100, count_max=2) == [1, 2]


@given(SIZES, st.integers(0, 100), st.integers(0, 200), st.integers(1, 8))
def test_what_is_left_fits_and_one_less_would_not_do(sizes, size, limit, count_max):
    shelf = [Used(n, one) for n, one in enumerate(sizes)]
    going = surplus(shelf, sum(sizes) + size, len(sizes) + 1, limit, count_max)
    assert going == list(range(len(going))), "from the oldest on"

    def fits(gone: int) -> bool:
        return sum(sizes[gone:]) + size <= limit and len(sizes) - gone + 1 <= count_max

    assert fits(len(going)) or len(going) == len(sizes)
    assert not going or not fits(len(going) - 1)


@pytest.mark.parametrize("kind", ["patch", "log_digest", "error_analysis", "x", "a" * 64, "v2"])
def test_kinds(kind):
    check(kind, 1)
    check(kind, TTL_MAX_S)


@pytest.mark.parametrize("kind", ["", "Patch", "log-digest", "2x", "a" * 65, "patch\n", "é", "_x"])
def test_what_is_no_kind_is_refused_with_what_is(kind):
    with pytest.raises(InvalidInput, match="lower-case word"):
        check(kind, 1)


@pytest.mark.parametrize("ttl_s", [0, -1, TTL_MAX_S + 1])
def test_times_to_live_beyond_thirty_days_or_none_are_refused(ttl_s):
    with pytest.raises(InvalidInput, match=r"1 to 2592000 seconds"):
        check("patch", ttl_s)
