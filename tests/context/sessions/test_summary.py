# ruff: noqa: RUF001 - the marks of Chinese
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.labelled import ALL, messages
from transcripts.talk import message, talk, told

from herdr.context.sessions.message import CALLS_MAX, Call, Message
from herdr.context.sessions.state import FILES_MAX, SOURCES_MAX, Summary
from herdr.context.sessions.summary import fold, summarise

STATE_MAX = 900 * 1024  # bytes, as herdr/context/sessions/state.py says


def packed(summary: Summary) -> bytes:
    return msgspec.msgpack.encode(summary)


def unpacked(state: bytes) -> Summary:
    return msgspec.msgpack.decode(state, type=Summary)


@pytest.mark.parametrize("name", ALL)
def test_message_by_message_is_the_same_as_at_once(name: str) -> None:
    state = packed(Summary())
    for one in messages(name):
        state = packed(fold(unpacked(state), one))
    assert unpacked(state) == summarise(messages(name))


def test_what_a_session_is_known_by() -> None:
    summary = told([message(5, "u", "hello"), message(9, "a", "hi there")])
    assert (summary.messages, summary.seq, summary.first_us, summary.last_us) == (2, 9, 5_000_000, 9_000_000)
    many = [msgspec.structs.replace(message(n, "u", "x"), source=f"tool{n % 40}") for n in range(80)]
    assert told(many).sources == tuple(f"tool{n}" for n in range(SOURCES_MAX))


def files(*messages: Message) -> dict[str, tuple[str, ...]]:
    return {file.path: file.actions for file in told(messages).files}


def test_files_by_the_tools_that_touched_them() -> None:
    calls = [Call("Read", files=("a.py",)), Call("Edit", files=("a.py",)), Call("Write", files=("./b.py",))]
    seen = told(
        [message(n, "a", "", [call]) for n, call in enumerate([*calls, Call("Read", files=("a.py",))], 1)]
    )
    assert [(f.path, f.actions, f.seq) for f in seen.files] == [
        ("b.py", ("created",), 3),
        ("a.py", ("read", "edited"), 4),
    ]


def test_writing_a_file_that_is_there_is_an_edit() -> None:
    read, write = Call("Read", files=("a.py",)), Call("Write", files=("a.py",))
    assert files(message(1, "a", "", [read]), message(2, "a", "", [write])) == {"a.py": ("read", "edited")}
    gone = Call("delete_file", files=("a.py",))
    assert files(message(1, "a", "", [gone]), message(2, "a", "", [write])) == {
        "a.py": ("deleted", "created")
    }


@pytest.mark.parametrize(
    "line, found",
    [
        ("a: I've created src/a.py and updated the tests.", {"src/a.py": ("created",)}),
        ("a: 新建了 src/a.py", {"src/a.py": ("created",)}),
        ("a: The bug is in src/a.py.", {}),
        ("a: I could have updated src/a.py.", {}),
        ("a: updated setup.py", {}),  # a bare name that nobody has touched yet may be anything
        ("u: I changed src/a.py", {}),
    ],
)
def test_files_by_what_is_said(line: str, found: dict[str, tuple[str, ...]]) -> None:
    assert files(*talk(line)) == found


def test_files_of_a_result_that_brings_its_call_along() -> None:
    assert files(message(1, "t", "ok", [Call("edit_file", files=("a.py",))])) == {"a.py": ("edited",)}


def test_the_files_touched_longest_ago_go_first() -> None:
    seen = told(message(n, "a", "", [Call("Read", files=(f"{n}.py",))]) for n in range(FILES_MAX + 7))
    assert len(seen.files) == FILES_MAX and seen.more.files == 7 and seen.files[0].path == "7.py"


def test_calls_without_an_answer_are_bounded() -> None:
    seen = told(message(n, "a", "", [Call("Bash", "x", id=str(n))]) for n in range(CALLS_MAX + 9))
    assert len(seen.calls) == CALLS_MAX
    answered = fold(seen, Message(999, "r", "tool", "t", 0, "ok", answers="40"))
    assert len(answered.calls) == CALLS_MAX - 1 and "40" not in {call.id for call in answered.calls}


def test_what_was_asked_stands_until_the_user_has_spoken() -> None:
    lines = ("a: Should it be Redis or SQLite?", "t: 3 passed")
    assert told(talk(*lines)).asked == ("Should it be Redis or SQLite?",)
    assert told(talk(*lines, "u: SQLite")).asked == ()
    step = message(3, "a", "Let me look at one more thing.", [Call("Read", files=("a.py",))])
    assert told([*talk(*lines), step]).asked == ("Should it be Redis or SQLite?",)


def test_a_hundred_thousand_messages() -> None:
    texts = [
        "Use variant {n} of the cache, because it is quick.",
        "I'll cap the queue at {n}, because more does not fit.",
        "Should case {n} be left alone?",
        "Looking at the file.",
    ]
    summary = Summary()
    for n in range(1, 100_001):
        if n % 20:
            one = (
                message(n, "t", "some output")
                if n % 3
                else message(n, "a", "", [Call("Read", files=(f"src/{n}.py",))])
            )
        else:
            one = message(n, "uaaa"[n // 20 % 4], texts[n // 20 % 4].format(n=n))
        summary = fold(summary, one)
    assert summary.messages == 100_000 and summary.decided == 2 * 100_000 // 80
    assert len(packed(summary)) < 100_000


def test_the_state_is_bounded_at_its_fullest() -> None:
    summary = Summary()
    long = "不" + "长" * 280
    for n in range(1, 900):
        text = f"{long}{n}。为什么{'呢' * 250}{n}？\n\nTypeError: {n}{'长' * 300}"
        summary = fold(summary, message(n * 1000, "u", f"必须{text}"))
        calls = [Call("Read", "命" * 300, tuple(f"/{'长' * 380}/{n}-{k}.py" for k in range(4)), f"{n}")]
        summary = fold(summary, message(n * 1000 + 1, "a", f"用 {n} 还是 {n + 1}？{'长' * 150}", calls))
    assert summary.decided >= 800
    assert len(packed(summary)) < STATE_MAX


@given(st.lists(st.tuples(st.sampled_from("uats"), st.text(max_size=200)), max_size=12))
@settings(max_examples=150, deadline=None)
def test_nothing_makes_it_raise(lines: list[tuple[str, str]]) -> None:
    summary = told(message(n, who, text) for n, (who, text) in enumerate(lines))
    assert summary.messages == len(lines)
    assert unpacked(packed(summary)) == summary
    json.dumps(msgspec.to_builtins(summary, builtin_types=(bytes,)), default=str)


@pytest.mark.parametrize(
    "text",
    ["a" * 10**6, "(" * 10**6, "```\n" * 10**5, "<a-b>" * 10**5, "use x. " * 10**5, "\n" * 10**6, "不要用" * 10**5,
     "a/" * 10**5, "E   " * 10**5, "xError: " * 10**5, "1. use x\n" * 10**5, "because since " * 10**5, '"' * 10**6],
)  # fmt: skip
@pytest.mark.parametrize("who", ["u", "a", "t"])
def test_a_megabyte_of_anything_is_soon_done(who: str, text: str) -> None:
    """A pattern that takes its time on such a text would run into the test's time limit."""
    summary = Summary(asked=("Should I use x or y?",), options=("A: use x", "B: use y"))
    for n in range(3):
        summary = fold(summary, message(n, who, text))
    assert summary.messages == 3
