"""Configuration files as people and programs leave them: valid, and written in every way that is allowed."""

import json
from typing import Any

from hypothesis import strategies as st

KEYS = st.sampled_from(
    [
        "mcpServers",
        "hooks",
        "env",
        "servers",
        "mcp",
        "provider",
        "version",
        "model",
        "theme",
        "a b",
        "日本",
        'q"x',
        "",
    ]
)
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.text(max_size=12) | st.just("a // no comment")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
SECTIONS = st.dictionaries(st.sampled_from(["other", "mine", "x-y"]), VALUES, max_size=3)
EVENTS = ("PreToolUse", "Stop", "BeforeTool", "preToolUse", "SessionStart")
HOOKS = st.dictionaries(st.sampled_from(EVENTS), st.lists(VALUES, max_size=3), max_size=3)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what a file may hold; the sections that we write into are what their programs take."""
    plain = draw(st.dictionaries(KEYS, VALUES, max_size=4))
    for name in ("mcpServers", "servers", "mcp", "provider", "env"):
        if name in plain or draw(st.booleans()):
            plain[name] = draw(SECTIONS)
    if "hooks" in plain or draw(st.booleans()):
        plain["hooks"] = draw(HOOKS)
    if draw(st.booleans()):
        plain["enabledMcpjsonServers"] = draw(st.lists(st.sampled_from(["one", "two"]), max_size=2))
    return plain


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """Write a value in some odd way: spaces, line ends, comments and trailing commas where JSONC takes them."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    comments = draw(st.booleans())
    gaps = ["", " ", "\t", newline, newline + "    ", newline * 2]
    if comments:
        gaps += [f' // note, with a }} and a " in it{newline}', "/* one\n * two */"]
    gap = st.sampled_from(gaps)
    trailing = draw(st.booleans()) and comments

    def text(node: Any) -> str:
        if isinstance(node, dict):
            members = [f"{json.dumps(k)}{draw(gap)}:{draw(gap)}{text(v)}" for k, v in node.items()]
            if "theme" in node and draw(st.booleans()):  # the last one counts
                members.insert(0, f'"theme"{draw(gap)}:{draw(gap)}"no more"')
            return "{" + listed(members) + "}"
        if isinstance(node, list):
            return "[" + listed([text(item) for item in node]) + "]"
        return json.dumps(node, ensure_ascii=draw(st.booleans()))

    def listed(parts: list[str]) -> str:
        ends = "," if trailing and parts else ""
        return draw(gap) + ",".join(draw(gap) + part + draw(gap) for part in parts) + ends + draw(gap)

    return draw(gap) + text(value) + draw(st.sampled_from(["", newline, newline * 2, " "]))
