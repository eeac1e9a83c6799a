import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.ids import UlidFactory, new_epoch

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class SetClock:
    """A wall clock that shows what the test says."""

    def __init__(self, wall_us: int = 0) -> None:
        self.now_us = wall_us

    def wall_us(self) -> int:
        return self.now_us

    def monotonic(self) -> float:
        raise AssertionError("ids need no monotonic clock")


def value(ulid: str) -> int:
    number = 0
    for character in ulid:
        number = number * 32 + CROCKFORD.index(character)
    return number


def drawn(random: int) -> Callable[[int], int]:
    """A random source that gives out the bits of one number of 79 bits, the high ones first."""
    left = 79

    def random_bits(bits: int) -> int:
        nonlocal left
        left = (left or 79) - bits
        return random >> left & (1 << bits) - 1

    return random_bits


@pytest.mark.parametrize(
    ("millisecond", "random", "ulid"),
    [
        (1469918176385, 0, "01ARYZ6S41" + "0" * 16),  # the time of the example in the ULID specification
        (0, 1, "0" * 25 + "1"),
        (2**48 - 1, 2**79 - 1, "7ZZZZZZZZZ" + "Z" * 12 + "FZZZ"),  # one bit stays free for counting
        (1, 32**14, "0000000001" + "0" + "2" + "0" * 14),
    ],
)
def test_known_ulids(millisecond: int, random: int, ulid: str) -> None:
    new_id = UlidFactory(SetClock(millisecond * 1000 + 999), drawn(random))
    assert new_id() == ulid


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**79 - 1))
def test_time_and_random_are_both_in_it(millisecond: int, random: int) -> None:
    ulid = UlidFactory(SetClock(millisecond * 1000), drawn(random))()
    assert ULID.fullmatch(ulid)
    high, low = divmod(random, 2**19)
    assert divmod(value(ulid), 2**80) == (millisecond, high * 2**20 + low)


@given(st.lists(st.integers(-3, 3), max_size=50), st.sampled_from([0, 2**79 - 1]))
def test_ids_rise_whatever_the_clock_does(steps_ms: list[int], random: int) -> None:
    clock = SetClock(1_700_000_000_000_000)
    new_id = UlidFactory(clock, drawn(random))
    ids = [new_id()]
    for step in steps_ms:
        clock.now_us += step * 1000
        ids.append(new_id())
    assert all(earlier < later for earlier, later in pairwise(ids))
    assert all(ULID.fullmatch(ulid) for ulid in ids)


def test_a_new_millisecond_asks_for_new_random_bits() -> None:
    clock, asked = SetClock(), []

    def random_bits(bits: int) -> int:
        asked.append(bits)
        return len(asked)

    new_id = UlidFactory(clock, random_bits)
    first, second = new_id(), new_id()
    clock.now_us = 1000
    third = new_id()
    assert asked == [60, 19, 60, 19]
    high = 2**20
    assert [value(ulid) % 2**80 for ulid in (first, second, third)] == [high + 2, high + 3, 3 * high + 4]


def test_a_millisecond_that_has_given_out_its_numbers_borrows_from_the_next() -> None:
    clock = SetClock()
    new_id = UlidFactory(clock, lambda bits: 2**bits - 1)
    ids = [new_id() for _ in range(2**19 + 2)]  # the first, as many as fit above it, and one more
    assert [value(ulid) >> 80 for ulid in ids[-2:]] == [0, 1]
    assert value(ids[-2]) == 2**80 - 1
    clock.now_us = 1999
    assert value(new_id()) == value(ids[-1]) + 1


def test_two_factories_do_not_collide() -> None:
    clock = SetClock(1_700_000_000_000_000)
    ids = [new_id() for new_id in (UlidFactory(clock), UlidFactory(clock)) for _ in range(1000)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("bits", "epoch"), [(0, "00000000"), (0xABC, "00000abc"), (2**32 - 1, "ffffffff")])
def test_an_epoch_is_eight_hex_digits(bits: int, epoch: str) -> None:
    assert new_epoch(lambda count: bits) == epoch


def test_epochs_differ() -> None:
    epochs = {new_epoch() for _ in range(100)}
    assert len(epochs) > 90
    assert all(re.fullmatch(r"[0-9a-f]{8}", epoch) for epoch in epochs)
