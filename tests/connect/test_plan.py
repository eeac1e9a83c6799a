"""Connecting changes nothing that is somebody else's, and taking it back leaves no byte different."""

import json
import re
from typing import Any

import pytest
from connect.jsonc import comments, holds, parse
from connect.oddly import settings, written
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from herdr.connect.json_edit import put
from herdr.connect.json_text import Unreadable
from herdr.connect.plan import BOM, Kept, Step, connecting, difference, disconnecting
from herdr.connect.recipe import File, Wish
from herdr.connect.recipes import RECIPES

URL, OTHER = "http://127.0.0.1:8787", "http://127.0.0.1:9999"


def files(url: str, *, token: bool = True, model: bool = True) -> dict[str, File]:
    """Return the JSON files of all recipes."""
    return {
        f"{recipe.client}-{scope}-{file.path}": file
        for recipe in RECIPES.values()
        for scope, make in recipe.files.items()
        for file in make(Wish(url, token, model))
        if not file.is_toml and file.whole is None
    }


FILES = files(URL)
CASES = [pytest.param(file, id=name) for name, file in FILES.items()]


def kept_of(file: File, data: bytes | None, path: str = "/f") -> Kept:
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


def has_ours(now: Any, file: File) -> bool:
    """Tell whether what the file is for is in it, looked up by hand."""
    for edit in file.edits:
        node = now
        for key in edit.path:
            node = node[key]
        if edit.kind in ("hook", "item"):
            assert node.count(edit.value) == 1
        elif edit.kind != "missing":
            assert node == edit.value
    return True


@pytest.mark.parametrize("file", CASES)
@limits(max_examples=12, deadline=None)
@given(data=st.data())
def test_all_that_was_there_stays_and_undo_is_exact(file: File, data: st.DataObject) -> None:
    plain = data.draw(settings())
    text = data.draw(written(plain))
    before = data.draw(st.sampled_from([b"", BOM])) + text.encode()
    kept = kept_of(file, before)
    after = kept.after.decode()
    now = parse(after)
    assert holds(now, others(file, plain)) and has_ours(now, file)
    if others(file, plain) == plain:  # else one may have stood in a value that was replaced
        assert comments(after) == comments(text)
    assert connecting("/f", file, kept.after, kept).then == kept.after  # twice is once
    assert connecting("/f", file, kept.after, None).then == kept.after  # also when nothing is remembered
    assert disconnecting(kept, kept.after).then == before


@pytest.mark.parametrize("file", CASES)
@limits(max_examples=12, deadline=None)
@given(data=st.data())
def test_what_the_user_changed_since_stays_when_it_is_taken_back(file: File, data: st.DataObject) -> None:
    plain = data.draw(settings())
    text = data.draw(written(plain))
    kept = kept_of(file, text.encode())
    since = put(kept.after.decode(), ("added by hand",), {"x": [1]}) + "// the end\n"
    left = disconnecting(kept, since.encode()).then
    assert left is not None
    assert parse(left.decode()) == {**plain, "added by hand": {"x": [1]}, **fillers(file, plain)}
    assert sorted(comments(left.decode())) == sorted([*comments(text), "// the end"])


def fillers(file: File, plain: dict[str, Any]) -> dict[str, Any]:
    """Return what stays of us as long as there is something else: `version` and `$schema`."""
    missing = [edit for edit in file.edits if edit.kind == "missing"]
    return {edit.path[0]: edit.value for edit in missing if edit.path[0] not in plain}


@pytest.mark.parametrize("file", CASES)
@limits(max_examples=12, deadline=None)
@given(plain=settings(), indent=st.sampled_from([2, 4, "\t"]))
def test_taking_it_out_of_a_neat_file_leaves_it_as_neat(
    file: File, plain: dict[str, Any], indent: int | str
) -> None:
    plain |= fillers(file, plain)
    text = json.dumps(plain, indent=indent, ensure_ascii=False) + "\n"
    kept = kept_of(file, text.encode())
    left = disconnecting(kept, kept.after + b"\n").then
    assert left is not None and left.decode() == text + "\n"


@pytest.mark.parametrize("name", FILES)
@limits(max_examples=12, deadline=None)
@given(data=st.data())
def test_another_address_takes_the_place_of_the_first(name: str, data: st.DataObject) -> None:
    plain = data.draw(settings())
    before = data.draw(written(plain)).encode()
    kept = kept_of(FILES[name], before)
    moved = files(OTHER, token=data.draw(st.booleans()))[name]
    step = connecting("/f", moved, kept.after, kept)
    assert step.then is not None and step.keep is not None
    assert URL.encode() not in step.then and step.then.count(OTHER.encode()) == kept.after.count(URL.encode())
    assert has_ours(parse(step.then.decode()), moved)
    assert disconnecting(step.keep, step.then).then == before


@pytest.mark.parametrize("name", FILES)
def test_the_model_can_be_left_out_again(name: str) -> None:
    before = b'{\n    // mine\n    "model": "opus",\n    "env": {"ANTHROPIC_BASE_URL": "https://mine"}\n}\n'
    kept = kept_of(FILES[name], before)
    step = connecting("/f", files(URL, model=False)[name], kept.after, kept)
    assert step.then is not None and step.keep is not None
    now = parse(step.then.decode())
    assert now["model"] == "opus" and now["env"] == {"ANTHROPIC_BASE_URL": "https://mine"}
    assert "provider" not in now and "apiKeyHelper" not in now
    assert disconnecting(step.keep, step.then).then == before


@pytest.mark.parametrize("file", CASES)
@pytest.mark.parametrize(
    "before", [None, b"", b"\n", b"{}", b"// nothing", b"/* nothing */\r\n", b"// nothing yet\n{\n}\n", BOM]
)
def test_files_that_hold_nothing(file: File, before: bytes | None) -> None:
    kept = kept_of(file, before)
    assert has_ours(parse(kept.after.decode()), file)
    assert disconnecting(kept, kept.after).then == before


@pytest.mark.parametrize("file", CASES)
def test_a_file_that_we_made_goes_when_its_program_only_wrote_it_anew(file: File) -> None:
    kept = kept_of(file, None)
    anew = json.dumps(json.loads(kept.after)).encode()
    assert anew != kept.after and disconnecting(kept, anew).then is None
    assert disconnecting(kept, None).then is None
    more = json.dumps({**json.loads(kept.after), "mine": 1}).encode()
    left = disconnecting(kept, more).then
    assert left is not None and json.loads(left) == {**fillers(file, {}), "mine": 1}


def test_what_somebody_put_into_ours_is_kept_when_it_is_connected_again() -> None:
    file = FILES["gemini-user-.gemini/settings.json"]
    kept = kept_of(file, b"{}")
    trusted = put(kept.after.decode(), ("mcpServers", "herdr", "trust"), True).encode()
    step = connecting("/f", file, trusted, kept)
    assert step.then == trusted and step.keep == kept
    assert disconnecting(kept, trusted).then == b"{}"


def test_a_value_that_was_changed_since_is_the_users() -> None:
    file = FILES["claude-code-user-.claude/settings.json"]
    kept = kept_of(file, b'{"env": {"ANTHROPIC_BASE_URL":  "https://mine"}}')
    since = put(kept.after.decode(), ("env", "ANTHROPIC_BASE_URL"), "https://newer").encode()
    assert disconnecting(kept, since).then == b'{"env": {"ANTHROPIC_BASE_URL":  "https://newer"}}'
    other = put(kept.after.decode(), ("added",), 1).encode()
    left = disconnecting(kept, other).then
    assert left == b'{"env": {"ANTHROPIC_BASE_URL":  "https://mine"}, "added": 1}'  # its two spaces, too


def test_a_file_that_is_as_it_was_is_left_alone() -> None:
    """Such as after a crash between remembering and writing."""
    first = kept_of(files(URL, model=False)["cursor-user-.cursor/hooks.json"], None)
    before = first.after.replace(
        b"--max-time 5", b"--max-time 4"
    )  # an older connection that nothing is known of
    kept = kept_of(FILES["cursor-user-.cursor/hooks.json"], before)
    assert kept.after != before and disconnecting(kept, before) == Step("/f", before, before)


def test_a_file_of_ours_that_was_changed_stays_and_that_is_said() -> None:
    file = File("herdr.js", whole="ours\n")
    step = connecting("/f", file, None, None)
    assert step.keep is not None and step.then == b"ours\n"
    assert disconnecting(step.keep, b"ours\n") == Step("/f", b"ours\n", None)
    assert disconnecting(step.keep, b"theirs\n") == Step("/f", b"theirs\n", b"theirs\n", stays=True)
    newer = connecting("/f", File("herdr.js", whole="newer\n"), b"ours\n", step.keep)
    assert newer.keep is not None and disconnecting(newer.keep, b"newer\n").then is None


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
        (b'{"mcpServers": {"herdr": {"command": "herdr-mcp"}}}', "is there already and is something else"),
    ],
)
def test_a_file_that_cannot_be_changed_is_refused_with_its_line(text: bytes, said: str) -> None:
    (file,) = (f for f in RECIPES["claude-code"].files["project"](Wish(URL)) if f.path == ".mcp.json")
    with pytest.raises(Unreadable, match=re.escape(said)) as refused:
        connecting("/home/me/.mcp.json", file, text, None)
    assert "/home/me/.mcp.json cannot be changed" in refused.value.detail


def test_a_file_that_was_broken_since_is_refused_and_said_how_to_go_on() -> None:
    kept = kept_of(FILES["cursor-user-.cursor/mcp.json"], b"{}")
    with pytest.raises(Unreadable, match=r"line 9.*Mend it and undo again"):
        disconnecting(kept, kept.after[:-5])


def test_the_difference_is_one_that_patch_understands() -> None:
    steps = [
        Step("/a", b"x\r\ny\r\n", b"x\r\nz\r\n"),
        Step("/b", None, b"n\n"),
        Step("/c", b"o", None),
        Step("/d", b"", b""),
    ]
    assert list(difference(steps)) == [
        *("--- /a", "+++ /a", "@@ -1,2 +1,2 @@", " x", "-y", "+z"),
        *("--- /dev/null", "+++ /b", "@@ -0,0 +1 @@", "+n"),
        *("--- /c", "+++ /dev/null", "@@ -1 +0,0 @@", "-o"),
    ]
