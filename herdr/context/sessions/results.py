"""Pure: whether a tool's output tells of a failure or a success, and of which."""

import re

import msgspec

OUTPUT_MAX = (
    24_000  # characters of an output that are read, from its two ends; a summary stands at one of them
)
LINE_MAX = 200  # characters of an error or outcome that are kept
NAMES_MAX = 8  # failing tests that are kept by name

_NAMED_FAILURE = re.compile(
    r"^(?:FAILED|ERROR) (\S+::\S+|\S+\.py)|^--- FAIL: (\S+)|^not ok \d+ - (.+?)(?: #.*)?$"
    r"|^[ \t]*[✖✗\u00d7] (.+?)(?: \([\d.]+ ?m?s\))?$"
    r"|^test (\S+) \.\.\. FAILED|^FAIL:? (\S+)|^[ \t]*● (.+)$",
    re.M,
)
_COUNTED_FAILURE = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b(?! in 0)|^# fail [1-9]|test result: FAILED|^FAIL\b"
    r"|\bBUILD FAIL(?:ED|URE)\b"
    r"|^Found [1-9]\d* errors?|[1-9]\d* problems? \(",
    re.M,
)
_ERROR_LINE = re.compile(
    r"^[ \t]*(?:E[ \t]+)?((?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt|Exit|Panic|Failure)\b(?:\[\w+\]"
    r"| \[\w+\])?:? ?.*)$"
    r"|^[ \t]*(error(?:\[E\d+\])?: .+)$|^(.+?: (?:fatal )?error:? .+)$|^(.+\berror TS\d+: .+)$"
    r"|^(npm ERR! .+)$|^(panic: .+)$"
    r"|^(fatal: .+)$|^(.*(?:command not found|No such file or directory|Permission denied"
    r"|Segmentation fault|Killed|out of memory).*)$"
    r"|^[ \t]*((?:\w+\.)+[A-Z]\w+: .+)$"
    r"|^(\S+ .*\bpanicked at .+)$|^(ERR!.+)$|^[ \t]*(Error: .+)$",
    re.M,
)
_COMPILER = re.compile(r"^error(?:\[E\d+\])?: |\berror TS\d+:|: (?:fatal )?error: ", re.M)
_THROWN = re.compile(r"^(?:Uncaught )?\w*Error: ", re.M)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)", re.M)
_PASSED = re.compile(
    r"^[= ]*(\d+ passed\b.*?)[= ]*$|^(test result: ok\. .*)$|^(ok\s+\S+.*)$|^(# pass [1-9]\d*)$"
    r"|^(Tests?: +.*\d+ passed.*)$"
    r"|^(Success: no issues found.*)$|^(All checks passed!?)$|^(OK(?: \(.*\))?)$|^(BUILD SUCCESS\w*)"
    r"|^(.*\b0 problems\b.*)$"
    r"|^(0 issues\.?)$|^(\d+ tests? (?:passed|completed|OK).*)$|^([ \t]*\d+ passing\b.*)$"
    r"|^([ \t]*Finished .*)$",
    re.M,
)
_REPORTED = re.compile(
    r"^(?:\w+\.)+[A-Z]\w+: |^Traceback \(most recent call last\)"
    r"|^[ \t]*(?:E[ \t]+)?(?:\w+\.)*\w+(?:Error|Exception)\b.*:|^FAILED "
    r"|^--- FAIL|^[ \t]*[✖✗] |^npm ERR!|^panic: "
    r"|\berror(?:\[E\d+\]| TS\d+):|^error: |^Error: |^fatal: |\bBUILD FAIL|^Caused by: |^ERROR ",
    re.M,
)
_COMMIT = re.compile(r"^\[(\S+(?: \(root-commit\))?) ([0-9a-f]{7,40})\] (.+)$", re.M)


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What an output tells."""

    failed: bool = False
    passed: bool = False
    line: str = ""
    """The line that says most: the error, or the count of what passed."""
    names: tuple[str, ...] = ()
    """Tests that failed."""


def verdict(text: str, failed: bool | None) -> Verdict:
    """Judge what a command printed; `failed` is what its tool said about it.

    The text counts beside that: behind `| tail` a failing test ends well.
    """
    text = _ends(text)
    names = tuple(dict.fromkeys(next(filter(None, found)) for found in _NAMED_FAILURE.findall(text)))[
        :NAMES_MAX
    ]
    if failed or names or _COUNTED_FAILURE.search(text) or _is_thrown(text):
        return Verdict(failed=True, line=_telling(text, names), names=names)
    passed = list(_PASSED.finditer(text))
    line = next(filter(None, passed[-1].groups()), "").strip()[:LINE_MAX] if passed else ""
    return Verdict(passed=bool(passed) or failed is False, line=line)


def reported(text: str) -> str:
    """Return the error that a user's message pastes; empty when it pastes none."""
    text = _ends(text)
    found = _REPORTED.search(text)
    if found is None:
        return ""
    return _telling(text, ()) if _ERROR_LINE.search(text) else _line_at(text, found.end() - 1)[:LINE_MAX]


def commits_in(text: str) -> list[str]:
    """Return the subjects of the commits that an output tells of, with their hashes."""
    return [f"{sha[:10]} {subject}"[:LINE_MAX] for _, sha, subject in _COMMIT.findall(_ends(text))]


def _ends(text: str) -> str:
    if len(text) <= OUTPUT_MAX:
        return text
    return f"{text[: OUTPUT_MAX // 3]}\n{text[-OUTPUT_MAX * 2 // 3 :]}"


def _is_thrown(text: str) -> bool:
    """Say whether a program ended with an error, or a compiler found one."""
    return any(pattern.search(text) for pattern in (_TRACEBACK, _THROWN, _COMPILER))


def _telling(text: str, names: tuple[str, ...]) -> str:
    """Return the line that names the error best: the last of a traceback, the first of a compiler."""
    lines: list[str] = [next(filter(None, found)).strip() for found in _ERROR_LINE.findall(text)]
    if lines:
        line = lines[-1] if _TRACEBACK.search(text) and not names else lines[0]
    else:
        counted = _COUNTED_FAILURE.search(text)
        whole = [row.strip() for row in text.splitlines() if row.strip()]
        line = _line_at(text, counted.start()) if counted else (whole[-1] if whole else "failed")
    return line[:LINE_MAX]


def _line_at(text: str, place: int) -> str:
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    return text[start : end if end >= 0 else len(text)].strip(" =")
