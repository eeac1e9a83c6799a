"""The shared context over whole conversations: what is looked up and put back, and that the prompt only grows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from fake_contexts import FakeContexts, excerpt
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_time import VirtualClock, pass_time, run

from herdr.pool.canonical import canonical
from herdr.pool.chain import first_change
from herdr.pool.identity import Caller
from herdr.pool.inset import Report, Told
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.request import ChatRequest, ContextWish, Message, Text, Tool
from herdr.pool.run import Inquiry
from herdr.pool.shared_context import AT_ONCE_MAX, FIRST_LOOK_S, LARGE_TOKENS, LATER_LOOK_S, SharedContext

EVERYTHING = ContextWish(True, 1024, ("a.py",))
TOOLS = (Tool("f"),)


def texts() -> FakeContexts:
    return FakeContexts({"s-1": "Decided: no globals."}, {"a.py": "def a()"}, {"default": "src/a.py"})


def inquiry(*turns: str, agent: str | None = "ann", session: str | None = "s-1") -> Inquiry:
    said = [Message(("user", "assistant")[n % 2], (Text(turn),)) for n, turn in enumerate(turns)]  # type: ignore[arg-type]
    own = canonical(ChatRequest("m", (Message("system", (Text("be brief"),)), *said), TOOLS))
    caller = Caller(agent, session, "primary_agent", 5, False, False, False)
    return Inquiry(own, caller, estimate_tokens(own.request), turns[-1])


def prompt(asked: Inquiry) -> list[str]:
    """The texts of the user's messages as the model gets them."""
    messages = asked.canonical.request.messages
    return ["".join(p.text for p in m.parts if isinstance(p, Text)) for m in messages if m.role == "user"]


def told(text: str) -> Told:
    got = excerpt(text)
    return Told(got.ref, got.tokens)


async def ask(
    shared: SharedContext, *turns: str, wish: ContextWish | None = EVERYTHING, **who: Any
) -> Inquiry:
    return (await shared.put_in(inquiry(*turns, **who), wish))[0]


def grew(old: Inquiry, new: Inquiry) -> bool:
    """Tell whether the prompt is the old one with more behind it, byte for byte."""
    rendered = msgspec.json.encode(old.canonical.request.messages).removesuffix(b"]")
    again = msgspec.json.encode(new.canonical.request.messages)
    return (
        again.startswith(rendered + b",") and first_change(old.canonical.chain, new.canonical.chain) is None
    )


def play(main: Callable[[VirtualClock], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        await main(clock)

    run(whole(), clock)


async def test_the_first_turn_gets_everything_in_front_of_the_users_words() -> None:
    contexts = texts()
    own = inquiry("hi")
    asked, report = await SharedContext(contexts, 99).put_in(own, EVERYTHING)
    (said,) = prompt(asked)
    assert all(text in said for text in ("src/a.py", "def a()", "Decided: no globals."))
    assert said.endswith("\n\nhi")
    assert report == Report(told("Decided: no globals."), told("src/a.py"), {"a.py": told("def a()")})
    assert sorted(contexts.asked, key=str) == [
        ("map", "default", 1024, ("a.py",)),
        ("outline", "default", "a.py"),
        ("session", "s-1", 99),
    ]
    assert asked.canonical.chain[:2] == own.canonical.chain[:2]
    assert asked.prompt_estimate == estimate_tokens(asked.canonical.request) > own.prompt_estimate
    assert asked.user_text == "hi"


async def test_later_turns_put_back_the_same_bytes_and_ask_for_files_only() -> None:
    contexts = texts()
    shared = SharedContext(contexts)
    first = await ask(shared, "hi")
    contexts.sessions["s-1"], contexts.maps["default"] = "other", "other"
    contexts.asked.clear()
    second, report = await shared.put_in(inquiry("hi", "hello", "go"), EVERYTHING)
    assert grew(first, second)
    assert contexts.asked == [("outline", "default", "a.py")]
    assert prompt(second)[1] == "go"
    assert report is not None and report.map == told("src/a.py"), (
        "what the prompt holds, not what there is now"
    )


async def test_a_file_that_changed_comes_with_the_newest_message_and_stays_there() -> None:
    contexts = texts()
    shared = SharedContext(contexts)
    first = await ask(shared, "hi")
    contexts.files["a.py"] = "def a(x)"
    second, report = await shared.put_in(inquiry("hi", "hello", "go"), EVERYTHING)
    assert "def a(x)" in prompt(second)[1] and "src/a.py" not in prompt(second)[1]
    assert report is not None and report.files == {"a.py": told("def a(x)")}
    third = await ask(shared, "hi", "hello", "go", "done", "and now?")
    assert grew(first, second) and grew(second, third)
    assert prompt(third)[2] == "and now?"


async def test_the_same_turn_again_is_the_same_prompt() -> None:
    contexts = texts()
    shared = SharedContext(contexts)
    first = await ask(shared, "hi")
    assert await ask(shared, "hi") == first
    contexts.files["a.py"] = "def a(x)"
    turns = ("hi", "hello", "go")
    second = await ask(shared, *turns)
    contexts.files["a.py"] = "def a(x, y)"
    assert await ask(shared, *turns) == second, "a retry: it may join, and the slot holds it already"


async def test_blocks_are_put_back_also_where_a_later_turn_does_not_ask() -> None:
    shared = SharedContext(texts())
    first = await ask(shared, "hi")
    second, report = await shared.put_in(inquiry("hi", "hello", "go"), None)
    assert grew(first, second) and report is None


async def test_a_conversation_without_context_is_left_alone() -> None:
    contexts = texts()
    own = inquiry("hi")
    assert await SharedContext(contexts).put_in(own, None) == (own, None)
    assert contexts.asked == []


async def test_who_begins_to_ask_on_a_later_turn_keeps_the_beginning() -> None:
    shared = SharedContext(texts())
    first = await ask(shared, "hi", wish=None)
    second = await ask(shared, "hi", "hello", "go")
    third = await ask(shared, "hi", "hello", "go", "done", "and?")
    assert grew(first, second) and grew(second, third)
    assert prompt(second)[0] == "hi" and "src/a.py" in prompt(second)[1]


async def test_a_new_conversation_with_the_same_words_gets_what_is_true_now() -> None:
    contexts = texts()
    shared = SharedContext(contexts)
    await ask(shared, "hi")
    contexts.maps["default"] = "src/b.py"
    assert "src/b.py" in prompt(await ask(shared, "hi"))[0]
    await ask(shared, "hi", wish=None)
    assert prompt(await ask(shared, "hi", "hello", "go", wish=None)) == ["hi", "go"]


async def test_one_that_begins_alike_does_not_cost_the_other_its_later_blocks() -> None:
    contexts = texts()
    shared = SharedContext(contexts)
    await ask(shared, "hi")
    contexts.files["a.py"] = "def a(x)"
    second = await ask(shared, "hi", "hello", "go")
    contexts.files["a.py"] = "def a()"
    await ask(shared, "hi")
    contexts.files["a.py"] = "def a(x)"
    assert grew(second, await ask(shared, "hi", "hello", "go", "done", "and?"))


@pytest.mark.parametrize("who", [{"agent": "bob"}, {"session": "s-2"}, {"agent": None}, {"session": None}])
async def test_others_who_say_the_same_get_blocks_of_their_own(who: dict[str, Any]) -> None:
    shared = SharedContext(texts())
    await ask(shared, "hi")
    assert prompt(await ask(shared, "hi", "hello", "go", wish=None, **who)) == ["hi", "go"]


async def test_after_a_restart_the_block_is_made_anew_at_the_first_message() -> None:
    contexts = texts()
    first = await ask(SharedContext(contexts), "hi")
    second = await ask(SharedContext(contexts), "hi", "hello", "go")
    assert grew(first, second), "nothing has changed, so the bytes are the same"
    contexts.maps["default"] = "src/b.py"
    shared = SharedContext(contexts)
    second = await ask(shared, "hi", "hello", "go")
    third = await ask(shared, "hi", "hello", "go", "done", "and?")
    assert not grew(first, second) and grew(second, third)


async def test_what_cannot_be_had_at_first_does_not_move_the_beginning_later() -> None:
    contexts = texts()
    files = contexts.files
    contexts.files = {}
    shared, wish = SharedContext(contexts), ContextWish(files=("a.py",))
    first = await ask(shared, "hi", wish=wish)
    assert prompt(first) == ["hi"]
    contexts.files = files
    second = await ask(shared, "hi", "hello", "go", wish=wish)
    assert grew(first, second) and "def a()" in prompt(second)[1]


async def test_without_a_session_there_is_no_window() -> None:
    contexts = texts()
    _, report = await SharedContext(contexts).put_in(inquiry("hi", session=None), ContextWish(session=True))
    assert report == Report(Told(unavailable="no_session")) and contexts.asked == []


async def test_what_fails_does_not_fail_the_call(caplog: pytest.LogCaptureFixture) -> None:
    contexts = texts()
    contexts.broken.add("default")
    contexts.files["a.py"] = "\ud800"
    asked, report = await SharedContext(contexts).put_in(inquiry("hi"), EVERYTHING)
    failed = Told(unavailable="failed")
    assert report == Report(told("Decided: no globals."), failed, {"a.py": failed})
    assert "planted" in caplog.text
    msgspec.json.encode(asked.canonical.request.messages)
    contexts = FakeContexts()
    own = inquiry("hi")
    asked, report = await SharedContext(contexts).put_in(own, EVERYTHING)
    assert asked == own
    assert report == Report(
        Told(unavailable="unknown_session"),
        Told(unavailable="unknown_workspace"),
        {"a.py": Told(unavailable="unknown_file")},
    )


async def test_a_gateway_without_context_says_so() -> None:
    own = inquiry("hi")
    asked, report = await SharedContext().put_in(own, EVERYTHING)
    missing = Told(unavailable="not_served")
    assert asked == own and report == Report(missing, missing, {"a.py": missing})


def test_what_takes_too_long_is_left_out() -> None:
    async def main(clock: VirtualClock) -> None:
        contexts = texts()
        contexts.late["a.py"] = asyncio.Event()
        shared = SharedContext(contexts)
        asked, report = await shared.put_in(inquiry("hi"), EVERYTHING)
        assert clock.now == FIRST_LOOK_S and "src/a.py" in prompt(asked)[0]
        assert report is not None and report.files == {"a.py": Told(unavailable="timeout")}
        began = clock.now
        await ask(shared, "hi", "hello", "go")
        assert clock.now - began == LATER_LOOK_S
        assert contexts.under_way == 0

    play(main)


def test_all_is_looked_up_at_the_same_time_but_not_too_much() -> None:
    async def main(clock: VirtualClock) -> None:
        contexts = texts()
        gate = asyncio.Event()
        files = tuple(f"{n}.py" for n in range(32))
        contexts.late = dict.fromkeys((*files, "default", "s-1"), gate)
        asking = asyncio.create_task(ask(SharedContext(contexts), "hi", wish=ContextWish(True, 64, files)))
        await pass_time(0.1)
        assert contexts.under_way == AT_ONCE_MAX
        gate.set()
        await asking
        assert len(contexts.asked) == 34

    play(main)


async def test_two_turns_at_once_keep_each_others_blocks() -> None:
    contexts = texts()
    shared = SharedContext(contexts)
    await ask(shared, "hi")
    contexts.files["a.py"] = "def a(x)"
    one, other = await asyncio.gather(ask(shared, "hi", "hello", "go"), ask(shared, "hi", "hello", "stop"))
    for turn, before in (("go", one), ("stop", other)):
        assert grew(before, await ask(shared, "hi", "hello", turn, "done", "and?"))


async def test_a_large_prompt_is_put_together_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[str] = []
    real = asyncio.to_thread

    async def seen(function: Any, *args: Any) -> Any:
        there.append(function.__name__)
        return await real(function, *args)

    monkeypatch.setattr(asyncio, "to_thread", seen)
    shared = SharedContext(texts())
    await ask(shared, "hi")
    assert there == []
    asked = await ask(shared, "word " * LARGE_TOKENS)
    assert there == ["inset"] and "src/a.py" in prompt(asked)[0]


TURN = st.tuples(
    st.text("ab", min_size=1, max_size=3),
    st.sampled_from([None, EVERYTHING, ContextWish(files=("a.py", "b.py")), ContextWish(True)]),
    st.dictionaries(st.sampled_from(["a.py", "b.py", "default", "s-1"]), st.sampled_from(["", "1", "2"])),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(TURN, min_size=2, max_size=6))
def test_whatever_is_asked_and_changes_the_prompt_only_grows(turns: Sequence[Any]) -> None:
    async def main() -> None:
        contexts = FakeContexts()
        shared = SharedContext(contexts)
        said: list[str] = []
        before: Inquiry | None = None
        for text, wish, changes in turns:
            for name, value in changes.items():
                table = {"default": contexts.maps, "s-1": contexts.sessions}.get(name, contexts.files)
                table.pop(name, None)
                if value:
                    table[name] = f"{name} is {value}"
            said.append(text)
            asked = await ask(shared, *said, wish=wish)
            assert before is None or grew(before, asked), (prompt(before), prompt(asked))
            before = asked
            said.append("answer")

    asyncio.run(main())
