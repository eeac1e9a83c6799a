import random

from herdr.indexer.backlog import Backlog


def test_paths_wait_once_and_the_oldest_notice_goes_first() -> None:
    backlog = Backlog()
    backlog.add(["b", "a"])
    backlog.add(["b", "c"])
    assert (len(backlog), backlog.waiting) == (3, 3)
    assert backlog.take(2) == ["b", "a"]
    assert backlog.take(2) == ["c"]
    assert backlog.take(2) == []


def test_a_path_that_changes_while_it_is_read_is_read_again_and_not_twice_at_once() -> None:
    backlog = Backlog()
    backlog.add(["a"])
    assert backlog.take(1) == ["a"]
    backlog.add(["a", "b"])
    assert backlog.take(2) == ["b"], "somebody reads `a` just now"
    backlog.finish(["a"])
    assert backlog.take(2) == ["a"]


def test_a_question_waits_for_the_notices_before_it_and_for_no_later_ones() -> None:
    backlog = Backlog()
    backlog.add(["a", "b"])
    asked = backlog.newest
    backlog.add(["c"])
    assert not backlog.is_done(asked)
    backlog.finish(backlog.take(1))
    assert not backlog.is_done(asked)
    backlog.finish(backlog.take(1))
    assert backlog.is_done(asked)
    assert not backlog.is_done(backlog.newest)


def test_a_notice_about_a_path_that_is_being_read_holds_a_question_up_too() -> None:
    backlog = Backlog()
    backlog.add(["a"])
    taken = backlog.take(1)
    backlog.add(["a"])
    asked = backlog.newest
    backlog.finish(taken)
    assert not backlog.is_done(asked), "what was read may be older than the second notice"
    backlog.finish(backlog.take(1))
    assert backlog.is_done(asked)


def test_what_could_not_be_stored_waits_again() -> None:
    backlog = Backlog()
    backlog.add(["a"])
    asked = backlog.newest
    backlog.put_back(backlog.take(1))
    assert not backlog.is_done(asked)
    assert backlog.take(1) == ["a"]


def test_progress_counts_from_the_restart() -> None:
    backlog = Backlog()
    backlog.add(["a", "b"])
    backlog.finish(backlog.take(1))
    assert (backlog.queued, backlog.done) == (2, 1)
    backlog.restart_count()
    assert (backlog.queued, backlog.done) == (1, 0)


def test_a_question_is_answered_exactly_when_each_notice_before_it_was_followed_by_a_whole_reading() -> None:
    """Random histories against the plain definition: a reading covers notices that came before it began."""
    for seed in range(200):
        rng = random.Random(seed)
        backlog = Backlog()
        open_notices: list[tuple[int, str]] = []
        reading: dict[str, list[tuple[int, str]]] = {}
        for _ in range(60):
            step = rng.randrange(3)
            if step == 0:
                path = rng.choice("abcd")
                backlog.add([path])
                open_notices.append((backlog.newest, path))
            elif step == 1:
                for path in backlog.take(rng.randrange(1, 3)):
                    reading[path] = [n for n in open_notices if n[1] == path]
            elif reading:
                path = rng.choice(sorted(reading))
                for notice in reading.pop(path):
                    open_notices.remove(notice)
                backlog.finish([path])
            asked = rng.randrange(backlog.newest + 1)
            assert backlog.is_done(asked) == all(ticket > asked for ticket, _ in open_notices), seed


def test_a_notice_that_came_while_storing_failed_does_not_hide_the_older_one() -> None:
    backlog = Backlog()
    backlog.add(["a", "b"])
    asked = backlog.newest
    taken = backlog.take(1)
    backlog.add(["a"])
    backlog.put_back(taken)
    backlog.finish(backlog.take(1))
    assert not backlog.is_done(asked), "`b` is still to be read"
    assert backlog.take(5) == ["b"]


def test_what_is_being_read_at_a_restart_is_read_once_more() -> None:
    backlog = Backlog()
    backlog.add(["a", "b"])
    taken = backlog.take(2)
    backlog.restart()
    assert backlog.take(2) == []
    backlog.finish(taken)
    assert backlog.take(2) == ["a", "b"]
