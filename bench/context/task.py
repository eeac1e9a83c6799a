"""Tokens that four tools take in while they work through one recorded task, each for itself and with Herdr.

A recording (`recordings/*.jsonl`) says what each tool looked up, said, changed and ran, in order; for each look-up
it has three ways: `whole` (lists, greps, whole files), `sparing` (greps, and only the lines around what they found)
and `herdr` (map, outlines, symbols, callers, and the lines that they name). The replay makes the changes in a real
tree, and puts every question to a real gateway, or to the files as they are at that point.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from bpe_openai import get_encoding  # type: ignore[import-untyped]

from bench.context.fetched import DJANGO
from bench.context.indexed import indexed, new_data
from bench.context.shared import SharedContext
from bench.context.trees import git, restore, tree_of
from bench.plan import Plan
from bench.report import Line

RECORDING = Path(__file__).parent / "recordings" / "upload-names.jsonl"
READ_LINES_MAX = 2000  # what the usual tools read of a file in one go
GREP_LINES_MAX = 250  # what they take of the lines that a search found

Way = Literal["whole", "sparing", "herdr"]
WAYS: tuple[Way, ...] = ("whole", "sparing", "herdr")
Action = Mapping[str, Any]


class Head(msgspec.Struct):
    """The first line of a recording."""

    task: str
    tree: str
    tools: list[str]


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """One line: what one tool did."""

    by: str
    says: str = ""
    role: str = ""
    hears: bool = False
    """It is told what the others have said."""
    why: str = ""
    whole: list[dict[str, Any]] = []
    sparing: list[dict[str, Any]] = []
    herdr: list[dict[str, Any]] = []
    edit: str = ""
    """A path, in which `old` becomes `new`."""
    old: str = ""
    new: str = ""
    diff: list[str] = []
    runs: str = ""
    prints: str = ""


def task(plan: Plan) -> list[Line]:
    """Replay the recording in all three ways and count with o200k_base. One run is as good as ten."""
    head, steps = recording(RECORDING)
    tree = tree_of(plan.folder, DJANGO)
    spent: dict[Way, dict[str, int]] = {}
    try:
        with new_data(plan.folder) as data, indexed(data, tree) as herdr:
            for way in WAYS:
                herdr.wait()
                spent[way] = Replay(tree, way, SharedContext(herdr, tree)).run(steps)
                restore(tree)
    finally:
        restore(tree)
    return [_line(head, spent, "whole", "whole files"), _line(head, spent, "sparing", "the lines around")]


def recording(file: Path) -> tuple[Head, list[Step]]:
    """Return a recording; raises msgspec.ValidationError."""
    first, *rest = file.read_bytes().splitlines()
    return msgspec.json.decode(first, type=Head), [msgspec.json.decode(line, type=Step) for line in rest]


def _line(head: Head, spent: Mapping[Way, Mapping[str, int]], peer: Way, read: str) -> Line:
    ours, theirs = spent["herdr"], spent[peer]
    beside = {
        f"{tool}, of {theirs[tool]:,} without": [float(ours[tool])] for tool in (*head.tools, "of that read")
    }
    return Line(
        f"tokens of {len(head.tools)} tools at one task on {head.tree} ({head.task})",
        "tokens",
        [float(sum(ours[tool] for tool in head.tools))],
        f"without Herdr, greps and {read}",
        [float(sum(theirs[tool] for tool in head.tools))],
        beside=beside,
    )


class Replay:
    """One way through a recording."""

    def __init__(self, tree: Path, way: Way, shared: SharedContext) -> None:
        self._tree = tree
        self._way = way
        self._shared = shared
        self._encode: Callable[[str], Sequence[int]] = get_encoding("o200k_base").encode_ordinary
        self._spent: defaultdict[str, int] = defaultdict(int)
        self._said: list[tuple[str, str]] = []
        self._heard: defaultdict[str, int] = defaultdict(int)

    def run(self, steps: Sequence[Step]) -> dict[str, int]:
        """Return the tokens of each tool, and under `of that read` those of all that was looked up or told."""
        for step in steps:
            for text, is_read in self._texts(step):
                tokens = len(self._encode(text))
                self._spent[step.by] += tokens
                self._spent["of that read"] += tokens if is_read else 0
        return dict(self._spent)

    def _texts(self, step: Step) -> Iterator[tuple[str, bool]]:
        """Do one step; yields what goes through the tool's model, and whether it is something read."""
        if step.says:
            self._said.append((step.by, step.says))
            if self._way == "herdr":
                self._shared.say(step.by, step.role, step.says)
            yield step.says, False
        if step.hears:
            yield self._news(step.by), True
        for action in getattr(step, self._way):
            yield msgspec.json.encode(action).decode(), False
            yield self._look(step.by, action), True
        if step.edit:
            self._change(step)
            yield step.edit + step.old + step.new, False
        if step.diff:
            yield git(self._tree, "diff", "--", *step.diff), False
        if step.runs:
            yield step.runs + step.prints, False

    def _news(self, tool: str) -> str:
        """Return what the others have said since this tool last heard of them."""
        since, self._heard[tool] = self._heard[tool], len(self._said)
        if self._way == "herdr":
            return self._shared.window(tool) if since == 0 else self._shared.messages(tool)
        return "\n\n".join(f"{by}: {text}" for by, text in self._said[since:] if by != tool)

    def _look(self, tool: str, action: Action) -> str:
        match action:
            case {"read": path, **lines}:
                first, last = lines.get("lines", (1, READ_LINES_MAX))
                return "".join((self._tree / path).read_text().splitlines(keepends=True)[first - 1 : last])
            case {"list": path}:
                inside = (self._tree / path).iterdir()
                return "\n".join(sorted(f"{one.name}/" if one.is_dir() else one.name for one in inside))
            case {"grep": pattern, "under": under}:
                return "\n".join(self._found(re.compile(pattern), under)[:GREP_LINES_MAX])
            case _:
                return self._shared.look(tool, action)

    def _found(self, pattern: re.Pattern[str], under: str) -> list[str]:
        found = []
        for path in git(self._tree, "grep", "-IlE", pattern.pattern, "--", under).splitlines():
            for number, line in enumerate((self._tree / path).read_text().splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{path}:{number}:{line}")
        return found

    def _change(self, step: Step) -> None:
        file = self._tree / step.edit
        text = file.read_text()
        if text.count(step.old) != 1:
            raise RuntimeError(f"the recording does not fit {step.edit}: {step.old!r}")
        file.write_text(text.replace(step.old, step.new))
        if self._way == "herdr":
            self._shared.saved(step.by, step.edit)
