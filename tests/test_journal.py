"""What was changed since the last commit can be taken back, all of it or from a mark on."""

from functools import partial

from herdr.journal import Journal


def changed(journal: Journal, value: list[int], *numbers: int) -> None:
    """Append the numbers; taking one back removes the last, so only the right order restores the list."""
    for number in numbers:
        value.append(number)
        journal.note(partial(take_back, value, number))


def take_back(value: list[int], number: int) -> None:
    assert value.pop() == number


def test_changes_are_taken_back_the_newest_first_and_once() -> None:
    journal, value = Journal(), [0]
    changed(journal, value, 1, 2, 3)
    journal.undo()
    assert value == [0]
    journal.undo()
    assert value == [0]


def test_what_is_kept_stays() -> None:
    journal, value = Journal(), [0]
    changed(journal, value, 1)
    journal.keep()
    changed(journal, value, 2)
    journal.undo()
    assert value == [0, 1]


def test_only_what_came_after_a_mark_is_taken_back_the_rest_later() -> None:
    journal, value = Journal(), [0]
    changed(journal, value, 1)
    mark = journal.mark()
    changed(journal, value, 2, 3)
    journal.undo(mark)
    assert value == [0, 1]
    changed(journal, value, 4)
    journal.undo()
    assert value == [0]
