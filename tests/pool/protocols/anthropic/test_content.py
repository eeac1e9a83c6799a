import base64
import json
from typing import Any

import pytest

from herdr.errors import InvalidInput
from herdr.pool.protocols import anthropic
from herdr.pool.protocols.carried import pack
from herdr.pool.request import Image, Message, Part, Text, Thinking, ToolResult, ToolUse

PNG = "iVBORw0KGgo="


def parse(*messages: dict[str, Any], **fields: Any) -> tuple[Message, ...]:
    body = {"model": "m", "max_tokens": 10, "messages": messages, **fields}
    return anthropic.parse(json.dumps(body).encode()).messages


def parts(content: Any, role: str = "user") -> tuple[Part, ...]:
    (message,) = parse({"role": role, "content": content})
    assert message.role == role
    return message.parts


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": source}


def document(more: dict[str, Any] | None = None, **source: Any) -> dict[str, Any]:
    return {"type": "document", "source": source, **(more or {})}


PNG_BLOCK = image(type="base64", media_type="image/png", data=PNG)
MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h", "scope": "global"}}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("plain", [Text("plain")]),
        ("", []),
        ([], []),
        ([text("a"), text("b")], [Text("a"), Text("b")]),
        ([text("")], []),
        ([text(""), PNG_BLOCK], [Image("image/png", PNG)]),
        ([text("a", citations=[{"type": "char_location"}], **MARK)], [Text("a")]),
        ([PNG_BLOCK | MARK], [Image("image/png", PNG)]),
        ([image(type="url", url="https://x.example/a.png")], [Image(url="https://x.example/a.png")]),
        (
            [image(type="file", file_id="file_1")],
            [Text("[an image was here; images of source 'file' cannot be read by this gateway]")],
        ),
        ([document(type="text", media_type="text/plain", data="ä b")], [Text("ä b")]),
        (
            [document({"title": "Notes", "context": "Old", **MARK}, type="text", data="body")],
            [Text("Notes\nOld\n"), Text("body")],
        ),
        ([document({"title": None, "context": None}, type="text", data="body")], [Text("body")]),
        ([document(type="base64", media_type="text/plain", data=b64("ä b"))], [Text("ä b")]),
        ([document(type="base64", media_type="text/csv", data=b64("a,b"))], [Text("a,b")]),
        ([document(type="base64", media_type="text/plain", data="YeRi")], [Text("a\ufffdb")]),
        ([document(type="content", content="whole")], [Text("whole")]),
        (
            [document(type="content", content=[text("one"), PNG_BLOCK])],
            [Text("one"), Image("image/png", PNG)],
        ),
        (
            [document({"title": "Q3 report"}, type="base64", media_type="application/pdf", data="JVBE")],
            [
                Text("Q3 report\n"),
                Text("[a document was here; its content cannot be read by this gateway: application/pdf]"),
            ],
        ),
        (
            [document(type="url", url="https://x.example/a.pdf")],
            [
                Text(
                    "[a document was here; its content cannot be read by this gateway:"
                    " https://x.example/a.pdf]"
                )
            ],
        ),
        (
            [document(type="file", file_id="file_2")],
            [Text("[a document was here; its content cannot be read by this gateway: file_2]")],
        ),
        (
            [
                {
                    "type": "search_result",
                    "title": "T",
                    "source": "https://x.example",
                    "content": [text("hit")],
                }
            ],
            [Text("T\nhttps://x.example\n"), Text("hit")],
        ),
        ([{"type": "container_upload", "file_id": "file_3"}], []),
        ([{"type": "hologram", "text": 5, "source": [], "content": 7, "id": None}], []),
        ([text("a"), {"type": "hologram"}, text("b")], [Text("a"), Text("b")]),
    ],
)
def test_what_a_user_sends(block: Any, expected: list[Part]) -> None:
    assert parts(block) == tuple(expected)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "thinking", "thinking": "Hm", "signature": "EqQB"}, [Thinking("Hm")]),
        ({"type": "thinking", "thinking": "Hm", "signature": ""}, [Thinking("Hm")]),
        ({"type": "thinking", "thinking": "Hm"}, [Thinking("Hm")]),
        ({"type": "thinking", "thinking": "", "signature": pack("Hm ä😀\n")}, [Thinking("Hm ä😀\n")]),
        ({"type": "thinking", "thinking": "Hm", "signature": pack("other")}, [Thinking("Hm")]),
        ({"type": "thinking", "thinking": "", "signature": pack("")}, []),
        ({"type": "thinking", "thinking": "", "signature": "EqQB"}, []),
        ({"type": "thinking", "thinking": "", "signature": "herdr1:###"}, []),
        ({"type": "thinking", "thinking": "", "signature": "herdr1:/w=="}, []),  # not UTF-8
        ({"type": "thinking", "thinking": "", "signature": "herdr1:ä"}, []),
        ({"type": "thinking", "thinking": "", "signature": pack("Hm") + "!"}, []),
        ({"type": "thinking", "thinking": "", "signature": None}, []),
        ({"type": "redacted_thinking", "data": "EmwK"}, []),
        (
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"b": 1, "a": [2]}, **MARK},
            [ToolUse("t1", "Bash", '{"b": 1, "a": [2]}')],
        ),
        ({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}, [ToolUse("t1", "Bash", "{}")]),
        ({"type": "tool_use", "id": "t1", "name": "Bash"}, [ToolUse("t1", "Bash", "{}")]),
        ({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}, []),
        ({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "x"}]}, []),
        ({"type": "web_fetch_tool_result", "tool_use_id": "s1", "content": {"type": "x"}}, []),
        ({"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {"type": "x"}}, []),
        ({"type": "mcp_tool_use", "id": "s1", "name": "n", "server_name": "s", "input": {}}, []),
    ],
)
def test_what_an_assistant_said(block: dict[str, Any], expected: list[Part]) -> None:
    assert parts([block], "assistant") == tuple(expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("out", (Text("out"),)),
        ("", ()),
        (None, ()),
        ([], ()),
        ([text("a"), text(""), text("b")], (Text("a"), Text("b"))),
        ([text("shot"), PNG_BLOCK], (Text("shot"), Image("image/png", PNG))),
        ([[text("a")], [[text("b")], "c"]], (Text("a"), Text("b"), Text("c"))),
        (text("lone"), (Text("lone"),)),
        (["plain"], (Text("plain"),)),
        ([document(type="text", data="doc")], (Text("doc"),)),
        ([{"type": "tool_reference", "tool_name": "Grep"}], (Text("[the tool Grep can be called now]"),)),
        ([{"type": "browser_state", "tabs": []}, text("x")], (Text("x"),)),
        ([{"type": "tool_result", "content": "nested"}], ()),
    ],
)
def test_results_of_tools(content: Any, expected: tuple[Part, ...]) -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    assert parts([block]) == (ToolResult("t1", expected),)  # type: ignore[arg-type]


def test_a_result_may_have_no_content_and_may_be_an_error() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "a"},
        {"type": "tool_result", "tool_use_id": "b", "content": "boom", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c", "content": "fine", "is_error": False},
        {"type": "tool_result", "tool_use_id": "d", "content": "fine", "is_error": None},
    ]
    assert parts(blocks) == (
        ToolResult("a"),
        ToolResult("b", (Text("boom"),), True),
        ToolResult("c", (Text("fine"),)),
        ToolResult("d", (Text("fine"),)),
    )


def test_the_order_inside_a_message_is_the_clients() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "2", "content": "second"},
        text("between"),
        {"type": "tool_result", "tool_use_id": "1", "content": "first"},
        text("after"),
    ]
    assert parts(blocks) == (
        ToolResult("2", (Text("second"),)),
        Text("between"),
        ToolResult("1", (Text("first"),)),
        Text("after"),
    )


@pytest.mark.parametrize("written", ['{"b":1,  "a":[ 1.10, 1e3 ]}', '{\n "ä": "\\u00e4"\n}', '{"a":1,"a":2}'])
def test_arguments_keep_the_clients_own_text(written: str) -> None:
    body = (
        '{"model":"m","messages":[{"role":"assistant","content":'
        f'[{{"type":"tool_use","id":"t","name":"N","input":{written}}}]}}]}}'
    )
    assert anthropic.parse(body.encode()).messages[0].parts == (ToolUse("t", "N", written),)


@pytest.mark.parametrize(
    ("role", "block", "path"),
    [
        ("user", {"text": "a"}, ".type"),
        ("user", {"type": None}, ".type"),
        ("user", {"type": ["text"]}, ".type"),
        ("user", {"type": ""}, ".type"),
        ("user", {"type": "text"}, ".text"),
        ("user", {"type": "text", "text": None}, ".text"),
        ("user", {"type": "text", "text": ["a"]}, ".text"),
        ("user", {"type": "image"}, ".source"),
        ("user", {"type": "image", "source": "x"}, ".source"),
        ("user", image(data=PNG), ".source.type"),
        ("user", image(type="base64", data=PNG), ".source.media_type"),
        ("user", image(type="base64", media_type="image/png", data=""), ".source.data"),
        ("user", image(type="url", url=7), ".source.url"),
        ("user", document(type="text"), ".source.data"),
        ("user", document(type="base64", media_type="text/plain", data="A"), ".source.data"),
        ("user", document(type="base64", media_type="text/plain", data="ää=="), ".source.data"),
        ("user", document(type="content", content=[{"type": "text"}]), ".source.content[0].text"),
        ("user", {"type": "tool_result", "content": "x"}, ".tool_use_id"),
        ("user", {"type": "tool_result", "tool_use_id": "t", "content": 5}, ".content"),
        ("user", {"type": "tool_result", "tool_use_id": "t", "content": ["a", [7]]}, ".content[1][0]"),
        ("user", {"type": "tool_result", "tool_use_id": "t", "content": [{}]}, ".content[0].type"),
        ("user", {"type": "tool_result", "tool_use_id": "t", "is_error": "yes"}, ".is_error"),
        ("user", {"type": "tool_use", "id": "t", "name": "N", "input": {}}, ".type"),
        ("user", {"type": "thinking", "thinking": "x"}, ".type"),
        ("assistant", {"type": "tool_result", "tool_use_id": "t"}, ".type"),
        ("assistant", {"type": "thinking", "thinking": 1}, ".thinking"),
        ("assistant", {"type": "tool_use", "name": "N", "input": {}}, ".id"),
        ("assistant", {"type": "tool_use", "id": "", "name": "N", "input": {}}, ".id"),
        ("assistant", {"type": "tool_use", "id": "t", "input": {}}, ".name"),
        ("assistant", {"type": "tool_use", "id": "t", "name": "N", "input": "{}"}, ".input"),
        ("assistant", {"type": "tool_use", "id": "t", "name": "N", "input": []}, ".input"),
        ("assistant", {"type": "tool_use", "id": "t", "name": "N", "input": None}, ".input"),
    ],
)
def test_a_wrong_block_is_refused_with_its_path(role: str, block: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse({"role": "user", "content": "go"}, {"role": role, "content": [text("a"), block]})
    (error,) = raised.value.errors
    assert error.field == f"messages[1].content[1]{path}"
    assert raised.value.detail == f"{error.field}: {error.message}"


def test_lists_nested_too_deeply_are_refused() -> None:
    content: Any = "x"
    for _ in range(8):
        content = [content]
    result = {"type": "tool_result", "tool_use_id": "t", "content": content}
    assert parts([result]) == (ToolResult("t", (Text("x"),)),)
    with pytest.raises(InvalidInput, match="nested more than 8 deep"):
        parts([result | {"content": [content]}])


@pytest.mark.parametrize("depth", [2, 400, 100_000])
def test_documents_in_documents_end_somewhere(depth: int) -> None:
    content = '[{"type":"document","source":{"type":"content","content":' * depth + '"x"' + "}}]" * depth
    body = f'{{"messages":[{{"role":"user","content":{content}}}]}}'.encode()
    if depth == 2:
        assert anthropic.parse(body).messages[0].parts == (Text("x"),)
    else:
        with pytest.raises(InvalidInput, match="nested too deeply"):
            anthropic.parse(body)


def test_system_prompts_and_system_messages_in_the_middle() -> None:
    note = {"role": "system", "content": [text("note", **MARK)]}
    messages = parse(
        {"role": "user", "content": "hi"},
        note,
        {"role": "assistant", "content": "yo"},
        {"role": "system", "content": "note"},
        system=[text("x-anthropic-billing-header: cch=1;"), text("You are", **MARK)],
    )
    assert messages == (
        Message("system", (Text("x-anthropic-billing-header: cch=1;"), Text("You are"))),
        Message("user", (Text("hi"),)),
        Message("system", (Text("note"),)),
        Message("assistant", (Text("yo"),)),
        Message("system", (Text("note"),)),
    )


@pytest.mark.parametrize("system", [None, "", [], [text("")]])
def test_no_system_prompt_no_message(system: Any) -> None:
    assert parse({"role": "user", "content": "hi"}, system=system) == (Message("user", (Text("hi"),)),)


def test_a_system_prompt_of_one_text() -> None:
    first, _ = parse({"role": "user", "content": "hi"}, system="Be brief.")
    assert first == Message("system", (Text("Be brief."),))
