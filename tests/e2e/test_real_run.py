"""A real run: an editor saves, `git checkout` switches a branch, and pytest fails under `herdr exec`.

Two differently routed targets each get exactly what their rules say, in order; a third gets nothing.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from gateway import GatewayProcess, running_gateway
from wire import Stream, accept, all_events, health, wait_until

FILES = 300

CONFIG = {
    "routes": [
        {"event": "file.*", "target": "indexer", "timeout_ms": 60_000},
        {"event": "files.*", "target": "indexer", "timeout_ms": 60_000},
        {
            "event": "test.failed",
            "target": "debugger",
            "match": {"workspace": "repo", "data.tool": "pytest", "data.failed": "test_it.py::*"},
            "priority": "P0",
        },
        {"event": "test.failed", "target": "idler", "match": {"workspace": "elsewhere"}},
        {"event": "file.changed", "target": "idler", "match": {"subject": "secret/**"}},
        {"event": "*", "target": "idler", "match": {"source": "end"}},
        {"event": "*", "target": "debugger", "match": {"source": "end"}},
        {"event": "*", "target": "indexer", "match": {"source": "end"}},
    ]
}


def git(repo: Path, *args: str) -> None:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *args], cwd=repo, check=True, capture_output=True)


def make_repository(repo: Path) -> None:
    """Two branches on which 300 files differ, and a test that fails on both."""
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n*.log\n")
    (repo / "notes.md").write_text("the same on both branches\n")
    (repo / "test_it.py").write_text(
        "def test_right():\n    pass\n\n\ndef test_wrong():\n    assert 1 == 2\n"
    )
    for branch in ("main", "other"):
        if branch == "other":
            git(repo, "checkout", "-q", "-b", branch)
        for number in range(FILES):
            path = repo / f"src/part{number % 7}/f{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{branch} {number}\n" * (1 + (branch == "other")))
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", branch)
    git(repo, "checkout", "-q", "main")


def save(path: Path, text: str) -> None:
    """Save as editors do: write a file beside it and rename that over it."""
    beside = path.with_name(f".{path.name}.tmp~")
    beside.write_text(text)
    os.replace(beside, path)


def execute(gateway: GatewayProcess, repo: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HERDR_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, "-m", "herdr", "exec", "--workspace", "repo", "--source", "ci", "--", *command],
        cwd=repo,
        env={**env, "HERDR_GATEWAY_URL": gateway.url, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_real_run(tmp_path: Path) -> None:
    repo, config = tmp_path / "repo", tmp_path / "herdr.yaml"
    make_repository(repo)
    config.write_text(json.dumps({**CONFIG, "workspaces": [{"path": str(repo)}]}))
    with ExitStack() as stack:
        gateway = stack.enter_context(running_gateway(tmp_path / "data", "--config", str(config)))
        indexer, debugger, idler = (
            stack.enter_context(Stream(gateway, f"as={name}")).start()
            for name in ("indexer", "debugger", "idler")
        )
        wait_until(
            lambda: health(gateway)["workspaces"]["repo"]["status"] == "watching",
            "the first look at the files",
        )

        save(repo / "notes.md", "saved once\n")
        (repo / "noise.log").write_text("ignored\n")
        saved = indexer.next().json()
        assert (saved["type"], saved["subject"], saved["workspace"]) == ("file.changed", "notes.md", "repo")
        assert saved["data"]["change"] == "modified" and saved["data"]["size"] == len("saved once\n")

        git(repo, "checkout", "-q", "other")
        switched = indexer.next().json()
        assert (switched["type"], switched["data"]["count"]) == ("files.changed", FILES)
        assert len(set(switched["data"]["paths"])) == FILES and not switched["data"]["truncated"]

        done = execute(gateway, repo, sys.executable, "-m", "pytest", "-q", "test_it.py")
        assert done.returncode == 1 and "test_wrong" in done.stdout
        failed = debugger.next().json()
        assert (failed["type"], failed["source"], failed["priority"]) == ("test.failed", "ci", "P0")
        assert failed["data"]["failed"] == ["test_it.py::test_wrong"]
        assert failed["data"]["summary"] == {"failed": 1, "passed": 1}
        done = execute(gateway, repo, sys.executable, "-m", "pytest", "-q", "test_it.py::test_right")
        assert done.returncode == 0  # a tool.result, which no rule sends to anybody

        end = accept(gateway, type="the.end", source="end")
        for target in (indexer, debugger, idler):
            assert target.next().json()["seq"] == end, "nothing but what the rules say"
        types = [event["type"] for event in all_events(gateway, "workspace=repo")]
        assert [type_ for type_ in types if not type_.startswith("context.")] == [
            "file.changed",
            "git.head",
            "files.changed",
            "test.failed",
            "tool.result",
        ]
        assert gateway.stop() == 0
        assert not [line for line in gateway.log if "Traceback" in line]
