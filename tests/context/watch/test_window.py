from herdr.context.watch import window as module
from herdr.context.watch.changes import FileState
from herdr.context.watch.pace import SHARE, Pace
from herdr.context.watch.window import HOLD_BUSY_S, HOLD_S, QUIET_S, Window

STATE = FileState(3, 1, 10)


def test_a_window_closes_after_quiet_or_when_it_was_held_long_enough() -> None:
    window = Window()
    assert not window and window.due_at(busy=False) is None
    window.touch(100.0)
    assert window and window.due_at(busy=False) == 100.0 + QUIET_S
    window.touch(101.9)
    assert window.due_at(busy=False) == 100.0 + HOLD_S
    assert window.due_at(busy=True) == 100.0 + HOLD_BUSY_S


def test_the_oldest_state_counts() -> None:
    window = Window()
    window.note({"a": STATE, "b": None})
    window.note({"a": None})
    assert window.before == {"a": STATE, "b": None}
    window.forget(["a", "never"])
    assert window.before == {"b": None}


def test_it_remembers_so_many_and_says_when_there_were_more() -> None:
    window = Window()
    window.note(dict.fromkeys(map(str, range(module.PATHS_MAX))))
    assert not window.overflowed
    window.note({"0": None})
    assert not window.overflowed
    window.note({"one more": None})
    assert window.overflowed and len(window.before) == module.PATHS_MAX


def test_sweeps_come_regularly_and_when_wanted_but_never_take_more_than_their_share() -> None:
    pace = Pace(300.0)
    pace.swept(100.0, 102.0)
    assert pace.next_at() == 402.0 and not pace.is_due(401.9) and pace.is_due(402.0)
    pace.want(distrust=True)
    assert pace.next_at() == 102.0 + SHARE * 2.0
    assert (pace.wanted, pace.distrust) == (True, True)
    pace.want()
    assert pace.distrust
    pace.begin()
    assert (pace.wanted, pace.distrust, pace.count) == (False, False, 1)


def test_what_is_asked_for_during_a_sweep_needs_another_one() -> None:
    pace = Pace(300.0)
    pace.want()
    pace.begin()
    pace.want(distrust=True)  # HEAD moved meanwhile, or notices were lost
    pace.swept(100.0, 101.0)
    assert (pace.wanted, pace.distrust) == (True, True)
