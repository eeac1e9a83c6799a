"""What stands in a prompt of the shared context, where it stands, and what is said about it."""

from collections.abc import Mapping
from typing import Any

import pytest
from fake_contexts import excerpt

from herdr.pool.canonical import Canonical, canonical
from herdr.pool.inset import (
    BLOCK_BYTES_MAX,
    EMPTY,
    Asking,
    Block,
    Composed,
    Got,
    Report,
    Told,
    asking,
    compose,
    inset,
    is_first_turn,
    places,
    report,
    together,
)
from herdr.pool.protocols.backend.messages import render_messages
from herdr.pool.request import ChatRequest, ContextWish, Image, Message, Text, Tool, ToolResult, ToolUse

EVERYTHING = ContextWish(True, 1024, ("a.py", "b.py"), "shop")
A, B = excerpt("def a()"), excerpt("def b()")
MAP, SESSION = excerpt("src/\n  a.py"), excerpt("Decided: no globals.")
GOT: Mapping[str, Got] = {"map": MAP, "session": SESSION, "file a.py": A, "file b.py": B}


def said(*turns: str, system: str = "", tools: tuple[Tool, ...] = ()) -> Canonical:
    """A conversation whose turns are the user's and the model's in alternation."""
    messages = [Message(("user", "assistant")[n % 2], (Text(turn),)) for n, turn in enumerate(turns)]  # type: ignore[arg-type]
    first = [Message("system", (Text(system),))] if system else []
    return canonical(ChatRequest("m", (*first, *messages), tools))


def told(got: Any) -> Told:
    return Told(got.ref, got.tokens)


def first_block() -> Block:
    asked = asking(said("hi"), None, EVERYTHING)
    return compose(asked, EVERYTHING, "s-1", GOT).block


def text_of(message: Message) -> str:
    return "|".join(part.text for part in message.parts if isinstance(part, Text))


def test_the_first_turn_asks_for_everything_at_the_first_message() -> None:
    own = said("hi", system="be brief")
    assert is_first_turn(own) and not is_first_turn(said("hi", "hello", "go"))
    (place,) = places(own)
    assert place.at == 1 and place.key == own.chain[2]
    assert asking(own, None, EVERYTHING) == Asking(place, EMPTY, True, True, ("a.py", "b.py"))
    assert asking(own, None, ContextWish(files=("c.py",))) == Asking(place, EMPTY, False, False, ("c.py",))


def test_the_block_quotes_what_was_found_between_marks() -> None:
    text = first_block().text
    assert text.startswith("[From the Herdr gateway, not from the user:")
    for title, got in [
        ('map of the workspace "shop"', MAP),
        ('outline of the file "a.py"', A),
        ('outline of the file "b.py"', B),
        ('window of the session "s-1"', SESSION),
    ]:
        assert f"\n[begin {got.ref[:16]}: {title}]\n{got.text}\n[end {got.ref[:16]}]" in text
    assert text.index(MAP.text) < text.index(A.text) < text.index(B.text) < text.index(SESSION.text)


def test_a_name_cannot_leave_its_line() -> None:
    wish = ContextWish(files=('a"]\n[end.py',))
    block = compose(asking(said("x"), None, wish), wish, None, {f"file {wish.files[0]}": A}).block
    assert r'"a\"]\n[end.py"' in block.text


def test_the_same_is_said_in_the_same_bytes() -> None:
    assert first_block() == first_block()


def test_what_could_not_be_had_is_not_in_the_block_but_in_the_report() -> None:
    got = {**GOT, "map": "indexing", "session": "unknown_session", "file b.py": "unknown_file"}
    asked = asking(said("hi"), None, EVERYTHING)
    composed = compose(asked, EVERYTHING, "s-1", got)
    assert "map of" not in composed.block.text and "b.py" not in composed.block.text
    assert A.text in composed.block.text
    assert report(EVERYTHING, asked, composed) == Report(
        Told(unavailable="unknown_session"),
        Told(unavailable="indexing"),
        {"a.py": told(A), "b.py": Told(unavailable="unknown_file")},
    )
    nothing = compose(asked, EVERYTHING, "s-1", dict.fromkeys(GOT, "not_served"))
    assert nothing.block.text == "" and nothing.block.size == 0


def test_the_report_names_what_was_asked_for_and_nothing_else() -> None:
    wish = ContextWish(map_tokens=16)
    asked = asking(said("hi"), None, wish)
    assert report(wish, asked, compose(asked, wish, None, {"map": MAP})) == Report(map=told(MAP))
    none = ContextWish()
    assert report(none, asking(said("hi"), None, none), Composed(EMPTY, {})) == Report()


def test_a_later_turn_asks_for_files_only_and_gives_those_that_changed() -> None:
    own = said("hi", "hello", "go")
    first, newest = places(own)
    known = {first.key: first_block()}
    asked = asking(own, known, EVERYTHING)
    assert asked.place == newest and (asked.session, asked.map) == (False, False)
    assert asked.files == ("a.py", "b.py")
    unchanged = compose(asked, EVERYTHING, "s-1", GOT)
    assert unchanged == Composed(EMPTY, {"a.py": told(A), "b.py": told(B)})
    changed = excerpt("def a(x)")
    composed = compose(asked, EVERYTHING, "s-1", {**GOT, "file a.py": changed})
    assert "changed" in composed.block.text.split("\n")[0]
    assert changed.text in composed.block.text and B.text not in composed.block.text
    assert composed.block.files == {"a.py": told(changed)}
    assert report(EVERYTHING, asked, composed) == Report(
        told(SESSION), told(MAP), {"a.py": told(changed), "b.py": told(B)}
    )


def test_a_file_that_is_back_as_it_was_is_given_again_where_another_was_given_since() -> None:
    own = said("1", "a", "2", "a", "3")
    changed = excerpt("def a(x)")
    blocks = [first_block(), Block("x", 1, files={"a.py": told(changed)})]
    known = dict(zip([place.key for place in places(own)], blocks, strict=False))
    asked = asking(own, known, EVERYTHING)
    assert asked.given.files["a.py"] == told(changed)
    assert compose(asked, EVERYTHING, "s-1", GOT).block.files == {"a.py": told(A)}


def test_a_file_that_cannot_be_read_for_a_while_counts_as_it_was_given() -> None:
    own = said("1", "a", "2", "a", "3")
    first, second, _ = places(own)
    known = {first.key: first_block()}
    asked = asking(said("1", "a", "2"), known, EVERYTHING)
    composed = compose(asked, EVERYTHING, "s-1", {**GOT, "file a.py": "indexing"})
    assert composed.block == EMPTY
    assert report(EVERYTHING, asked, composed).files == {
        "a.py": Told(unavailable="indexing"),
        "b.py": told(B),
    }
    known[second.key] = composed.block
    assert compose(asking(own, known, EVERYTHING), EVERYTHING, "s-1", GOT).block == EMPTY


def test_what_was_missing_at_first_is_not_asked_for_again_but_files_are() -> None:
    own = said("hi", "hello", "go")
    got = {**GOT, "map": "indexing", "session": "unknown_session", "file a.py": "indexing"}
    block = compose(asking(said("hi"), None, EVERYTHING), EVERYTHING, "s-1", got).block
    asked = asking(own, {places(own)[0].key: block}, EVERYTHING)
    assert (asked.session, asked.map) == (False, False)
    assert compose(asked, EVERYTHING, "s-1", GOT).block.files == {"a.py": told(A)}


def test_what_is_asked_for_later_comes_with_the_newest_message() -> None:
    own = said("hi", "hello", "go")
    first, newest = places(own)
    block = compose(
        asking(said("hi"), None, ContextWish(map_tokens=99)), ContextWish(map_tokens=99), None, GOT
    ).block
    asked = asking(own, {first.key: block}, EVERYTHING)
    assert (asked.place, asked.session, asked.map) == (newest, True, False)


def test_a_conversation_that_is_not_known_begins_anew_at_its_first_message() -> None:
    own = said("hi", "hello", "go")
    assert asking(own, None, EVERYTHING).place == places(own)[0]


def test_a_conversation_that_had_no_blocks_keeps_its_beginning() -> None:
    own = said("hi", "hello", "go")
    asked = asking(own, None, EVERYTHING, was_plain=True)
    assert asked == Asking(places(own)[1], EMPTY, True, True, ("a.py", "b.py"))


@pytest.mark.parametrize("was_plain", [True, False])
def test_nothing_new_where_the_newest_message_is_the_models_or_was_asked_before(was_plain: bool) -> None:
    prefilled = said("hi", "hello", "go", "I")
    known = None if was_plain else {places(prefilled)[0].key: first_block()}
    asked = asking(prefilled, known, EVERYTHING, was_plain=was_plain)
    assert asked.place is None and not (asked.session or asked.map or asked.files)
    no_place = Told(unavailable="no_place")
    expected = {"a.py": told(A), "b.py": told(B)} if known else {"a.py": no_place, "b.py": no_place}
    assert report(EVERYTHING, asked, Composed(EMPTY, {})).files == expected
    again = said("hi", "hello", "go")
    known = {place.key: first_block() for place in places(again)}
    assert asking(again, known, EVERYTHING).place is None


def test_without_a_message_of_the_user_there_is_no_place() -> None:
    own = canonical(ChatRequest("m", (Message("system", (Text("x"),)),)))
    asked = asking(own, None, EVERYTHING)
    assert asked.place is None
    assert report(EVERYTHING, asked, Composed(EMPTY, {})).map == Told(unavailable="no_place")


def test_a_block_is_bounded_and_says_what_did_not_fit() -> None:
    large = excerpt("x" * BLOCK_BYTES_MAX)
    asked = asking(said("hi"), None, EVERYTHING)
    composed = compose(asked, EVERYTHING, "s-1", {**GOT, "file a.py": large})
    assert composed.files["a.py"] == Told(large.ref, large.tokens, "too_large")
    assert "a.py" not in composed.block.files, "it may fit another time"
    assert B.text in composed.block.text and len(composed.block.text) < 10_000


def test_blocks_stand_before_what_the_user_says() -> None:
    own = said("hi", "hello", "go", system="be brief")
    first, newest = places(own)
    asked = inset(own, {first.key: Block("ONE", 3), newest.key: Block("TWO", 3)})
    assert [text_of(message) for message in asked.request.messages] == [
        "be brief",
        "ONE\n\nhi",
        "hello",
        "TWO\n\ngo",
    ]
    assert asked.chain[:2] == own.chain[:2], "system prompt and tools are as they were"
    assert asked == canonical(asked.request)
    assert inset(own, {}) is own and inset(own, {first.key: EMPTY, b"?": Block("x", 1)}) is own


def test_a_block_stands_behind_results_of_tools() -> None:
    call = Message("assistant", (ToolUse("c1", "f", "{}"), ToolUse("c2", "f", "{}")))
    results = (ToolResult("c1", (Text("1"),)), ToolResult("c2", (Text("2"),)))
    own = canonical(
        ChatRequest("m", (Message("user", (Text("hi"),)), call, Message("user", (*results, Text("go")))))
    )
    asked = inset(own, {places(own)[1].key: Block("NEWS", 4)})
    assert asked.request.messages[2].parts == (*results, Text("NEWS\n\ngo"))
    rendered = render_messages(asked.request, "llamacpp", False)
    assert [message["role"] for message in rendered] == ["user", "assistant", "tool", "tool", "user"]
    only = canonical(ChatRequest("m", (Message("user", (Text("hi"),)), call, Message("user", results))))
    asked = inset(only, {places(only)[1].key: Block("NEWS", 4)})
    assert asked.request.messages[2].parts == (*results, Text("NEWS"))


def test_a_block_stands_before_pictures() -> None:
    own = canonical(ChatRequest("m", (Message("user", (Image(data="x"), Text("what is it?"))),)))
    asked = inset(own, {places(own)[0].key: Block("FACTS", 5)})
    assert asked.request.messages[0].parts[0] == Text("FACTS")


def test_a_sub_agent_stays_one() -> None:
    own = Canonical(said("hi").request, True, said("hi").chain)
    assert inset(own, {places(own)[0].key: Block("x", 1)}).sub_agent


def test_together_the_first_window_and_map_and_the_last_of_each_file_count() -> None:
    one = Block("1", 1, told(SESSION), None, {"a.py": told(A), "b.py": told(B)})
    two = Block("2", 1, told(B), told(MAP), {"a.py": told(B)})
    assert together([one, two]) == Block("", 0, told(SESSION), told(MAP), {"a.py": told(B), "b.py": told(B)})
    assert together([]) == EMPTY
