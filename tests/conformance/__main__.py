"""Runs every scenario of the suites but those that `left_out.json` names, and prints what held.

A scenario that a newer suite brings is run, too. What is left out must still fail or be impossible: a check that
holds although it is left out is an error, so that the list stays true.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from gateway import running_gateway

LEFT_OUT = json.loads((Path(__file__).parent / "left_out.json").read_text())
SUITES = {"conformance-0.1": ("2025-11-25",), "conformance-0.2": ("2025-11-25", "2026-07-28")}
TIMEOUT_S = 120

_LISTED = re.compile(r"^  - (\S+) \[(.*)\]$", re.MULTILINE)


class Suite(NamedTuple):
    node: Path
    program: Path

    def call(self, *args: str) -> str:
        command = [str(self.node), str(self.program), *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        return done.stdout + done.stderr

    def scenarios(self, version: str) -> Iterator[str]:
        """Yield the scenarios for servers that a version of the protocol has, and the extensions'."""
        listed = self.call("list").partition("Server scenarios")[2].partition("\nClient scenarios")[0]
        for name, versions in _LISTED.findall(listed):
            if version in versions or versions == "extension":
                yield name

    def run(self, name: str, version: str, url: str, versioned: bool) -> list[dict[str, Any]]:
        """Run one scenario, and return its checks."""
        with tempfile.TemporaryDirectory(prefix="check-mcp-") as folder:
            wanted = ("--spec-version", version) if versioned else ()
            said = self.call("server", "--url", url, "--scenario", name, *wanted, "-o", folder)
            found = list(Path(folder).rglob("checks.json"))
            if len(found) != 1:
                return [{"id": name, "status": "FAILURE", "errorMessage": said[-500:]}]
            return list(json.loads(found[0].read_text()))


def reason(name: str) -> str | None:
    return next((why for glob, why in LEFT_OUT["scenarios"].items() if fnmatch(name, glob)), None)


def main() -> int:
    parser = argparse.ArgumentParser(prog="check-mcp", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="the folder node_modules")
    parser.add_argument("--only", help="one scenario")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="check-mcp-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        (project / "cart.py").write_text("def total(items):\n    return sum(items)\n")
        with running_gateway(Path(folder, "data"), "--workspace", str(project)) as gateway:
            return check(args.programs, f"{gateway.url}/mcp", args.only)


def check(programs: Path, url: str, only: str | None) -> int:
    bad = ran = 0
    known: set[str] = set()
    left_out: set[str] = set()
    for name, versions in SUITES.items():
        suite = Suite(programs / "node/bin/node", programs / name / "dist/index.js")
        for version in versions:
            listed = list(suite.scenarios(version))
            assert listed, f"{name} lists no scenarios for {version}"
            known.update(listed)
            for scenario in listed if only is None else [only]:
                if only is None and reason(scenario) is not None:
                    left_out.add(scenario)
                    continue
                ran += 1
                bad += judge(scenario, version, suite.run(scenario, version, url, name != "conformance-0.1"))
    unused = [glob for glob in LEFT_OUT["scenarios"] if not any(fnmatch(one, glob) for one in known)]
    if unused:
        print(f"left_out.json names what no suite has: {', '.join(unused)}")
    for scenario in sorted(left_out):
        print(f"left out  {scenario}: {reason(scenario)}")
    print(f"{ran} scenarios were run, {bad} failed; {len(left_out)} are left out")
    return 1 if bad or unused else 0


def judge(scenario: str, version: str, checks: list[dict[str, Any]]) -> int:
    """Print one scenario's outcome; 1 when it failed."""
    wrong = []
    for one in checks:
        name, failed = one["id"], one["status"] == "FAILURE"
        if failed and name not in LEFT_OUT["checks"]:
            wrong.append(f"{name}: {one.get('errorMessage') or one.get('description')}")
        elif name in LEFT_OUT["checks"] and one["status"] == "SUCCESS":
            wrong.append(f"{name} holds and is left out all the same")
    held = sum(one["status"] == "SUCCESS" for one in checks)
    if not held:
        wrong.append("nothing was checked")
    print(f"{'FAILED' if wrong else 'passed'}    {version}  {scenario}: {held} checks hold", flush=True)
    for line in [*wrong, *(f"warning: {o['id']}" for o in checks if o["status"] == "WARNING")]:
        print(f"          {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
