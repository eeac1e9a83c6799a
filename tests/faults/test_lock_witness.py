"""What the fights for locks look for is seen in witnesses made by hand, and nothing else is."""

import pytest
from lock_witness import Line, Times, Waits, holding_faults, read_line, waiting_faults

TIMES = Times(ttl_s=2.0, delay_s=0.5, slack_s=5.0)
A_HAS_X = ("W 10 a 0 x", "G 10 a 1 x", "A 10 a 1 x")
A_DIES = (*A_HAS_X, "K 11 a 0 -")
B_GETS_X = "G {0} b 2 x", "A {0} b 2 x"


def lines(*texts: str, at: float = 0.0) -> list[Line]:
    return [read_line(text.format(at)) for text in texts]


def test_a_line_reads_as_it_was_written() -> None:
    line = Line("A", 12.25, "a", 7, ("x", "y"))
    assert read_line(str(line)) == line
    assert read_line(str(Line("K", 1.0, "a"))) == Line("K", 1.0, "a")


# Never two holders.


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        ([*A_HAS_X, "G 11 b 2 x", "A 11 b 2 x"], "two holders of x"),
        ([*A_HAS_X, "G 12.4 b 2 x", "A 13 b 2 x", "L 13 a 1 x"], "two holders of x"),
        ([*A_DIES, "G 12.4 b 2 x", "A 13 b 2 x"], "which is dead but had a lease"),
        ([*A_HAS_X, "R 11 a 1 x", "G 11 b 1 x", "A 11 b 1 x"], "did not rise"),
        ([*A_HAS_X, "R 11 a 1 x", "G 20 b 0 x", "A 20 b 0 x"], "did not rise"),
        ([*A_HAS_X, "R 11 a 1 x", "R 11 a 1 x"], "without having it"),
        ([*A_HAS_X, "R 11 a 2 x"], "without having it"),
        ([*A_DIES, "N 12 a 0 y"], "a dead one writes"),
    ],
)
def test_what_must_not_be_is_seen(texts: list[str], fault: str) -> None:
    (found,) = holding_faults(lines(*texts), TIMES)
    assert fault in found


@pytest.mark.parametrize(
    "texts",
    [
        [*A_HAS_X, "R 11 a 1 x", "G 11 b 2 x", "A 11 b 2 x"],
        [*A_HAS_X, "R 11 a 1 x", "K 11 a 0 -", "G 11 b 2 x", "A 11 b 2 x"],
        [*A_HAS_X, "G 11 b 2 y", "A 11 b 2 y", "R 11 a 1 x", "R 11 b 2 y"],
        [*A_DIES, "G 12.6 b 2 x", "A 12.6 b 2 x"],
    ],
)
def test_who_comes_after_another_is_no_fault(texts: list[str]) -> None:
    assert holding_faults(lines(*texts), TIMES) == []


@pytest.mark.parametrize(
    ("late", "fault"),
    [
        ([*A_HAS_X, *B_GETS_X, "L 13 a 1 x", "R 13 b 2 x"], "two holders"),
        ([*A_HAS_X, *B_GETS_X, "R 12 b 2 x", "R 11 a 1 x"], "two holders"),
        (["G 10 a 1 x", *B_GETS_X, "A 11 a 1 x", "L 13 a 1 x", "R 13 b 2 x"], "two holders"),
        (["G 10 a 1 x", *B_GETS_X, "R 13 b 2 x", "A 11 a 1 x", "L 13 a 1 x"], "did not rise"),
    ],
)
def test_who_stood_still_for_its_lease_and_the_delay_may_write_late_but_not_before(
    late: list[str], fault: str
) -> None:
    assert holding_faults(lines(*late, at=12.51), TIMES) == []
    assert any(fault in found for found in holding_faults(lines(*late, at=12.49), TIMES))


# No lock outlives its lease plus the downtimes plus the delay.

B_WAITS = (*A_DIES, "W 11 b 0 x")  # due at 12.5


@pytest.mark.parametrize(
    ("texts", "due"),
    [
        ([*B_WAITS], 12.5),
        ([*A_HAS_X, "R 10 a 1 x", "K 11 a 0 -", "W 11 b 0 x"], 12.5),
        (["W 9 a 0 x", "K 11 a 0 -", "W 11 b 0 x"], 13.5),
        (["W 9 a 0 x", "G 9 a 1 x", "K 11 a 0 -", "W 11 b 0 x"], 13.5),
        ([*A_HAS_X, "R 10 a 1 x", "F 10 a 1 x", "K 11 a 0 -", "W 11 b 0 x"], 11),
        ([*A_DIES, "W 14 b 0 x"], 14),
        ([*B_WAITS, "W 11 c 0 x"], 12.5),
        ([*A_DIES, "W 11 b 0 y"], 11),
        ([*A_HAS_X, "R 12 a 1 x", "W 11 b 0 x", "F 13 a 1 x"], 13),
        ([*A_HAS_X, "L 13 a 1 x", "W 11 b 0 x", "X 13 a 1 x"], 13.5),
        (["W 10 a 0 x", "W 11 b 0 x", "N 12 a 0 x"], 12),
        (["D 9 g 0 -", "U 9.5 g 0 -", *B_WAITS], 12.5),
        ([*B_WAITS, "D 12 g 0 -", "U 15 g 0 -"], 17.5),
        ([*B_WAITS, "D 12 g 0 -", "U 13 g 0 -", "D 14 g 0 -", "U 15 g 0 -"], 17.5),
        ([*B_WAITS, "D 17.4 g 0 -", "U 18 g 0 -"], 20.5),
        ([*B_WAITS, "D 17.6 g 0 -", "U 18 g 0 -"], 12.5),
        (["D 10 g 0 -", "W 11 b 0 x", "U 15 g 0 -"], 15),
        ([*B_WAITS, "W 11 c 0 x", "G 12 c 2 x", "A 12 c 2 x", "R 14 c 2 x", "F 14 c 2 x"], 14),
        ([*A_DIES, "W 11 c 0 x", "G 12.6 c 2 x", "F 13 c 2 x", "D 13 g 0 -", "U 14 g 0 -", "W 15 b 0 x"], 15),
    ],
)
@pytest.mark.parametrize("end", ["G {} b 9 x", "N {} b 0 x", "K {} b 0 -"])
def test_who_waits_for_longer_than_others_can_be_in_the_way_is_seen(
    texts: list[str], due: float, end: str
) -> None:
    assert waiting_faults(lines(*texts, end, at=due + 4.99), TIMES) == []
    (found,) = waiting_faults(lines(*texts, end, at=due + 5.01), TIMES)
    assert found.startswith("5.0 s too late")


def test_nobody_is_late_while_another_has_it() -> None:
    assert waiting_faults(lines(*A_HAS_X, "W 11 b 0 x", "N 99 b 0 x"), TIMES) == []


def test_it_is_told_who_waited_for_a_dead_one() -> None:
    waited = Waits(lines(*B_WAITS, "G 12.6 b 2 x", "W 13 c 0 x", "G 13 c 3 x"), TIMES).all()
    assert [(one.round.name, one.heir) for one in waited] == [("a", False), ("b", True), ("c", False)]
