import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.context.sessions.message import (
    CALLS_MAX,
    COMMAND_MAX,
    DEPTH_MAX,
    FILES_MAX,
    PARTS_MAX,
    Call,
    Message,
    read_message,
)

FIELDS = (
    *("role", "content", "text", "type", "tool", "name", "input", "files", "path", "command", "id", "output"),
    *("tool_calls", "function", "arguments", "stdout", "is_error", "exit_code"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner | st.sampled_from(["tool_use", "tool_result", "text", "user", "tool", "thinking"]),
            max_size=5,
        )
    ),
    max_leaves=25,
)
TYPES = ("session.message", "user.message", "assistant.message", "tool.result", "custom.kind")


def read(data: Any, type: str = "session.message") -> Message:
    return read_message(data, type=type, seq=7, id="e1", source="cursor", time_us=5)


@pytest.mark.parametrize(
    "type, data, role, text",
    [
        ("session.message", {"role": "user", "content": "hello"}, "user", "hello"),
        (
            "session.message",
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, "b"]},
            "assistant",
            "a\n\nb",
        ),
        ("session.message", {"role": "developer", "content": "be brief"}, "system", "be brief"),
        ("user.message", "plain words", "user", "plain words"),
        ("user.message", {"prompt": "do it"}, "user", "do it"),
        ("user.message", {"message": {"content": "inner"}}, "user", "inner"),
        ("assistant.message", {"text": "fine"}, "assistant", "fine"),
        ("tool.result", "3 passed", "tool", "3 passed"),
        ("tool.result", {"output": "ok"}, "tool", "ok"),
        ("tool.result", {"tool_response": {"stdout": "out", "stderr": "err"}}, "tool", "out\n\nerr"),
        ("session.message", 42, "user", "42"),
        ("session.message", None, "user", ""),
        ("session.message", {"role": ["?"], "content": {"deep": 1}}, "user", ""),
    ],
)
def test_the_text_and_who_said_it(type: str, data: Any, role: str, text: str) -> None:
    message = read(data, type)
    assert (message.role, message.text) == (role, text)
    assert (message.seq, message.id, message.source, message.time_us) == (7, "e1", "cursor", 5)


def test_calls_are_read_from_blocks_and_reasoning_is_dropped() -> None:
    message = read(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "secret thoughts"},
                {"type": "reasoning", "text": "more of them"},
                {"type": "text", "text": "Now the edit."},
                {"type": "tool_use", "id": "c1", "name": "Edit", "input": {"file_path": "src/a.py"}},
                {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "pytest -q"}},
            ],
        }
    )
    assert message.text == "Now the edit."
    assert message.calls == (Call("Edit", files=("src/a.py",), id="c1"), Call("Bash", "pytest -q", id="c2"))


@pytest.mark.parametrize(
    "call",
    [
        {
            "id": "c1",
            "name": "Edit",
            "arguments": '{"path": "src\\\\a.py", "files": ["b.py", {"path": "c.py"}]}',
        },
        {
            "id": "c1",
            "function": {"name": "Edit", "arguments": {"path": "src/a.py", "paths": ["b.py", "c.py"]}},
        },
    ],
)
def test_calls_are_read_from_both_apis(call: dict[str, Any]) -> None:
    message = read({"role": "assistant", "content": "", "tool_calls": [call, "odd", None]})
    assert message.calls == (Call("Edit", files=("src/a.py", "b.py", "c.py"), id="c1"),)


def test_what_a_tool_answered() -> None:
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "no"}],
            "is_error": True,
        }
    ]
    message = read({"role": "user", "content": blocks})
    assert (message.role, message.text, message.answers, message.failed) == ("tool", "no", "c1", True)
    said = read({"role": "user", "content": [*blocks, {"type": "text", "text": "go on"}]})
    assert (said.role, said.text) == ("user", "go on")


def test_a_result_that_brings_its_call_along() -> None:
    message = read(
        {"tool_name": "Bash", "tool_input": {"command": "make"}, "output": "", "exit_code": 2}, "tool.result"
    )
    assert (message.tool, message.failed) == ("Bash", True)
    assert message.calls == (Call("Bash", "make"),)


def test_a_command_is_kept_without_the_files_it_spells_out() -> None:
    command = "cat > a.py <<'X'\n" + "x = 1\n" * 500 + "X\npytest tests/a"
    [call] = read(
        {"role": "assistant", "tool_calls": [{"name": "sh", "arguments": {"command": command}}]}
    ).calls
    assert call.command == "cat > a.py <<'X'\npytest tests/a"
    long = "echo " + "a" * 500 + " && pytest"
    [call] = read({"role": "assistant", "tool_calls": [{"name": "sh", "arguments": {"command": long}}]}).calls
    assert len(call.command) <= COMMAND_MAX and call.command.endswith("&& pytest")


def test_what_is_too_much_is_left_out() -> None:
    deep: Any = "bottom"
    for _ in range(DEPTH_MAX + 5):
        deep = [deep]
    assert read({"content": deep}).text == ""
    many = read({"content": ["x"] * (PARTS_MAX + 50)}).text
    assert PARTS_MAX - 10 <= many.count("x") <= PARTS_MAX
    calls = read({"role": "assistant", "tool_calls": [{"name": "a"}] * 500}).calls
    assert len(calls) == CALLS_MAX
    assert len(read({"content": "x", "files": [f"{n}.py" for n in range(500)]}).files) == FILES_MAX


def test_arguments_nested_without_end_are_no_error() -> None:
    message = read({"role": "assistant", "tool_calls": [{"name": "a", "arguments": "[" * 100_000}]})
    assert message.calls[0].name == "a"


def test_arguments_that_no_store_could_hold_are_taken_for_a_command() -> None:
    message = read({"role": "assistant", "tool_calls": [{"name": "a", "arguments": '{"path": "\\ud800"}'}]})
    assert message.calls == (Call("a", '{"path": "\\ud800"}'),)


@given(JSON, st.sampled_from(TYPES))
def test_nothing_makes_it_raise(data: Any, type: str) -> None:
    message = read(data, type)
    assert message.text == message.text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass")
    assert all(isinstance(path, str) for path in message.files)
    json.dumps([message.text, message.tool, message.answers])
