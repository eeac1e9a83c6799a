"""Connecting changes nothing that is somebody else's, and taking it back leaves no byte different."""

import json
import re
import tomllib
from typing import Any

import hypothesis
import pytest
from connect.oddly import settings, written
from hypothesis import given
from hypothesis import strategies as st

from herdr.connect.edits import Edit, applied
from herdr.connect.json_text import Unreadable, read
from herdr.connect.plan import BOM, Kept, connecting, disconnecting
from herdr.connect.recipe import File, Wish
from herdr.connect.recipes import RECIPES

URL, OTHER = "http://127.0.0.1:8787", "http://127.0.0.1:9999"
CASES = [
    pytest.param(file, id=f"{recipe.client}-{scope}-{file.path}")
    for recipe in RECIPES.values()
    for scope, make in recipe.files.items()
    for file in make(Wish(URL, token=True, model=True))
    if not file.is_toml and file.whole is None
]
STRINGS_OR_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def parse(text: str) -> Any:
    """Read JSONC by taking out what JSON lacks: another way than the one under test."""
    bare = STRINGS_OR_COMMENTS.sub(lambda m: m[1] or " ", text.removeprefix("\ufeff"))
    return json.loads(TRAILING.sub(lambda m: m[1] or "", bare))


def as_strict_as(data: bytes, model: bytes) -> bool:
    """Tell whether what is plain JSON stays plain JSON."""
    try:
        json.loads(model.removeprefix(BOM) or b"{}")
    except ValueError:
        return True
    return isinstance(json.loads(data.removeprefix(BOM)), dict)


def holds(now: Any, before: Any) -> bool:
    """Tell whether everything of `before` is in `now`, in its order; lists may have more behind."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(k in now and holds(now[k], v) for k, v in before.items())
    if isinstance(before, list):
        return isinstance(now, list) and now[: len(before)] == before
    return bool(now == before)


def kept_of(path: str, file: File, data: bytes | None) -> Kept:
    step = connecting(path, file, data, None)
    assert step.keep is not None and step.then == step.keep.after
    return step.keep


def others(file: File, plain: dict[str, Any]) -> dict[str, Any]:
    """Return the file's content without the values that connecting replaces on purpose."""
    rest = json.loads(json.dumps(plain))
    for edit in file.edits:
        node = rest
        for key in edit.path[:-1]:
            node = node.get(key, {}) if isinstance(node, dict) else {}
        if edit.kind == "put" and isinstance(node, dict):
            node.pop(edit.path[-1], None)
    return dict(rest)


@pytest.mark.parametrize("file", CASES)
@hypothesis.settings(max_examples=25)
@given(data=st.data())
def test_all_that_was_there_stays_and_undo_is_exact(file: File, data: st.DataObject) -> None:
    plain = data.draw(settings())
    text = data.draw(written(plain))
    before = data.draw(st.sampled_from([b"", BOM])) + text.encode()
    kept = kept_of("/f", file, before)
    now = parse(kept.after.decode())
    assert holds(now, others(file, plain)) and as_strict_as(kept.after, before)
    assert "herdr" in kept.after.decode().lower() or URL in kept.after.decode()
    assert connecting("/f", file, kept.after, kept).then == kept.after  # twice is once
    assert disconnecting(kept, kept.after).then == before


@pytest.mark.parametrize("file", CASES)
@hypothesis.settings(max_examples=25)
@given(data=st.data())
def test_what_the_user_changed_since_stays_when_it_is_taken_back(file: File, data: st.DataObject) -> None:
    plain = data.draw(settings())
    before = data.draw(written(plain)).encode()
    kept = kept_of("/f", file, before)
    since = applied(kept.after.decode(), [Edit("put", ("added by hand",), {"x": [1]})])
    left = disconnecting(kept, since.encode()).then
    assert left is not None
    assert parse(left.decode()) == {**plain, "added by hand": {"x": [1]}} and as_strict_as(left, before)


@pytest.mark.parametrize("file", CASES)
def test_another_address_takes_the_place_of_the_first(file: File) -> None:
    before = b'{\n\t"theme": "dark" // mine\n}\n'
    kept = kept_of("/f", file, before)
    moved = file._replace(edits=tuple(_elsewhere(edit) for edit in file.edits))
    step = connecting("/f", moved, kept.after, kept)
    assert step.then is not None and step.keep is not None
    assert URL.encode() not in step.then and step.then.count(b"9999") == kept.after.count(b"8787")
    assert disconnecting(step.keep, step.then).then == before


def _elsewhere(edit: Edit) -> Edit:
    return Edit(edit.kind, edit.path, json.loads(json.dumps(edit.value).replace(URL, OTHER)), edit.mark)


@pytest.mark.parametrize("file", CASES)
@pytest.mark.parametrize("before", [None, b"", b"\n", b"{}", b"// nothing yet\n{\n}\n"])
def test_files_that_hold_nothing(file: File, before: bytes | None) -> None:
    kept = kept_of("/f", file, before)
    assert isinstance(parse(kept.after.decode()), dict)
    assert disconnecting(kept, kept.after).then == before


CODEX = next(f for f in RECIPES["codex"].files["user"](Wish(URL, token=True, model=True)) if f.is_toml)
TOML = st.lists(
    st.sampled_from(
        [
            'model = "gpt"',
            "# a note",
            "",
            "[mcp_servers.other]",
            '  url = "http://x"',
            "[a.b]",
            'k = """\ntwo\n"""',
        ]
    ),
    unique=True,
    max_size=7,
)


@given(lines=TOML, newline=st.sampled_from(["\n", "\r\n"]), end=st.sampled_from(["", "\n", "\n\n"]))
def test_toml_keeps_everything_and_undo_is_exact(lines: list[str], newline: str, end: str) -> None:
    text = newline.join(lines) + end.replace("\n", newline)
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    kept = kept_of("/f.toml", CODEX, text.encode())
    now = tomllib.loads(kept.after.decode())
    assert now["mcp_servers"]["herdr"]["url"] == f"{URL}/mcp"
    assert holds(now, plain)
    assert connecting("/f.toml", CODEX, kept.after, kept).then == kept.after
    assert disconnecting(kept, kept.after).then == text.encode()
    since = kept.after + b"[later]\nx = 1\n"
    left = disconnecting(kept, since).then
    assert left is not None and tomllib.loads(left.decode()) == {**plain, "later": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a": 1', "line 1"),
        (b'{\n"a": \n}', "line 3: a value is missing"),
        (b"[1, 2]", "is not an object"),
        (b'{"mcpServers": []}', "mcpServers is not an object"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"a": 01x}', "line 1"),
        (b"[" * 5000, "nested too deeply"),
        (b'{} {"a": 1}', "nothing more should follow"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(text: bytes, said: str) -> None:
    (file,) = (f for f in RECIPES["claude-code"].files["project"](Wish(URL)) if f.path == ".mcp.json")
    with pytest.raises(Unreadable, match=re.escape(said)) as refused:
        connecting("/home/me/.mcp.json", file, text, None)
    assert "/home/me/.mcp.json" in refused.value.detail


def test_a_second_definition_in_toml_is_refused() -> None:
    with pytest.raises(Unreadable, match="cannot be changed"):
        connecting("/f.toml", CODEX, b'mcp_servers = {other = {url = "x"}}\n', None)


@given(settings().flatmap(lambda plain: st.tuples(st.just(plain), written(plain))))
def test_the_reader_agrees_with_another_one(case: tuple[dict[str, Any], str]) -> None:
    plain, text = case
    assert read(text).plain() == plain == parse(text)
