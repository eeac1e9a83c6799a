import pytest

from herdr.pool.request import ChatRequest, Image, Message, Part, Text, ToolResult, ToolUse
from herdr.pool.turns import TEXT_MAX, bounded, last_user_text

NOTE = "<system-reminder>\nToday is Monday.\n</system-reminder>\n"


def user(*parts: Part) -> Message:
    return Message("user", parts)


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ((), ""),
        ((Message("system", (Text("Be kind"),)),), ""),
        ((user(Text("hello")),), "hello"),
        ((user(Text("a"), Image(url="u"), Text(""), Text("b")),), "a\n\nb"),
        ((user(Text("one")), Message("assistant", (Text("two"),))), "one"),
        ((user(Text("one")), Message("system", (Text("notice"),))), "one"),
        ((user(Text("environment")), user(Text("say hello"))), "say hello"),
        (
            (user(Text("one")), Message("assistant", (ToolUse("t", "ls", "{}"),)), user(ToolResult("t"))),
            "",
        ),
        ((user(ToolResult("t", (Text("file"),)), Text("and now")),), "and now"),
        ((user(Text(NOTE), Text("hello")),), "hello"),
        ((user(Text(f"{NOTE}hello{NOTE}")),), f"{NOTE}hello{NOTE}"),
        ((user(Text("<system-reminder>")),), "<system-reminder>"),
    ],
)
def test_what_the_user_said_last(messages: tuple[Message, ...], text: str) -> None:
    assert last_user_text(ChatRequest("m", messages)) == text


def test_long_texts_are_cut_and_say_so() -> None:
    assert bounded("x" * TEXT_MAX) == "x" * TEXT_MAX
    cut = last_user_text(ChatRequest("m", (user(Text("x" * TEXT_MAX + "yy")),)))
    assert cut == "x" * TEXT_MAX + "\n[2 more characters are not recorded]"
