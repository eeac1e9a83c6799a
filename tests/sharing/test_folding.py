import json
from typing import Any

import pytest
from msgspec import Raw

from herdr.bus.envelope import build_event
from herdr.context.histories import Deletion, Message
from herdr.event import Draft, Event, Lane
from herdr.sharing import folding
from herdr.sharing.folding import Folder, decisions_of, read_summary, said_of, stored_summary


def event(seq: int, session: str, data: Any, type_: str = "session.message") -> Event:
    draft = Draft(type_, session=session, data=Raw(json.dumps(data).encode()))
    made = build_event(draft, "tool", f"id-{seq}", "tool", (), Lane.P1, ())
    made.seq, made.accepted_us = seq, seq * 1_000_000
    return made


def said(
    seq: int, session: str, text: str = "Use csv instead of pandas, because we want no dependency."
) -> Event:
    return event(seq, session, {"role": "user", "content": text})


def ready(*sessions: str) -> Folder:
    folder = Folder()
    for session in sessions:
        folder.remember(session, b"")
    return folder


def test_a_message_is_kept_as_it_was_said_and_summarised() -> None:
    folded = ready("s").fold([said(1, "s")], 0)
    (message,) = folded.entries
    assert isinstance(message, Message)
    assert (message.role, message.source, message.seq, message.time_us) == ("user", "tool", 1, 1_000_000)
    assert said_of(message).text == folded.texts[0]
    assert [d["text"] for d in decisions_of(folded.states["s"]) if "csv" in d["text"]]


def test_secrets_are_taken_out_of_message_and_summary() -> None:
    secret = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z0123"
    folded = ready("s").fold([said(1, "s", f"Use {secret} from now on, because the old one expired.")], 0)
    (message,) = folded.entries
    assert isinstance(message, Message)
    assert secret.encode() not in message.body + folded.states["s"]
    assert "[redacted" in folded.texts[0]


def test_folding_the_same_events_again_changes_nothing() -> None:
    """A commit that reported a failure may have survived: then its summary holds the events already."""
    events = [said(n, "s", f"Message {n}: always use tabs, because I like them.") for n in range(1, 6)]
    state = ready("s").fold(events, 0).states["s"]
    again = Folder()
    again.remember("s", state)
    assert again.fold(events, 0).states["s"] == state
    more = again.fold([*events, said(6, "s", "And what now?")], 0).states["s"]
    assert read_summary(more).messages == 6


def test_a_batch_of_more_sessions_than_are_kept_loses_no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "SUMMARIES_MAX", 3)
    names = [f"s{n}" for n in range(10)]
    folder = ready(*names)
    first = folder.fold([said(n + 1, name) for n, name in enumerate(names)], 0)
    assert len(first.states) == 10
    for name in names:
        if not folder.knows(name):
            folder.remember(name, first.states[name])
    second = folder.fold([said(n + 11, name) for n, name in enumerate(names)], 0)
    assert {name: read_summary(state).messages for name, state in second.states.items()} == dict.fromkeys(
        names, 2
    )


def test_a_deleted_session_begins_anew() -> None:
    folder = ready("s")
    folded = folder.fold([said(1, "s"), event(2, "s", {}, "session.deleted"), said(3, "s", "Hello.")], 0)
    assert [type(entry) for entry in folded.entries] == [Message, Deletion, Message]
    assert read_summary(folded.states["s"]).messages == 1
    assert decisions_of(folded.states["s"]) == []


@pytest.mark.parametrize(
    "data",
    [None, 1, "text", [], {}, {"role": 3, "content": {"x": [1]}}, {"content": [[[[]]]]}, [{"type": "text"}]],
)
def test_odd_events_are_messages_all_the_same(data: Any) -> None:
    folded = ready("s").fold([event(1, "s", data), event(2, "s", data, "tool.result"), said(3, "s")], 0)
    assert [entry.seq for entry in folded.entries] == [1, 2, 3]


def test_an_event_that_cannot_be_read_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    broken = said(1, "s")
    broken.body = b"{"
    folded = ready("s").fold([broken, said(2, "s")], 0)
    assert [entry.seq for entry in folded.entries] == [2]
    assert "event 1" in caplog.text


def test_a_rule_that_stumbles_costs_one_message_of_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    real = folding.fold

    def stumbles(summary: Any, message: Any) -> Any:
        if message.seq == 2:
            raise ZeroDivisionError
        return real(summary, message)

    monkeypatch.setattr(folding, "fold", stumbles)
    folded = ready("s").fold([said(1, "s"), said(2, "s"), said(3, "s")], 0)
    assert len(folded.entries) == 3
    assert read_summary(folded.states["s"]).messages == 2


def test_a_summary_of_another_form_is_begun_anew() -> None:
    state = ready("s").fold([said(1, "s")], 0).states["s"]
    assert stored_summary(read_summary(state)) == state
    assert read_summary(b"\xff" + state[1:]).messages == 0
    assert read_summary(state[:20]).messages == 0
