import pytest

from herdr.context.sessions.message import Call
from herdr.context.sessions.tools import commit_message, is_check, kind_of, paths_in, subject_of, touched


@pytest.mark.parametrize(
    "name, kind",
    [
        ("Read", "read"), ("read_file", "read"), ("view", "read"),
        ("Edit", "edit"), ("MultiEdit", "edit"), ("str_replace", "edit"), ("apply_patch", "edit"),
        ("Write", "write"), ("create_file", "write"), ("delete_file", "delete"),
        ("Bash", "shell"), ("run_terminal_cmd", "shell"), ("shell", "shell"),
        ("Grep", "search"), ("Glob", "search"), ("TodoList", "search"), ("WebFetch", "other"),
    ],
)  # fmt: skip
def test_kinds(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    "call, files",
    [
        (Call("Edit", files=("a.py",)), [("a.py", "edited")]),
        (Call("Write", files=("a.py",)), [("a.py", "created")]),
        (Call("Read", files=("a.py",)), [("a.py", "read")]),
        (Call("Grep", files=("src",)), []),
        (Call("bash", "cat src/a.py | head"), [("src/a.py", "read")]),
        (Call("bash", "cd x && git rm old.py && rm -f b.txt"), [("old.py", "deleted"), ("b.txt", "deleted")]),
        (
            Call("bash", "echo hi > notes.md; cat x >> log.txt"),
            [("notes.md", "created"), ("log.txt", "edited")],
        ),
        (Call("bash", "sed -i s/a/b/ src/a.py"), [("src/a.py", "edited")]),
        (Call("bash", "python3 x.py > /tmp/out.txt 2> /dev/null"), []),
    ],
)
def test_files_that_a_call_touches(call: Call, files: list[tuple[str, str]]) -> None:
    assert list(touched(call)) == files


def test_paths_in_a_text() -> None:
    text = (
        "See src/a.py, `web/b.tsx` and c.md; not 2.4.0, example.com/x or foo.bar(), nor a.pyc. Also C:/x/y.rs"
    )
    assert paths_in(text) == ["src/a.py", "web/b.tsx", "c.md", "C:/x/y.rs"]


@pytest.mark.parametrize(
    "command, subject, targets",
    [
        ("cd /srv/x && python3 -m pytest tests/a.py -q 2>&1 | tail -3", "pytest", ("tests/a.py",)),
        ("cat > a.py <<'X'\npytest", "pytest", ()),
        ("timeout 60 npm test", "npm test", ()),
        ("FOO=1 cargo test --release parser", "cargo test", ("parser",)),
        ("for i in 1 2; do pytest -x; done", "pytest", ()),
        ("git add -A && git commit -m 'run pytest | later'", "git add", ()),
        ("cat a.py | grep x", "", ()),
        ("git log --oneline | head -3", "", ()),
        ("node app.js --fast", "node app.js", ()),
        ("", "", ()),
    ],
)
def test_what_a_command_is_about(command: str, subject: str, targets: tuple[str, ...]) -> None:
    assert subject_of(command) == (subject, targets)


def test_checks_and_commits() -> None:
    assert is_check("cargo test") and is_check("mypy") and not is_check("node app.js")
    assert commit_message("git add . && git commit -qm 'Add a thing' && git push") == "Add a thing"
    assert commit_message('git commit -m "Say \\"hi\\""') == 'Say \\"hi\\"'
    assert commit_message("git log -m 'x'") == ""
