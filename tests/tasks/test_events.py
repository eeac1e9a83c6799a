"""What the log says of tasks: to whom, in which words, and that it can be read back."""

from typing import Any

import msgspec
import pytest
from task_parts import Tasks

from herdr.tasks.events import Told, event_of, step_of
from herdr.tasks.task import Note
from herdr.tasks.views import listed_view, step_view, task_view


def told(tasks: Tasks) -> list[Told]:
    return [event_of(move) for move in tasks.last.moves]


def test_who_is_told_of_what() -> None:
    tasks = Tasks()
    tasks.create("T1", "coder", "ann")
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.created", ("coder",))]
    token = tasks.claim("T1", "bob").token or 0
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.claimed", ("ann",))]
    tasks.renew("T1", token)
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.renewed", ())]
    tasks.ask_for("T1", token, "which?", "architect")
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.asked", ("architect",))]
    tasks.answer("T1", "eve")
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.answered", ("bob",))]
    tasks.release("T1", token)
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.released", ("coder",))]
    found = tasks.claim("T1", "bob")
    tasks.expire("T1", found.renewed)
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.returned", ("coder",))]
    tasks.hand_over("T1", tasks.claim("T1", "bob").token or 0, "tester")
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.handed_over", ("tester",))]
    tasks.claim("T1", "eve")
    tasks.cancel("T1", "ann")
    assert [(t.type, t.to) for t in told(tasks)] == [("handoff.canceled", ("ann", "eve"))]


@pytest.mark.parametrize("what", ["finished", "failed", "rejected"])
def test_whoever_created_it_is_told_of_its_end(what: str) -> None:
    tasks = Tasks()
    tasks.create("T1", by="ann")
    tasks.end("T1", what, tasks.take("bob").token or 0)
    assert [(t.type, t.to) for t in told(tasks)] == [(f"handoff.{what}", ("ann",))]


def test_what_an_event_says() -> None:
    tasks = Tasks()
    tasks.create("T1", "coder", "ann", description="all of it")
    created = told(tasks)[0].data
    assert created == {
        **{"task": "T1", "title": "Title of T1", "description": "all of it", "role": "coder", "by": "ann"},
        **{"state": "submitted", "holder": None, "token": None},
    }
    token = tasks.claim("T1", "bob", 30).token
    claimed = {**created, "by": "bob", "state": "working", "holder": "bob", "token": token}
    del claimed["description"]
    assert told(tasks)[0].data == {**claimed, "ttl_s": 30}
    note = Note(summary="s", files=("a.py",))
    tasks.hand_over("T1", token or 0, "tester", note)
    over = {**claimed, "state": "submitted", "role": "tester", "from_role": "coder", "note": note}
    assert told(tasks)[0].data == over


@pytest.mark.parametrize(
    ("do", "name"), [("ask_for", "question"), ("answer", "answer"), ("release", "reason")]
)
def test_texts_go_by_their_own_names(do: str, name: str) -> None:
    tasks = Tasks()
    tasks.create("T1")
    token: Any = tasks.take("bob").token
    tasks.ask_for("T1", token, "first?")
    getattr(tasks, do)("T1", "ann" if do == "answer" else token, "the text")
    assert told(tasks)[0].data[name] == "the text"
    assert step_view(tasks.last.moves[0].step)[name] == "the text"


def test_events_of_others_say_nothing_of_tasks() -> None:
    assert step_of("lock.granted", b"{}", 1, 0) is None


def test_the_views() -> None:
    tasks = Tasks()
    tasks.create("T1", note=Note(summary="s"), session="S", workspace="shop")
    found = tasks.claim("T1", "bob")
    view = task_view(found, 5_000_000)
    assert view["expires"] == "1970-01-01T00:00:05.000Z" and view["token"] == found.token == 2
    assert view["steps"][0]["note"] == {"summary": "s"} and view["steps"][1]["type"] == "handoff.claimed"
    assert listed_view(found, None) == {**view, "steps": 2, "expires": None}
    assert msgspec.json.decode(msgspec.json.encode(view)) == view
