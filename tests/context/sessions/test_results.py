import pytest

from herdr.context.sessions.results import LINE_MAX, OUTPUT_MAX, commits_in, reported, verdict

PYTEST = """
    def test_a():
>       assert 1 == 2
E       AssertionError: assert 1 == 2
tests/test_a.py:3: AssertionError
=========== short test summary info ===========
FAILED tests/test_a.py::test_a - AssertionError: assert 1 == 2
1 failed, 3 passed in 0.12s
"""


@pytest.mark.parametrize(
    "text, line, names",
    [
        (PYTEST, "AssertionError: assert 1 == 2", ("tests/test_a.py::test_a",)),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'", "KeyError: 'a'", ()),
        ("error[E0308]: mismatched types\n --> src/a.rs:3", "error[E0308]: mismatched types", ()),
        ("test a::b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed", None, ("a::b",)),
        ("--- FAIL: TestX (0.00s)\nFAIL\tpkg 0.1s", None, ("TestX",)),
        ("src/a.ts(3,4): error TS2345: no", "src/a.ts(3,4): error TS2345: no", ()),
        ("a.c:3:1: error: expected ';'", "a.c:3:1: error: expected ';'", ()),
        ("not ok 2 - a test\n# fail 1", None, ("a test",)),
        ("  \u2716 a test (3ms)", None, ("a test",)),
    ],
)
def test_failures(text: str, line: str | None, names: tuple[str, ...]) -> None:
    seen = verdict(text, None)
    assert seen.failed and seen.names == names
    assert line is None or seen.line == line


@pytest.mark.parametrize(
    "text, line",
    [
        ("..... [100%]\n5 passed in 0.10s", "5 passed in 0.10s"),
        ("===== 12 passed, 1 skipped in 2s =====", "12 passed, 1 skipped in 2s"),
        ("test result: ok. 9 passed; 0 failed", "test result: ok. 9 passed; 0 failed"),
        ("# tests 3\n# pass 3\n# fail 0", "# pass 3"),
        ("ok  \tpkg/a\t0.3s", "ok  \tpkg/a\t0.3s"),
        ("Success: no issues found in 3 source files", "Success: no issues found in 3 source files"),
        ("All checks passed!", "All checks passed!"),
    ],
)
def test_successes(text: str, line: str) -> None:
    seen = verdict(text, None)
    assert seen.passed and not seen.failed and seen.line == line


def test_what_a_tool_says_of_itself_counts_too() -> None:
    assert verdict("whatever", True).failed
    assert verdict("whatever", False).passed
    silent = verdict("whatever", None)
    assert not silent.failed and not silent.passed
    assert verdict(PYTEST, False).failed  # behind a pipe


@pytest.mark.parametrize(
    "text, line",
    [
        ("it broke:\n```\nTypeError: no 'x'\n```", "TypeError: no 'x'"),
        ("CI:\n  AssertionError [ERR_ASSERTION]: not equal", "AssertionError [ERR_ASSERTION]: not equal"),
        ("FAILED tests/a.py::b - locked", "FAILED tests/a.py::b - locked"),
        ("please add error handling for a missing file", ""),
        ("what does KeyError mean?", ""),
    ],
)
def test_reports(text: str, line: str) -> None:
    assert reported(text) == line


def test_commits() -> None:
    text = "[main 5cd3a69] Compute money with decimals\n 4 files changed\n[x (root-commit) 1234567] First"
    assert commits_in(text) == ["5cd3a69 Compute money with decimals", "1234567 First"]


def test_long_outputs_are_read_at_their_ends() -> None:
    assert verdict("x\n" * OUTPUT_MAX + "1 failed", None).failed
    assert len(verdict("ValueError: " + "x" * OUTPUT_MAX, True).line) == LINE_MAX
