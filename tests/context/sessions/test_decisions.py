# ruff: noqa: RUF001 - the marks of Chinese
import pytest
from transcripts.talk import decided, message, talk, told

from herdr.context.sessions.decisions import A_MESSAGE_MAX, Before, decisions_in, options_in, proposals_in
from herdr.context.sessions.message import Call
from herdr.context.sessions.prose import sentences


@pytest.mark.parametrize(
    "line",
    [
        "Use SQLite for the queue.",
        "don't touch the public API",
        "the field names must stay as they are",
        "let's go with the second one",
        "please rename it to limits.py",
        "No new dependencies.",
        "we only support Linux",
        "make it 7 days instead",
        "also, wrap the response in an envelope",
        "could you add a --dry-run flag?",
        "should always log the id, no?",
        "it would be easier to read if each one was on its own line",
        "不要改公共接口",
        "用标准库，别加依赖",
        "必须兼容 3.10",
        "缓存改成 Redis",
        "先不做后台刷新",
        "能不能帮我加一个导出功能？",
    ],
)
def test_users_lay_down(line: str) -> None:
    assert decided(f"u: {line}") != []


@pytest.mark.parametrize(
    "line",
    [
        "thanks, great",
        "run the tests please",
        "let me check that",
        "I don't know what you mean",
        "why does it always fail?",
        "what is the decision here?",
        "show me the file",
        "it crashed again on CI",
        "the docs mention the decision to use SQLite",
        "I never remember which one it was",
        "no idea, I'll ask Jonas",
        "this only happens with `--only-stats`",
        '"you must never do that" is what the error says',
        "[Request interrupted by user]",
        "谢谢，先这样",
        "跑一下测试",
        "为什么不能用 GBK？",
        "线上又报错了",
        "看一下日志",
    ],
)
def test_users_say_much_else(line: str) -> None:
    assert decided(f"u: {line}") == []


@pytest.mark.parametrize(
    "line",
    [
        "I've decided to keep the old parser.",
        "I'm using a list rather than a set, because the order matters.",
        "I'll throttle the events to one per second.",
        "So the note inherits the date of its invoice instead of getting its own.",
        "Fix: an explicit BEGIN at the start of each step.",
        "We'll go with option 2.",
        "我改成生成器逐行输出，避免一次装进内存",
        "就按这个方案的第二种改缓存",
    ],
)
def test_assistants_choose(line: str) -> None:
    assert decided(f"a: {line}") != []


@pytest.mark.parametrize(
    "line",
    [
        "Let me run the tests.",
        "Now I'll update the remaining call sites.",
        "We could use Redis instead of SQLite.",
        "I'd use a list, because the order matters.",
        "If you prefer, I'll use a sorted set for the keys instead.",
        "Perhaps I'll treat these errors as warnings, because the log is long.",
        "The decision log lists each decision with its reason.",
        "The value must be positive, otherwise it raises.",
        "All tests pass.",
        "Should I use SQLite instead?",
        "接下来我看一下日志",
        "可以用 Redis，因为快",
    ],
)
def test_assistants_say_much_else(line: str) -> None:
    assert decided(f"a: {line}") == []


def test_tools_and_systems_decide_nothing() -> None:
    assert decided("t: you must use SQLite", "s: always use tabs") == []


def test_what_is_said_beside_an_edit_is_done() -> None:
    text = "The lock lies beside the file, not in it."
    assert told([message(1, "a", text)]).decisions == ()
    assert told([message(1, "a", text, [Call("Edit", files=("a.py",))])]).decisions != ()


@pytest.mark.parametrize(
    "text, what, reason",
    [
        ("use SQLite because it is there already", "use SQLite", "it is there already"),
        ("go with sqlite, we already ship it", "go with sqlite", "we already ship it"),
        ("keep the column. otherwise we can't roll back", "keep the column.", "otherwise we can't roll back"),
        ("大小写要保留，因为很多人习惯大写", "大小写要保留", "很多人习惯大写"),
    ],
)
def test_reasons(text: str, what: str, reason: str) -> None:
    [decision] = told(talk(f"u: {text}")).decisions
    assert (decision.text, decision.reason) == (what, reason)


def test_a_short_answer_is_kept_with_its_question() -> None:
    [decision] = told(talk("a: Should amounts be floats or strings?", "u: strings.")).decisions
    assert (decision.text, decision.about) == ("strings.", "Should amounts be floats or strings?")


def test_a_yes_is_kept_with_what_was_proposed() -> None:
    [decision] = told(talk("a: I'd wrap stdout in a BufWriter. Want me to do that?", "u: yes")).decisions
    assert (decision.text, decision.about) == ("yes", "I'd wrap stdout in a BufWriter.")
    [decision] = told(talk("a: It needs a tokenizer of 25 lines.", "u: go ahead and do it")).decisions
    assert decision.about == "It needs a tokenizer of 25 lines."
    assert decided("a: It needs a tokenizer.", "u: good") == []


@pytest.mark.parametrize("answer", ["B", "option b please", "go with B.", "用 B"])
def test_an_option_is_kept_with_its_meaning(answer: str) -> None:
    ways = "Two ways:\n\nA. one big file\nB. a file a day\n\nWhich do you prefer?"
    [decision] = told(talk(f"a: {ways}", f"u: {answer}")).decisions
    assert decision.about == "a file a day"
    assert decision.options == ("A: one big file", "B: a file a day")


def test_lists_that_are_no_options() -> None:
    assert options_in("What I did:\n1. read\n2. wrote") == ()
    assert options_in("Options:\n1. the only one") == ()
    assert options_in("方案：\n1. 改表\n2. 不改\n\n别的") == ("1: 改表", "2: 不改")


def test_an_answer_that_puts_off_is_none() -> None:
    assert decided("a: Should it be 3.10 or 3.11?", "u: have to check, will tell you tomorrow") == []


def test_lists_of_requests() -> None:
    assert decided(
        "u: Please do the following:\n1. `--where ms>500` for fields\n2. colours in the table\n3. why though?"
    ) == [
        "`--where ms>500` for fields",
        "colours in the table",
    ]


def test_so_many_from_one_message() -> None:
    said = sentences("\n".join(f"use variant {n}" for n in range(50)))
    assert len(decisions_in(message(1, "u", ""), said, Before(), edits=False)) == A_MESSAGE_MAX


def test_proposals() -> None:
    said = sentences("It is slow. I'd cache it. Shall I? Bye.")
    assert proposals_in(said) == ("I'd cache it.", "Shall I?", "Bye.")
