import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.pool.protocols.backend.recover import BLOCK_MAX, Recovered, Recoverer

TOOLS = {"read": '{"properties":{"path":{"type":"string"},"lines":{"type":"integer"},"all":{}}}', "grep": ""}
HERMES = '<tool_call>\n{"name": "read", "arguments": {"path": "x"}}\n</tool_call>'
READ = ("read", '{"path":"x"}')


def run(*pieces: str) -> tuple[str, list[tuple[str, str]]]:
    recoverer = Recoverer(TOOLS)
    items = [item for piece in pieces for item in recoverer.feed(piece)] + recoverer.finish()
    assert "".join([item if isinstance(item, str) else item.raw for item in items]) == "".join(pieces)
    text = "".join([item for item in items if isinstance(item, str)])
    return text, [(item.name, item.arguments) for item in items if isinstance(item, Recovered)]


CASES = {
    HERMES: ("", [READ]),
    f"I look.\n{HERMES}\nDone.": ("I look.\n\nDone.", [READ]),
    HERMES * 2: ("", [READ, READ]),
    HERMES.removesuffix("\n</tool_call>"): ("", [READ]),
    '<tool_call>{"name":"read","arguments":"{\\"path\\": \\"x\\"}"}</tool_call>': ("", [READ]),
    '<tool_call>{"name":"read","arguments":{"path":"</tool_call>"}}</tool_call>!': (
        "!",
        [("read", '{"path":"</tool_call>"}')],
    ),
    '<tool_call>{"name":"read","arguments":{"path":"a\nb\\"渐"}}</tool_call>': (
        "",
        [("read", '{"path":"a\\nb\\"渐"}')],
    ),
    "<function=read>\n<parameter=path>\n a\n<b>\n</parameter>\n<parameter=lines>\n5\n</parameter>\n</function>": (
        "",
        [("read", '{"path":" a\\n<b>","lines":5}')],
    ),
    "<tool_call>\n<function=read>\n<parameter=path>\n5\n</parameter>\n</function>\n</tool_call>": (
        "",
        [("read", '{"path":"5"}')],
    ),
    "<function=grep><parameter=n>7</parameter><parameter=j>{}</parameter><parameter=t>null</parameter></function>": (
        "",
        [("grep", '{"n":7,"j":"{}","t":"null"}')],
    ),
    "<function=read></function>": ("", [("read", "{}")]),
    '<|python_tag|>{"name": "read", "parameters": {"path": "x"}}; {"name": "grep", "parameters": {}}': (
        "",
        [READ, ("grep", "{}")],
    ),
    ' {"name": "read", "parameters": {"path": "x"}}\n': ("", [READ]),
    '{"type":"function","function":{"name":"read","arguments":{"path":"x"}}}': ("", [READ]),
    '{"type":"function","name":"read","parameters":{"path":"x"}}': ("", [READ]),
}

TEXTS = [
    "plain text with < and { and <tool",
    "",
    " \n",
    '{"name": "unknown", "parameters": {}}',
    '{"name": "read", "parameters": {"path"',
    '{"name": "read"} and more',
    '{"answer": 1}',
    '{"nam": 1}',
    "{}",
    '<tool_call>{"name": "unknown", "arguments": {}}</tool_call> is how one calls',
    "<tool_call>no JSON</tool_call> x",
    "write `<tool_call>` to call",
    '<tool_call>{"name":"read","arguments":{"path": NaN}}</tool_call>',
    '<tool_call>{"name":"read","arguments":[1]}</tool_call>',
    '<tool_call>{"name":"read","arguments":"[1"}</tool_call>',
    "<function=unknown><parameter=a>1</parameter></function>",
    "<function=read><parameter=lines>Infinity</parameter></function>",
    "<function=read> x </function> y <function",
    "<|python_tag|>read.call(path='x')",
    "the call " + '{"name": "read", "parameters": {}}',
    "<tool_call>" + "[" * 30_000,
]


@pytest.mark.parametrize("text", CASES)
def test_calls_are_found_wherever_the_text_is_split(text: str) -> None:
    assert run(text) == CASES[text]
    assert run(*text) == CASES[text]
    for at in range(len(text)):
        assert run(text[:at], text[at:]) == CASES[text], at


@pytest.mark.parametrize("text", TEXTS)
def test_all_else_stays_text(text: str) -> None:
    assert run(text) == (text, [])
    assert run(*text) == (text, [])
    for at in range(min(len(text), 100)):
        assert run(text[:at], text[at:]) == (text, []), at


@given(
    st.lists(
        st.sampled_from(
            [
                "<tool_call>",
                "</tool_call>",
                "<function=read>",
                "</function>",
                '{"name":"read","arguments":{}}',
                "<",
                '"',
            ]
        )
        | st.text("{}ab \n", max_size=3),
        max_size=8,
    ),
    st.lists(st.integers(0, 120), max_size=4),
)
def test_pieces_make_no_difference(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    found = run(*(text[a:b] for a, b in pairwise(at)))
    assert found == run(text)
    assert all(isinstance(json.loads(arguments), dict) for _, arguments in found[1])


def test_text_flows_while_nothing_looks_like_a_call() -> None:
    recoverer = Recoverer(TOOLS)
    assert recoverer.feed("a <") == ["a "]
    assert recoverer.feed("b") == ["<b"]
    assert recoverer.feed("<tool_call>{") == []


def test_a_block_without_end_is_let_go() -> None:
    recoverer = Recoverer(TOOLS)
    out = recoverer.feed("<tool_call>")
    for _ in range(BLOCK_MAX // 1000 + 1):
        out += recoverer.feed("x" * 1000)
    assert sum(len(item) for item in out if isinstance(item, str)) > BLOCK_MAX
