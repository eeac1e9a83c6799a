"""Who stands behind whom in line, and whose way is clear; what a table makes of it is in test_table_line."""

from itertools import count

import pytest
from lock_parts import ask

from herdr.journal import Journal
from herdr.locks.line import Line, Waiter


class Standing:
    """A line in which waiters are called by their ids."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.line = Line(self.journal)
        self.orders = count()

    def join(self, key: str, in_way: str = "", passed: str = "") -> None:
        """Let one stand in line; the letters of `in_way` and `passed` are keys."""
        waiter = Waiter(ask(key, "p", waits=True, lock=key), since_us=0, order=next(self.orders))
        self.line.join(waiter, set(in_way), set(passed))

    @property
    def free(self) -> str:
        return "".join(waiter.key for waiter in self.line.free())

    def behind(self, key: str) -> str:
        return "".join(sorted(self.line.in_way.lefts(key)))

    def passing(self, key: str) -> str:
        return "".join(sorted(self.line.passing.rights(key)))


@pytest.fixture
def standing() -> Standing:
    """The lock L is held; b waits for it and c behind b, and e has passed d, which waits for L too."""
    standing = Standing()
    standing.join("b", "L")
    standing.join("c", "b")
    standing.join("d", "L")
    standing.join("e", "L", "d")
    standing.journal.keep()
    return standing


def test_a_waiter_is_free_when_the_last_thing_is_out_of_its_way(standing: Standing) -> None:
    standing.line.block("b", {"M"})
    standing.line.clear("L")
    assert standing.free == "e"
    standing.line.clear("M")
    assert standing.free == "be"


def test_waiters_are_told_as_they_came_whatever_they_are_called(standing: Standing) -> None:
    standing.join("a")
    assert [waiter.key for waiter in standing.line.sort({"a", "e", "c", "b"})] == [*"bcea"]
    standing.line.clear("L")
    assert standing.free == "bea"


def test_who_leaves_is_out_of_the_way_of_those_behind_it(standing: Standing) -> None:
    standing.line.leave("b")
    assert (standing.free, standing.behind("b"), "b" in standing.line) == ("c", "", False)


def test_who_is_granted_its_lock_stays_in_the_way_of_those_behind_it(standing: Standing) -> None:
    standing.line.clear("L")
    standing.line.promote("b")
    assert (standing.free, standing.behind("b"), "b" in standing.line) == ("e", "c", False)
    standing.line.clear("b")
    assert standing.free == "ce"


def test_who_is_passed_stands_behind_whoever_passes_it_until_that_one_has_gone(standing: Standing) -> None:
    assert (standing.behind("e"), standing.passing("e")) == ("d", "d")
    standing.line.leave("e")
    assert (standing.behind("e"), standing.passing("e")) == ("", "")
    standing.line.clear("L")
    assert standing.free == "bd"


def test_nobody_passes_one_that_has_gone(standing: Standing) -> None:
    standing.line.leave("d")
    assert (standing.behind("e"), standing.passing("e")) == ("", "")


def test_letting_pass_turns_two_round_and_holding_back_turns_them_back(standing: Standing) -> None:
    standing.line.clear("L")
    standing.line.let_pass("c", "b")
    assert (standing.free, standing.behind("c"), standing.passing("c")) == ("ce", "b", "b")
    standing.line.let_pass("c", "b")
    standing.line.hold_back("c", "b")
    assert (standing.free, standing.behind("b"), standing.passing("c")) == ("be", "c", "")


def test_all_that_happens_in_line_can_be_taken_back(standing: Standing) -> None:
    standing.line.let_pass("c", "b")
    standing.line.clear("L")
    standing.line.promote("e")
    standing.line.leave("b")
    standing.join("f", "d")
    assert standing.free == "c"
    standing.journal.undo()
    assert (standing.free, [waiter.key for waiter in standing.line.sort("bcde")]) == ("", [*"bcde"])
    assert [standing.behind(key) for key in "Lbcdef"] == ["bde", "c", "", "", "d", ""]
    assert [standing.passing(key) for key in "bcdef"] == ["", "", "", "d", ""]
