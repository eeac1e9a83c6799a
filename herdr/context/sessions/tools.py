"""Pure: what tools did, by their names, their commands and the paths that stand in them."""

import re
from collections.abc import Iterator
from typing import Literal

from herdr.context.sessions.message import COMMAND_MAX, PATH_MAX, Call

Action = Literal["read", "edited", "created", "deleted"]
Kind = Literal["shell", "edit", "write", "read", "delete", "search", "other"]

TARGETS_MAX = 8  # arguments of a command that are compared

_KINDS: dict[Kind, re.Pattern[str]] = {
    "delete": re.compile(r"delete_?file|remove_?file|^delete$|^rm$", re.I),
    "write": re.compile(r"write|create|new_?file|save_?file", re.I),
    "edit": re.compile(r"edit|replace|patch|apply_diff|insert|update_file|modify", re.I),
    "shell": re.compile(r"^bash|shell|terminal|command|^exec|^run_|^run$|powershell|^sh$|process", re.I),
    "search": re.compile(r"grep|glob|search|find|^ls$|list|tree", re.I),
    "read": re.compile(r"read|view|open_file|^cat$|get_file|fetch_file", re.I),
}
"""The first that fits counts."""
_ACTIONS: dict[Kind, Action] = {"edit": "edited", "write": "created", "read": "read", "delete": "deleted"}

_EXTENSIONS = (
    r"(?:py|pyi|js|jsx|mjs|cjs|ts|tsx|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|lua|sh|bash"
    r"|ps1|sql|html|css|scss|vue"
    r"|svelte|md|rst|txt|toml|yaml|yml|json|jsonl|ini|cfg|conf|env|lock|xml|proto|gradle|csv|tf|ipynb)"
)
_PATH = re.compile(rf"(?<![\w@:/.-])(?:[A-Za-z]:)?(?:[\w.@~+-]*/)*[\w.@+-]+\.{_EXTENSIONS}(?![\w/(-]|\.\w)")
_PLAIN_FILE = re.compile(r"(?:^|/)(?:Dockerfile|Makefile|Cargo\.toml|go\.mod|Gemfile|CMakeLists\.txt)$")

# What changes nothing about what a command is: where it runs, how long it may, where its output goes.
_WRAPPING = re.compile(r"^(?:cd \S+|set -\w+|export \S+|source \S+|\. \S+|true|sleep \S+|echo .*)$")
_PREFIX = re.compile(
    r"^(?:do +|then +|else +|[({] *|\w+=\S* +|sudo +|time +|timeout +(?:-\S+ +)*\S+ +|nice +(?:-n +\S+ +)?"
    r"|env +|npx +|uv run +|poetry run +)+"
)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_PARTS = re.compile(r"\s*(?:&&|\|\||;|\n|\|(?!\|))\s*")
_RUNNER = re.compile(
    r"^(?:python[\d.]* -W \w+ -m |python[\d.]* -m |bundle exec |\./)?"
    r"(pytest|unittest|tox|nox|mypy|pyright|ruff|flake8|pylint|black|cargo (?:test|build|check|clippy"
    r"|run)|go (?:test|build|vet)"
    r"|npm (?:test|run \S+|ci|install)|pnpm (?:test|run \S+|install)|yarn(?: \w+)?|jest|vitest|mocha"
    r"|node --test|tsc|eslint"
    r"|make(?: \w+)?|cmake|ctest|mvn|gradlew?|dotnet (?:test|build)|rspec|rake|phpunit|golangci-lint"
    r"|pre-commit"
    r"|docker (?:build|compose)|bazel \w+|swift (?:test|build))\b(.*)$"
)
_VIEWERS = re.compile(
    r"^(?:cat|head|tail|less|sed -n|grep|rg|ag|find|ls|wc|git (?:log|show|diff|status|blame|grep"
    r"|branch)|tree|file|stat|echo|pwd"
    r"|which|env|printf|jq)\b"
)
_FILE_COMMANDS: dict[str, Action] = {
    **{"cat": "read", "head": "read", "tail": "read", "less": "read", "sed -n": "read"},
    **{"rm": "deleted", "git rm": "deleted", "unlink": "deleted"},
    **{
        "touch": "created",
        "sed -i": "edited",
        "git mv": "edited",
        "mv": "edited",
        "patch": "edited",
        "cp": "created",
    },
}
_COMMIT = re.compile(r"\bgit commit\b[^;&|]*? -\w*m +(?:'([^']+)'|\"((?:[^\"\\]|\\.)+)\")")
_REDIRECT = re.compile(r"(>>?)\s*([^\s;&|<>]+)")


def kind_of(name: str) -> Kind:
    """Return what sort of tool a name stands for."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(name)), "other")


def touched(call: Call) -> Iterator[tuple[str, Action]]:
    """Yield the files that a call works on and what it does to them, as far as its arguments say."""
    kind = kind_of(call.name)
    if kind == "shell":
        yield from _touched_by(call.command)
    elif action := _ACTIONS.get(kind):
        yield from ((path, action) for path in call.files)


def paths_in(text: str) -> list[str]:
    """Return the paths of files that stand in a text, in order."""
    return list(dict.fromkeys(found for found in _PATH.findall(text) if len(found) <= PATH_MAX))


def _touched_by(command: str) -> Iterator[tuple[str, Action]]:
    for into, path in _REDIRECT.findall(command):
        if _is_file(path) and not path.startswith(("/dev/", "/tmp/")):
            yield path, "edited" if into == ">>" else "created"
    for part in parts_of(command):
        program, *rest = part.split()
        two = f"{program} {rest[0]}" if rest else program
        if action := _FILE_COMMANDS.get(two) or _FILE_COMMANDS.get(program):
            yield from ((word, action) for word in rest if _is_file(word) and not word.startswith("/tmp/"))


def _is_file(word: str) -> bool:
    return _PATH.fullmatch(word) is not None or _PLAIN_FILE.search(word) is not None


def parts_of(command: str) -> list[str]:
    """Return the programs that a shell is told to run one after another, without what only wraps them."""
    text = _QUOTED.sub("''", command)
    parts = [
        _PREFIX.sub("", re.sub(r"\s*\d?>{1,2}\s*\S+|\s*2>&1", "", part)).strip()
        for part in _PARTS.split(text)
    ]
    return [part for part in parts if part and not _WRAPPING.match(part)]


def subject_of(command: str) -> tuple[str, tuple[str, ...]]:
    """Return what a command is about: a test, build or check and its targets; else its first program.

    Two runs with the same first item are runs of the same thing; empty for a command that only shows something.
    """
    parts = parts_of(command)
    for part in parts:
        if found := _RUNNER.match(part):
            targets = [word for word in found[2].split() if not word.startswith("-")]
            return found[1], tuple(targets[:TARGETS_MAX])
    doing = [part for part in parts if not _VIEWERS.match(part)]
    return (" ".join(doing[0].split()[:2])[:COMMAND_MAX], ()) if doing else ("", ())


def commit_message(command: str) -> str:
    """Return what a command says that it commits; empty for another one."""
    found = _COMMIT.search(command)
    return next(filter(None, found.groups()), "").split("\n")[0] if found else ""


def is_check(subject: str) -> bool:
    """Say whether a command's subject is a test, a build or a check."""
    return _RUNNER.match(subject) is not None
