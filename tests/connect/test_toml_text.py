"""Tables of our own in a TOML file: all else stays, and they are found again wherever a program has put them."""

import tomllib

import pytest
from connect.jsonc import holds as within
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from herdr.connect.json_text import Unreadable
from herdr.connect.plan import BOM, connecting, disconnecting
from herdr.connect.recipe import File, Wish
from herdr.connect.recipes import RECIPES
from herdr.connect.toml_text import NOTE, holds, with_tables, without_tables

URL = "http://127.0.0.1:8787"
OURS = '[mcp_servers.herdr]\nurl = "http://127.0.0.1:8787/mcp"\n'


def codex(url: str = URL, *, token: bool = True) -> File:
    return next(f for f in RECIPES["codex"].files["user"](Wish(url, token)) if f.is_toml)


LINES = st.sampled_from(
    [
        *('model = "gpt"', "# a note", "", "[mcp_servers.other]", '  url = "http://x"', "[ a . b ] # [c]"),
        *(
            'k = """\n[two]\n"" "\n\\""""',
            "l = '''\n[mcp_servers.herdr]\n'''",
            "m = [\n  [1, 2], # ]\n]",
            "[[z]]",
        ),
        *('[mcp_servers."her dr"]', "[mcp_servers.herdr2]", "n = {a = [1], b = '['}", "\t[x]"),
    ]
)


@limits(max_examples=60, deadline=None)
@given(
    lines=st.lists(LINES, unique=True, max_size=9),
    newline=st.sampled_from(["\n", "\r\n"]),
    end=st.sampled_from(["", "\n", "\n\n", "\n# the end"]),
    bom=st.sampled_from([b"", BOM]),
)
def test_everything_stays_and_undo_is_exact(lines: list[str], newline: str, end: str, bom: bytes) -> None:
    text = ("\n".join(lines) + end).replace("\n", newline)
    plain, before = tomllib.loads(text), bom + text.encode()
    file = codex()
    step = connecting("/f.toml", file, before, None)
    assert step.then is not None and step.keep is not None
    now = tomllib.loads(step.then.decode("utf-8-sig"))
    assert now["mcp_servers"]["herdr"]["url"] == f"{URL}/mcp" and within(now, plain)
    assert connecting("/f.toml", file, step.then, step.keep).then == step.then
    assert connecting("/f.toml", file, step.then, None).then == step.then
    assert disconnecting(step.keep, step.then).then == before
    moved = connecting("/f.toml", codex("http://h:1", token=False), step.then, step.keep)
    assert moved.then is not None and moved.keep is not None and moved.then.count(b"/mcp") == 1
    assert tomllib.loads(moved.then.decode("utf-8-sig"))["mcp_servers"]["herdr"] == {"url": "http://h:1/mcp"}
    assert disconnecting(moved.keep, moved.then).then == before
    left = disconnecting(step.keep, step.then + b"[later]\nx = 1\n").then
    assert left is not None
    assert tomllib.loads(left.decode("utf-8-sig")) == {**plain, "later": {"x": 1}}
    assert [c for c in left.decode("utf-8-sig").split() if c == "#"] == [c for c in text.split() if c == "#"]


@limits(max_examples=60, deadline=None)
@given(lines=st.lists(LINES, unique=True, max_size=9))
def test_taking_them_out_leaves_the_text_as_it_was(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    assert without_tables(with_tables(text, OURS), OURS) == text


def test_they_are_found_where_codex_has_put_its_own_between() -> None:
    """Codex 0.169 has written this after `codex mcp add other`: the note is gone, its table behind ours."""
    text = (
        '# mine\n[a]\nb = 1\n\n[mcp_servers.herdr]\nurl = "http://127.0.0.1:8787/mcp"\n\n'
        '[mcp_servers.other]\nurl = "x"\n'
    )
    assert holds(text, OURS)
    assert tomllib.loads(without_tables(text, OURS)) == {
        "a": {"b": 1},
        "mcp_servers": {"other": {"url": "x"}},
    }


def test_what_the_program_keeps_below_ours_goes_with_it_but_stays_when_the_address_changes() -> None:
    text = f'{OURS}\n[mcp_servers.herdr.tools.lock]\napproval_mode = "auto"\n'
    assert without_tables(text, OURS).strip() == ""
    moved = tomllib.loads(with_tables(text, OURS.replace("8787", "1")))
    assert moved["mcp_servers"]["herdr"] == {
        "url": "http://127.0.0.1:1/mcp",
        "tools": {"lock": {"approval_mode": "auto"}},
    }


def test_a_comment_behind_ours_is_of_what_follows() -> None:
    text = f"{OURS}\n# of the next\n[next]\n"
    assert without_tables(text, OURS) == "\n# of the next\n[next]\n"
    moved = with_tables(text, OURS.replace("8787", "1"))
    assert moved == text.replace("8787", "1")


def test_line_ends_are_those_of_the_file() -> None:
    text = with_tables("a = 1\r\n", OURS)
    assert text.count("\n") == text.count("\r\n") == 5
    assert with_tables(text, OURS.replace("8787", "1")) == text.replace("8787", "1")


def test_the_note_says_whose_they_are() -> None:
    assert with_tables("a = 1", OURS) == f"a = 1\n\n{NOTE}\n{OURS}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "line 1"),
        ('mcp_servers = {other = {url = "x"}}\n', "cannot be changed"),
        ('[mcp_servers]\nherdr = {url = "http://h/mcp"}\n', "cannot be changed"),
        ('[mcp_servers.herdr]\ncommand = "herdr-mcp"\n', "is there already and is something else"),
        ("a = " + "[" * 5000, "cannot be changed"),
    ],
)
def test_a_file_that_cannot_be_changed_is_refused(text: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said) as refused:
        connecting("/f.toml", codex(), text.encode(), None)
    assert refused.value.detail.startswith("/f.toml cannot be changed")


def test_a_server_of_an_older_connection_is_replaced_and_comes_back() -> None:
    before = b'[mcp_servers.herdr]\nurl = "http://old/mcp"\n\n[later]\n'
    step = connecting("/f.toml", codex(token=False), before, None)
    assert step.then == before.replace(b"http://old", URL.encode()) and step.keep is not None
    assert disconnecting(step.keep, step.then).then == before
    left = disconnecting(step.keep, step.then + b"x = 1\n").then
    assert left is not None
    assert tomllib.loads(left.decode()) == {
        "later": {"x": 1},
        "mcp_servers": {"herdr": {"url": "http://old/mcp"}},
    }
