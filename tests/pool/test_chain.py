import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from herdr.pool.chain import Chain, chain_of, continues, first_change, section, setup, shared
from herdr.pool.request import ChatRequest, Message, Sampling, Text, Tool, ToolChoice

SYSTEM = Message("system", (Text("You are kind."),))
TOOLS = (Tool("ls", "List files", '{"type":"object"}'),)


def say(role: str, text: str) -> Message:
    return Message("user" if role == "user" else "assistant", (Text(text),))


def conversation(*texts: str, system: str = "S", tools: tuple[Tool, ...] = TOOLS) -> Chain:
    turns = [say("assistant" if index % 2 else "user", text) for index, text in enumerate(texts)]
    return chain_of(ChatRequest("m", (Message("system", (Text(system),)), *turns), tools))


def test_one_entry_for_each_section() -> None:
    request = ChatRequest("m", (SYSTEM, say("user", "hi"), say("assistant", "ho")), TOOLS)
    chain = chain_of(request)
    assert [section(index) for index in range(4)] == ["system", "tools", "message 1", "message 2"]
    assert len(set(chain)) == len(chain) == 4
    assert {len(digest) for digest in chain} == {32}


def test_system_and_tools_have_their_places_even_when_there_are_none() -> None:
    assert len(chain_of(ChatRequest("m", (say("user", "hi"),)))) == 3
    assert len(chain_of(ChatRequest("m", ()))) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "other"},
        {"stream": True, "include_usage": True, "hide_thinking": True},
        {"session": "s", "agent": "a", "route": "r", "priority": 0},
        {"sampling": Sampling(temperature=0.5), "max_tokens": 9, "tool_choice": ToolChoice("any")},
        {"tools": (replace(TOOLS[0], strict=True),)},
    ],
)
def test_what_does_not_render_is_no_part(changes: dict[str, object]) -> None:
    request = ChatRequest("m", (SYSTEM, say("user", "hi")), TOOLS)
    assert chain_of(replace(request, **changes)) == chain_of(request)


BASE = conversation("a", "b", "c")


@pytest.mark.parametrize(
    ("new", "entries", "change"),
    [
        (BASE, 5, None),
        (conversation("a", "b", "c", "d"), 5, None),
        (conversation("a", "b", "C"), 4, "message 3"),
        (conversation("a", "B", "c"), 3, "message 2"),
        (conversation("A", "b", "c"), 2, "message 1"),
        (conversation("a", "b", "c", tools=()), 1, "tools"),
        (conversation("a", "b", "c", tools=(replace(TOOLS[0], description="List"),)), 1, "tools"),
        (conversation("a", "b", "c", tools=(replace(TOOLS[0], parameters="{}"),)), 1, "tools"),
        (conversation("a", "b", "c", system="T"), 0, "system"),
        (conversation("a"), 3, "message 2"),
        ((), 0, "system"),
    ],
)
def test_where_two_prompts_part(new: Chain, entries: int, change: str | None) -> None:
    assert shared(BASE, new) == shared(new, BASE) == entries
    assert first_change(BASE, new) == change


def test_nothing_changed_where_nothing_was() -> None:
    assert first_change((), BASE) is None


def test_a_change_that_comes_late_is_named_by_its_first_section() -> None:
    longer = conversation("a", "X", "c", "d", "e")
    assert first_change(BASE, longer) == "message 2"


def test_the_setup_is_system_and_tools() -> None:
    assert setup(BASE) == setup(conversation("something else"))
    assert len(setup(BASE)) == 32
    assert setup(BASE) != setup(conversation("a", tools=()))
    assert setup(BASE) != setup(conversation("a", system="T"))


@pytest.mark.parametrize(
    ("held", "asked", "goes_on"),
    [
        (conversation("a", "b", "c"), conversation("a", "b", "c", "d", "e"), True),
        (conversation("a"), conversation("a", "b", "c"), True),
        (conversation("a", "b", "c"), conversation("a", "b", "c"), True),  # a retry
        (conversation("a", "b", "c"), conversation("a", "b", "C", "d", "e"), True),  # a notice was rewritten
        (conversation("a", "b", "c"), conversation("a", "b"), True),  # the user took the last turn back
        (conversation("a", "b"), conversation("a", "B", "c"), False),  # one greeting in common
        (conversation("a"), conversation("A"), False),
        (conversation("a", "b", "c", "d"), conversation("a", "b"), False),
        (conversation("a", "b", "c", "d", "e"), conversation("a", "b", "c", "D", "e"), False),
        (conversation(), conversation("a"), True),  # evaluated in advance
        ((), conversation("a"), False),
    ],
)
def test_who_gives_no_name_is_known_by_what_it_continues(held: Chain, asked: Chain, goes_on: bool) -> None:
    assert continues(held, asked) is goes_on


@settings(deadline=None)
@given(st.lists(st.text(max_size=3), max_size=6), st.lists(st.text(max_size=3), max_size=6))
def test_chains_agree_exactly_as_long_as_the_texts_do(a: list[str], b: list[str]) -> None:
    same = next(
        (i for i, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b))
    )
    assert shared(conversation(*a), conversation(*b)) == same + 2
