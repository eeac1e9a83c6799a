from itertools import pairwise

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from herdr.errors import InvalidInput
from herdr.pool.canonical import Canonical, canonical
from herdr.pool.chain import first_change, shared
from herdr.pool.joins import join_key
from herdr.pool.request import (
    ChatRequest,
    Image,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
)

MAIN = "x-anthropic-billing-header: cc_version=2.1.328.b7f; cc_entrypoint=sdk-cli;"
SUB = "x-anthropic-billing-header: cc_version=2.1.328.256; cc_entrypoint=sdk-cli; cc_is_subagent=true;"
OLD = "x-anthropic-billing-header: cc_version=2.1.100.abc; cc_entrypoint=cli; cch=a5145;"
USE, RESULT = ToolUse("t1", "ls", '{"b":1,"a":2}'), ToolResult("t1", (Text("file"),))


def m(role: Role, *parts: Part | str) -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))


def of(*messages: Message) -> Canonical:
    return canonical(ChatRequest("m", messages))


@pytest.mark.parametrize(
    ("name", "messages", "expected"),
    [
        ("as it is", [m("system", "S"), m("user", "hi")], [m("system", "S"), m("user", "hi")]),
        ("a block", [m("system", MAIN, "You"), m("user", "hi")], [m("system", "You"), m("user", "hi")]),
        (
            "a message",
            [m("system", MAIN), m("system", "You"), m("user", "a")],
            [m("system", "You"), m("user", "a")],
        ),
        ("a line", [m("system", f"{MAIN}\nYou"), m("user", "hi")], [m("system", "You"), m("user", "hi")]),
        ("glued", [m("system", f"{OLD}You"), m("user", "hi")], [m("system", "You"), m("user", "hi")]),
        ("nothing else", [m("system", MAIN), m("user", "hi")], [m("user", "hi")]),
        ("in the middle", [m("user", "a"), m("system", f"{MAIN}\nb")], [m("user", "a\n\nb")]),
        ("the user's own", [m("user", MAIN)], [m("user", MAIN)]),
        (
            "a tool's",
            [m("user", ToolResult("t", (Text(MAIN),)))],
            [m("user", ToolResult("t", (Text(MAIN),)))],
        ),
        ("the model's", [m("user", "a"), m("assistant", SUB)], [m("user", "a"), m("assistant", SUB)]),
        (
            "leading system messages",
            [m("system", "A"), m("system", "B", "C"), m("user", "hi")],
            [m("system", "A\n\nB\n\nC"), m("user", "hi")],
        ),
        (
            "later system messages",
            [m("system", "A"), m("user", "b"), m("assistant", "c"), m("system", "d"), m("user", "e")],
            [m("system", "A"), m("user", "b"), m("assistant", "c"), m("user", "d\n\ne")],
        ),
        (
            "a system message between a call and its result",
            [m("user", "a"), m("assistant", USE), m("system", "n"), m("user", RESULT)],
            [m("user", "a"), m("assistant", USE), m("user", "n", RESULT)],
        ),
        ("empty texts", [m("user", "", Image(url="u"), "")], [m("user", Image(url="u"))]),
        ("empty messages", [m("user", "a"), m("assistant", ""), m("user", "b")], [m("user", "a\n\nb")]),
        (
            "empty thinking",
            [m("user", "a"), m("assistant", Thinking(""), "b")],
            [m("user", "a"), m("assistant", "b")],
        ),
        (
            "calls of one turn as messages of their own",
            [m("user", "a"), m("assistant", "b"), m("assistant", USE), m("user", RESULT), m("user", "c")],
            [m("user", "a"), m("assistant", "b", USE), m("user", RESULT, "c")],
        ),
        (
            "exact repeats of an answer",
            [m("user", "a"), m("assistant", "b", USE), m("assistant", "b", USE), m("user", RESULT)],
            [m("user", "a"), m("assistant", "b", USE), m("user", RESULT)],
        ),
        ("repeats of the user", [m("user", "a"), m("user", "a")], [m("user", "a\n\na")]),
        (
            "answers that only look alike",
            [m("user", "a"), m("assistant", USE), m("assistant", ToolUse("t2", USE.name, USE.arguments))],
            [m("user", "a"), m("assistant", USE, ToolUse("t2", USE.name, USE.arguments))],
        ),
        (
            "the same answer to two questions",
            [m("user", "a"), m("assistant", "b"), m("user", "c"), m("assistant", "b")],
            [m("user", "a"), m("assistant", "b"), m("user", "c"), m("assistant", "b")],
        ),
        (
            "results in blocks",
            [
                m(
                    "user",
                    ToolResult("t", (Text("a"), Text(""), Text("b"), Image(url="u")), True),
                    ToolResult("v"),
                )
            ],
            [m("user", ToolResult("t", (Text("a\n\nb"), Image(url="u")), True), ToolResult("v"))],
        ),
        (
            "thinking, byte for byte",
            [m("user", "a"), m("assistant", Thinking(" \n"), Thinking("x "), " b\n")],
            [m("user", "a"), m("assistant", Thinking(" \n"), Thinking("x "), " b\n")],
        ),
        (
            "the assistant first",
            [m("assistant", "hi"), m("user", "a")],
            [m("assistant", "hi"), m("user", "a")],
        ),
        ("system alone", [m("system", "A"), m("system", "B")], [m("system", "A\n\nB")]),
    ],
)
def test_one_form(name: str, messages: list[Message], expected: list[Message]) -> None:
    assert of(*messages).request.messages == tuple(expected), name


@pytest.mark.parametrize(
    "messages", [(), (m("user", ""),), (m("system", MAIN), m("user")), (m("system", MAIN),)]
)
def test_a_request_that_says_nothing_is_refused(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        of(*messages)
    assert [error.field for error in refused.value.errors] == ["messages"]


@pytest.mark.parametrize(
    ("system", "flagged"),
    [
        ([SUB, "You"], True),
        ([f"{SUB}\nYou"], True),
        ([f"{SUB}You"], True),
        ([MAIN, "You"], False),
        ([MAIN, "You say cc_is_subagent=true;"], False),
    ],
)
def test_the_sub_agent_flag_is_read_before_it_goes(system: list[str], flagged: bool) -> None:
    found = of(m("system", *system), m("user", SUB))
    assert found.sub_agent is flagged
    assert SUB not in repr(found.request.messages[0])


def test_the_rest_of_the_request_stays() -> None:
    tools = (Tool("b", "B", '{"z":1,"a":2}'), Tool("a"))
    request = ChatRequest(
        "m", (m("user", "hi"),), tools, stream=True, include_usage=True, session="s", agent="a"
    )
    assert canonical(request).request == request


def test_the_chain_is_that_of_the_one_form() -> None:
    found = of(m("system", MAIN), m("system", "A"), m("user", "a"), m("system", "b"), m("assistant", "c"))
    assert len(found.chain) == 4


# What changes from turn to turn in Claude Code's requests: (first turn, later turn, first section that changed)
EARLIER = (m("system", MAIN, "Id", "Prompt"), m("user", "hi"), m("system", "env"))
ANSWER = (m("assistant", "yes", USE), m("user", RESULT))


@pytest.mark.parametrize(
    ("name", "later", "change"),
    [
        ("it only grew", (*EARLIER, *ANSWER), None),
        ("another version", (m("system", MAIN.replace("b7f", "093"), "Id", "Prompt"), *EARLIER[1:]), None),
        (
            "a rotating checksum",
            (m("system", OLD.replace("a5145", "0ff1c"), "Id", "Prompt"), *EARLIER[1:]),
            None,
        ),
        ("no line at all", (m("system", "Id", "Prompt"), *EARLIER[1:]), None),
        ("system as one string", (m("system", f"{MAIN}\nId\n\nPrompt"), *EARLIER[1:], *ANSWER), None),
        ("a message in two blocks", (EARLIER[0], m("user", "hi", "env"), *ANSWER), None),
        ("a notice at the end", (*EARLIER, *ANSWER, m("system", "9 tokens left")), None),
        ("another prompt", (m("system", MAIN, "Id", "Other"), *EARLIER[1:]), "system"),
        ("a moved notice", (*EARLIER[:2], *ANSWER, EARLIER[2]), "message 1"),
        ("text of the user", (EARLIER[0], m("user", "ho"), *EARLIER[2:]), "message 1"),
    ],
)
def test_turns_of_claude_code(name: str, later: tuple[Message, ...], change: str | None) -> None:
    old, new = of(*EARLIER), of(*later)
    assert first_change(old.chain, new.chain) == change, name


def test_a_growing_last_notice_spoils_only_the_last_message() -> None:
    turn = (*EARLIER, *ANSWER)
    old = of(*turn, m("system", "9 tokens left"))
    new = of(*turn, m("assistant", "done"), m("user", "more"), m("system", "8 tokens left"))
    assert first_change(old.chain, new.chain) == "message 3"
    assert shared(old.chain, new.chain) == len(old.chain) - 1


def test_text_that_appears_in_an_earlier_answer_is_named() -> None:
    old = of(*EARLIER, m("assistant", USE), m("user", RESULT))
    new = of(*EARLIER, m("assistant", "a notice came", USE), m("user", RESULT), m("assistant", "ok"))
    assert first_change(old.chain, new.chain) == "message 2"


def test_main_and_sub_agent_share_no_section() -> None:
    main = of(m("system", MAIN, "Id", "Main prompt"), m("user", "hi"))
    sub = of(m("system", SUB, "Id", "Explore"), m("user", "hi"))
    assert shared(main.chain, sub.chain) == 0


# Properties

texts = st.text(st.characters(codec="utf-8", max_codepoint=0x2FF), max_size=6)
results = st.builds(
    ToolResult,
    st.sampled_from("tu"),
    st.lists(st.builds(Text, texts) | st.builds(Image, url=texts), max_size=3).map(tuple),
    st.booleans(),
)
user_parts = st.builds(Text, texts) | results | st.builds(Image, url=texts)
assistant_parts = (
    st.builds(Text, texts)
    | st.builds(Thinking, texts)
    | st.builds(ToolUse, st.sampled_from("tu"), st.just("ls"), st.sampled_from(["{}", '{"a": 1}']))
)
system_parts = st.builds(
    Text, texts | st.sampled_from([MAIN, SUB, f"{OLD}You", f"{MAIN}\nYou", f"a\n{MAIN}"])
)


def messages_of(role: Role, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Message]:
    return st.builds(Message, st.just(role), st.lists(parts, max_size=3).map(tuple))


conversations = st.lists(
    messages_of("system", system_parts)
    | messages_of("user", user_parts)
    | messages_of("assistant", assistant_parts),
    max_size=8,
)
tool_sets = st.sampled_from([(), (Tool("ls"),), (Tool("ls"), Tool("rm", "Remove"))])


def form(messages: list[Message], tools: tuple[Tool, ...] = ()) -> Canonical:
    try:
        return canonical(ChatRequest("m", tuple(messages), tools))
    except InvalidInput:
        assume(False)
        raise


@settings(deadline=None)
@given(conversations, tool_sets)
def test_doing_it_again_changes_nothing(messages: list[Message], tools: tuple[Tool, ...]) -> None:
    once = form(messages, tools)
    again = canonical(once.request)
    assert again == replace(once, sub_agent=False)


@settings(deadline=None)
@given(conversations)
def test_roles_alternate_and_nothing_is_empty(messages: list[Message]) -> None:
    roles = [message.role for message in form(messages).request.messages]
    assert "system" not in roles[1:]
    assert all(left != right for left, right in pairwise(roles))
    for message in form(messages).request.messages:
        assert message.parts
        assert not any(isinstance(part, Text | Thinking) and not part.text for part in message.parts)


def rewritten(message: Message, index: int) -> Message:
    """Return the same message as another client would write it."""
    if message.role == "system" and index == 0:
        return Message("system", (Text(OLD), *message.parts))
    return Message(message.role, (Text(""), *message.parts, Text("")))


def apart(message: Message) -> list[Message]:
    """Return each part as a message; not the assistant's, whose repeats are one."""
    return (
        [message]
        if message.role == "assistant"
        else [Message(message.role, (part,)) for part in message.parts]
    )


@settings(deadline=None)
@given(conversations, tool_sets)
def test_ways_of_writing_one_prompt_are_one_prompt(messages: list[Message], tools: tuple[Tool, ...]) -> None:
    one = form(messages, tools)
    written = [rewritten(message, index) for index, message in enumerate(messages)]
    split = [one for message in written for one in apart(message)]
    for other in (written, split):
        same = form(other, tools)
        assert same.request == one.request
        assert same.chain == one.chain
        assert join_key(same, "local") == join_key(one, "local")


@settings(deadline=None)
@given(conversations, st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), tool_sets)
def test_a_conversation_that_only_grew_keeps_its_prompt_as_prefix(
    messages: list[Message], asked: str, answered: str, next_: str, tools: tuple[Tool, ...]
) -> None:
    old = form([*messages, m("user", asked)], tools)
    new = form([*messages, m("user", asked), m("assistant", answered), m("system", next_)], tools)
    assert new.chain[: len(old.chain)] == old.chain
    assert first_change(old.chain, new.chain) is None
    assert len(new.chain) == len(old.chain) + 2
    rendered = msgspec.json.encode(old.request.messages).removesuffix(b"]")
    assert msgspec.json.encode(new.request.messages).startswith(rendered + b",")
