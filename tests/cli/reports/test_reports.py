"""The readers, on what the tools really print: pytest and ruff are run here, ESLint 10.15 was recorded."""

import subprocess
import sys
from pathlib import Path

import pytest

from herdr.cli.reports import read_reports
from herdr.cli.reports.report import FINDINGS_MAX, NAMES_MAX

SAMPLES = Path(__file__).parent / "samples"
TEST_FILE = """\
import pytest

class TestGroup:
    @pytest.mark.parametrize("text", ["a - b", "c[1]", "plain"])
    def test_param(self, text):
        print("=========================== short test summary info ============================")
        print("FAILED not::a_test - said by the test")
        assert text == "no - [x]"

def test_raises():
    raise ValueError("boom [1] - x")

@pytest.fixture
def broken():
    raise RuntimeError("no")

def test_uses(broken):
    pass

@pytest.mark.skip
def test_skipped():
    pass

def test_fine():
    pass
"""
FAILED = [
    *(f"test_it.py::TestGroup::test_param[{text}]" for text in ("a - b", "c[1]", "plain")),
    *("test_it.py::test_raises", "test_it.py::test_uses"),
]
PYTHON_FILE = "import os\n\nx = undefined\nif x == None: pass\n"
ESLINT_FINDINGS = [
    ("/home/dev/shop/src/broken.js", 1, 23, "", "error"),
    ("/home/dev/shop/src/cart.js", 1, 5, "prefer-const", "error"),
    ("/home/dev/shop/src/cart.js", 2, 7, "no-unused-vars", "error"),
    ("/home/dev/shop/src/cart.js", 4, 18, "eqeqeq", "warning"),
    ("/home/dev/shop/src/cart.js", 5, 12, "no-undef", "error"),
    ("/home/dev/shop/src/cart.js", 7, 7, "prefer-const", "error"),
]


def output_of(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.mark.parametrize("options", [(), ("-q",), ("-v",), ("-q", "--tb=no"), ("--tb=line",)])
def test_pytest(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(TEST_FILE)
    [report] = read_reports(output_of(tmp_path, "pytest", "-p", "no:cacheprovider", *options, "test_it.py"))
    assert (report.type, report.tool) == ("test.failed", "pytest")
    assert report.details["failed"] == FAILED
    assert report.details["summary"] == {"failed": 4, "passed": 1, "skipped": 1, "error": 1}


def test_pytest_that_cannot_collect(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import nosuchmodule\n")
    [report] = read_reports(output_of(tmp_path, "pytest", "-p", "no:cacheprovider", "test_it.py"))
    assert report.details == {"failed": ["test_it.py"], "summary": {"error": 1}}


def test_pytest_without_its_summary_still_counts(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): assert 0\n")
    [report] = read_reports(output_of(tmp_path, "pytest", "-p", "no:cacheprovider", "-rN", "test_it.py"))
    assert report.details == {"failed": [], "summary": {"failed": 1}}


def test_pytest_that_passes_or_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): pass\n")
    for name in ("test_it.py", "nosuch.py"):
        assert read_reports(output_of(tmp_path, "pytest", "-p", "no:cacheprovider", name)) == []


@pytest.mark.parametrize("form", ["full", "concise", "json"])
def test_ruff(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.py").write_text(PYTHON_FILE)
    (tmp_path / "b.py").write_text("def f(:\n")
    command = ("ruff", "check", "--isolated", "--no-cache", "--select", "E,F", "--output-format", form, ".")
    [report] = read_reports(output_of(tmp_path, *command))
    assert (report.type, report.tool) == ("lint.error", "ruff")
    found = [(Path(f["path"]).name, f["line"], f["column"], f["code"]) for f in report.details["findings"]]
    assert found[:5] == [
        *(("a.py", 1, 8, "F401"), ("a.py", 3, 5, "F821"), ("a.py", 4, 9, "E711"), ("a.py", 4, 13, "E701")),
        ("b.py", 1, 7, "invalid-syntax"),
    ]
    assert report.details["findings"][0]["message"] == "`os` imported but unused"
    assert report.details["findings_total"] == len(found)


def test_ruff_format(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PYTHON_FILE)
    [report] = read_reports(output_of(tmp_path, "ruff", "format", "--isolated", "--no-cache", "--check", "."))
    assert [(f["path"], f["code"]) for f in report.details["findings"]] == [("a.py", "unformatted")]


def test_ruff_that_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    for form in ("full", "concise", "json"):
        command = ("ruff", "check", "--isolated", "--no-cache", "--output-format", form, ".")
        assert read_reports(output_of(tmp_path, *command)) == []


@pytest.mark.parametrize("name", ["eslint-stylish.txt", "eslint.json"])
def test_eslint(name: str) -> None:
    # npm prints its own lines around a script's output
    text = f"\n> shop@1.0.0 lint\n> eslint src\n\n{(SAMPLES / name).read_text()}\nnpm error code 1\n"
    [report] = read_reports(text)
    assert (report.type, report.tool) == ("lint.error", "eslint")
    found = [
        (f["path"], f["line"], f["column"], f["code"], f["severity"]) for f in report.details["findings"]
    ]
    assert found == ESLINT_FINDINGS
    assert report.details["findings"][3]["message"].rstrip(".") == "Expected '===' and instead saw '=='"


def test_two_tools_in_one_output(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import os\ndef test_a(): assert 0\n")
    text = output_of(tmp_path, "ruff", "check", "--isolated", "--no-cache", ".")
    text += output_of(tmp_path, "pytest", "-p", "no:cacheprovider", "test_it.py")
    assert [report.type for report in read_reports(text)] == ["test.failed", "lint.error"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "[1, 2]\n[]\n[{}]\n[null]",
        "make: *** [Makefile:3: all] Error 2\n",
        "error[E0425]: cannot find value\n --> src/main.rs:2:5\nFound 1 error.\n",
        "a.py:1:8: F401 'os' imported but unused\n",  # flake8
        "a.py:3: error: Name 'x' is not defined  [name-defined]\nFound 1 error in 1 file (checked 1 source file)\n",
        "Ran 3 tests in 0.01s\n\nFAILED (failures=1)\n",
    ],
)
def test_other_output_is_not_taken_for_theirs(text: str) -> None:
    assert read_reports(text) == []


def test_reports_are_bounded() -> None:
    names = "".join(f"FAILED a.py::test_{n}{'x' * 1000} - no\n" for n in range(2000))
    text = f"=== short test summary info ===\n{names}2000 failed in 1.00s\n"
    text += "".join(f"a.py:{n}:1: F401 {'x' * 1000}\n" for n in range(1, 2001)) + "Found 2000 errors.\n"
    tests, lint = read_reports(text)
    assert len(tests.details["failed"]) == NAMES_MAX
    assert max(map(len, tests.details["failed"])) == 500
    assert tests.details["summary"] == {"failed": 2000}
    assert len(lint.details["findings"]) == FINDINGS_MAX
    assert lint.details["findings_total"] == 2000
    assert max(len(f["message"]) for f in lint.details["findings"]) == 500
