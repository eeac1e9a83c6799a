import json
from typing import Any

import msgspec
import pytest
from model_records import RECORD

from herdr.bus.envelope import build_event, own_draft
from herdr.event import Lane
from herdr.pool.chunk import Chunk, Progress, TextDelta, ThinkingDelta, ToolDelta, ToolEnd, ToolStart
from herdr.pool.records import PROMPT_MAX, Audit, RecordEvent, answer_of, events_of
from herdr.pool.request import ChatRequest, Message, Text
from herdr.pool.turns import TEXT_MAX

EVENT_MAX = 1024 * 1024  # bytes; what an event may have in all
REQUEST = ChatRequest("m", (Message("user", (Text("Look"),)),))
ANSWER: list[Chunk] = [
    Progress(10, 0, 10),
    ThinkingDelta("Hm"),
    ThinkingDelta("m."),
    TextDelta("I "),
    TextDelta("look."),
    ToolStart("t1", "ls"),
    ToolDelta('{"a"'),
    ToolDelta(":1}"),
    ToolEnd(),
    ToolStart("t2", "pwd"),
    ToolEnd(),
]


def events(
    audit: Audit,
    chunks: list[Chunk] = ANSWER,
    *,
    request: ChatRequest = REQUEST,
    said: str = "Look",
    **more: Any,
) -> list[dict[str, Any]]:
    """The events as they are read back."""
    record = msgspec.structs.replace(RECORD, **more)
    return [read_back(event) for event in events_of(record, request, said, chunks, audit)]


def read_back(event: RecordEvent) -> dict[str, Any]:
    return {
        "type": event.type,
        "session": event.session,
        "background": event.background,
        "data": json.loads(encoded(event)),
    }


def encoded(event: RecordEvent) -> bytes:
    return msgspec.json.encode(event.data)


def size_in_the_log(event: RecordEvent) -> int:
    draft = own_draft(event.type, event.data, None, "default", event.session)
    return len(build_event(draft, "herdr", "id", "model", (), Lane.P1, ()).body)


def test_an_answer_is_its_text_its_thoughts_and_its_calls() -> None:
    assert answer_of(ANSWER) == {
        "text": "I look.",
        "thinking": "Hmm.",
        "tool_calls": [
            {"id": "t1", "name": "ls", "arguments": '{"a":1}'},
            {"id": "t2", "name": "pwd", "arguments": ""},
        ],
    }


def test_a_call_that_was_cut_is_none() -> None:
    assert [c["id"] for c in answer_of(ANSWER[:-1])["tool_calls"]] == ["t1"]
    assert answer_of([]) == {"text": "", "thinking": "", "tool_calls": []}


def test_metadata_is_the_record_and_no_word() -> None:
    (only,) = events("metadata")
    assert only["type"] == "model.call" and not only["background"]
    assert only["data"] == msgspec.to_builtins(RECORD)


def test_turns_are_the_users_and_the_models_words_in_the_background() -> None:
    call, user, model = events("turns")
    assert "request" not in call["data"]
    assert (user["type"], user["session"], user["background"]) == ("session.message", "s", True)
    assert user["data"] == {"role": "user", "content": "Look", "call": "01J", "agent": "a"}
    assert model["data"] == {
        "role": "assistant",
        "content": "I look.",
        "call": "01J",
        "agent": "a",
        "tool_calls": [{"id": "t1", "name": "ls"}, {"id": "t2", "name": "pwd"}],
    }


def test_full_is_everything() -> None:
    call, _, model = events("full")
    assert call["data"]["request"][0]["role"] == "user"
    assert model["data"]["thinking"] == "Hmm."
    assert model["data"]["tool_calls"][0] == {"id": "t1", "name": "ls", "arguments": '{"a":1}'}


def test_turns_without_words_are_none() -> None:
    assert [e["type"] for e in events("turns", [Progress(1, 0, 1)], said="")] == ["model.call"]
    assert len(events("turns", [ThinkingDelta("Hm")], said="")) == 1
    assert len(events("turns", [ToolStart("t", "ls"), ToolEnd()], said="")) == 2


def test_without_a_session_the_agent_is_it() -> None:
    call, user, _ = events("turns", session=None)
    assert call["session"] is None and user["session"] == "a"


def test_nothing_is_ever_a_users_message() -> None:
    assert {e["type"] for e in events("full")} == {"model.call", "session.message"}


CONTROL = "\x00" * (2 * TEXT_MAX)
HUGE_CALLS: list[Chunk] = [
    chunk
    for n in range(40)
    for chunk in (ToolStart(f"t{n}", "write"), ToolDelta(json.dumps({"x": CONTROL[:20_000]})), ToolEnd())
]


@pytest.mark.parametrize("audit", ["full", "turns"])
@pytest.mark.parametrize(
    ("said", "chunks"),
    [
        (CONTROL, [TextDelta(CONTROL)]),
        ("\U0001f600" * 2 * TEXT_MAX, [TextDelta("\U0001f600" * 2 * TEXT_MAX)]),
        ("Hi", HUGE_CALLS),
        ("Hi", [TextDelta(CONTROL), *HUGE_CALLS]),
        (
            "Hi",
            [
                c
                for n in range(1024)
                for c in (ToolStart(f"call_{n:032}", "n" * 64), ToolDelta("{}"), ToolEnd())
            ],
        ),
    ],
    ids=["control characters", "emoji", "calls", "text and calls", "many calls"],
)
def test_an_event_stays_below_its_bound(audit: Audit, said: str, chunks: list[Chunk]) -> None:
    request = ChatRequest("m", (Message("user", (Text(said * 2),)),))
    made = events_of(RECORD, request, said[:TEXT_MAX], chunks, audit)
    assert len(made) == 3
    assert max(map(size_in_the_log, made)) < EVENT_MAX


def test_text_thoughts_and_calls_together_stay_below_it_too() -> None:
    chunks = [ThinkingDelta(CONTROL), TextDelta(CONTROL), *HUGE_CALLS[:6]]
    assert max(map(size_in_the_log, events_of(RECORD, REQUEST, "Hi", chunks, "full"))) < EVENT_MAX


def test_what_is_too_long_says_how_long_it_was() -> None:
    long = ChatRequest("m", (Message("user", (Text("x" * PROMPT_MAX),)),))
    call, _, model = events("full", HUGE_CALLS, request=long)
    assert call["data"]["request"].startswith(f"not recorded: {str(PROMPT_MAX)[:3]}")
    assert model["data"]["tool_calls"].startswith("not recorded: ")
