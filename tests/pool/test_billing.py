import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdr.pool.billing import without_billing

LINE = "x-anthropic-billing-header: cc_version=2.1.328.b7f; cc_entrypoint=sdk-cli;"
SUB = "x-anthropic-billing-header: cc_version=2.1.328.256; cc_entrypoint=sdk-cli; cc_is_subagent=true;"
OLD = "x-anthropic-billing-header: cc_version=2.1.100.abc; cc_entrypoint=cli; cch=a5145;"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (LINE, ""),
        (LINE + "\n", ""),
        (OLD, ""),
        (SUB, ""),
        ("x-anthropic-billing-header: cch=00000;", ""),
        ("x-anthropic-billing-header: cc_version=2.1.1", ""),
        ("x-anthropic-billing-header: cc_version=2.1.1; cc_entrypoint=cli", ""),
        (f"{LINE} cc_workload=x; cc_gateway=http://h:1/v1; cc_project=my project; later=1;", ""),
        (f"{LINE}\nYou are Claude Code", "You are Claude Code"),
        (f"{LINE}\r\nYou are Claude Code", "You are Claude Code"),
        (f"{LINE}\n\nYou are Claude Code", "You are Claude Code"),
        (f"{OLD}You are Claude Code; be kind=true;", "You are Claude Code; be kind=true;"),
        (f"{OLD} You are Claude Code", "You are Claude Code"),
        (f"{LINE}{OLD}You are", "You are"),
        (f"You are Claude Code\n{OLD}\nMore", "You are Claude Code\nMore"),
        (f"You are Claude Code\n\n{OLD}\n", "You are Claude Code"),
        (f"  {LINE}\nYou are", "You are"),
    ],
)
def test_is_removed_wherever_it_begins_a_line(text: str, kept: str) -> None:
    assert without_billing(text)[0] == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "You are Claude Code",
        f"Strip `{LINE}`",
        f"The line {LINE}",
        "x-anthropic-billing-header: is what Claude Code begins its prompt with.",
        "x-anthropic-billing-header:",
        "x-anthropic-billing-header: version=1;",
        "trailing line breaks stay\n\n",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert without_billing(text) == (text, False)


@pytest.mark.parametrize(
    ("text", "sub_agent"),
    [
        (SUB, True),
        (f"{SUB}\nYou are", True),
        (f"{SUB}You are", True),
        (f"You are\n{SUB}", True),
        (LINE, False),
        (LINE.replace("sdk-cli", "cc_is_subagent=truer"), False),
        (f"{LINE} cc_is_subagent=false;", False),
        (f"{LINE}\nSay cc_is_subagent=true;", False),
    ],
)
def test_says_whether_a_sub_agent_asks(text: str, sub_agent: bool) -> None:
    assert without_billing(text)[1] is sub_agent


PIECES = st.sampled_from(
    [LINE, SUB, OLD, "\n", "\r\n", " ", "\t", "cc", "cch=1;", "x", ";", "You are", LINE[:27]]
)


@settings(deadline=None)
@given(st.lists(PIECES).map("".join))
def test_a_second_look_finds_nothing(text: str) -> None:
    once, _ = without_billing(text)
    assert without_billing(once) == (once, False)


def test_a_long_text_of_near_misses_is_read_once() -> None:
    text = "x-anthropic-billing-header: cc=" * 20_000
    assert without_billing(text) == ("", False)
    assert without_billing(text + ";x")[0] == "x"
