import pytest

from herdr.pool.shares import Shares, may_evict, parts


@pytest.mark.parametrize(
    ("total", "share", "part"),
    [
        (1, 0.6, None),  # one slot is nobody's
        (2, 0.6, 1),
        (3, 0.6, 2),
        (4, 0.6, 2),
        (5, 0.6, 3),
        (6, 0.6, 4),
        (8, 0.6, 5),
        (64, 0.6, 38),
        (4, 0.01, 1),  # at least one
        (4, 0.99, 3),  # at most all but one
        (4, 1.0, 3),
        (2, 1.0, 1),
        (5, 0.5, 3),  # a half goes up
        (10, 0.35, 4),
        (10, 0.45, 5),  # 0.45 * 10 is 4.5 in decimals, and a half goes up, whatever floats say
        (4, 0.0, None),  # a share of 0 is none
    ],
)
def test_one_owner(total: int, share: float, part: int | None) -> None:
    assert parts(total, {"primary_agent": share}) == ({} if part is None else {"primary_agent": part})


@pytest.mark.parametrize(
    ("total", "shares", "expected"),
    [
        (4, {"a": 0.5, "b": 0.5}, {"a": 2, "b": 2}),  # all is given away
        (5, {"a": 0.5, "b": 0.5}, {"a": 2, "b": 3}),  # both round up: the first in the alphabet yields
        (2, {"a": 0.4, "b": 0.4}, {"a": 0, "b": 1}),  # one is left to the others
        (3, {"a": 0.4, "b": 0.4}, {"a": 1, "b": 1}),
        (10, {"a": 0.6, "b": 0.3}, {"a": 6, "b": 3}),
        (2, {"a": 0.2, "b": 0.5, "c": 0.3}, {"a": 0, "b": 1, "c": 1}),  # the smallest share yields
        (1, {"a": 0.5, "b": 0.5}, {}),
        (6, {}, {}),
    ],
)
def test_several_owners(total: int, shares: dict[str, float], expected: dict[str, int]) -> None:
    found = parts(total, shares)
    assert found == expected
    assert sum(found.values()) <= total


def test_parts_never_exceed_the_slots_and_leave_one_unless_all_is_given_away() -> None:
    for total in range(2, 40):
        for a in range(0, 101, 5):
            for b in range(0, 101 - a, 10):
                found = parts(total, {"a": a / 100, "b": b / 100})
                assert sum(found.values()) <= total - (0 if a + b == 100 and a and b else 1)
                assert all(part >= 0 for part in found.values())


def running(shares: Shares, *routes: str) -> Shares:
    for route in routes:
        shares.count(route, 1)
    return shares


@pytest.mark.parametrize(
    ("total", "runs", "allowed"),
    [
        (4, [], {"owner", "other", "background"}),
        (4, ["other"] * 2, {"owner"}),  # the others together never take the part
        (4, ["other", "background"], {"owner"}),
        (4, ["owner"] * 2, {"owner", "other", "background"}),
        (4, ["owner"] * 3, {"owner", "other", "background"}),  # what is idle, the owner may use
        (4, ["owner", "other"], {"owner", "other", "background"}),
        (4, ["owner"] * 2 + ["other"] * 2, set()),
        (4, ["owner"] * 4, set()),
        (8, ["background"] * 2, {"owner", "other"}),  # its own bound
        (1, [], {"owner", "other", "background"}),
        (1, ["background"], set()),
        (2, ["other"], {"owner"}),
        (2, ["owner"], {"owner", "other", "background"}),
    ],
)
def test_who_may_run_one_more(total: int, runs: list[str], allowed: set[str]) -> None:
    shares = running(Shares(total, {"owner": 0.6}, background_max=2), *runs)
    assert {route for route in ("owner", "other", "background") if shares.allows(route)} == allowed


def test_two_owners_keep_their_parts_free_for_each_other() -> None:
    shares = running(Shares(10, {"a": 0.4, "b": 0.3}, background_max=2), *["other"] * 3)
    assert not shares.allows("other"), "4 and 3 are owned, 3 are left"
    assert shares.allows("a") and shares.allows("b")
    running(shares, *["a"] * 4)
    assert not shares.allows("a"), "the three that are left are b's"
    running(shares, *["b"] * 3)
    assert not shares.allows("b")


def test_an_owner_within_its_part_may_run_though_more_slots_existed_when_the_others_started() -> None:
    shares = running(Shares(4, {"owner": 0.5}, background_max=2), "other", "other")
    shares.total, shares.parts = 3, {"owner": 2}
    assert shares.allows("owner") and not shares.allows("other")


def test_what_ended_counts_no_more() -> None:
    shares = running(Shares(4, {"owner": 0.5}, background_max=2), "other", "other")
    assert not shares.allows("other")
    shares.count("other", -1)
    assert shares.allows("other")
    assert shares.running == {"other": 1}


def test_a_background_bound_of_zero_lets_none_run() -> None:
    assert not Shares(4, {}, background_max=0).allows("background")


def test_resize_starts_from_nothing() -> None:
    shares = running(Shares(4, {"owner": 0.6}, background_max=2), "other")
    shares.resize(8)
    assert (shares.total, shares.parts, shares.running) == (8, {"owner": 5}, {})


@pytest.mark.parametrize(
    ("route", "holder", "held", "may"),
    [
        ("other", "owner", 3, True),  # above its part
        ("other", "owner", 2, False),
        ("other", "owner", 1, False),
        ("owner", "owner", 1, True),  # its own
        ("owner", "other", 1, True),  # nobody else owns anything
        ("other", "background", 1, True),
    ],
)
def test_who_may_evict_whom(route: str, holder: str, held: int, may: bool) -> None:
    assert may_evict(route, holder, {"owner": 2}, {holder: held}) is may
