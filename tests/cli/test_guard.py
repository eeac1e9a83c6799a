"""The guard on real repositories: what it lets pass, what it refuses, and what it says."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from git_repo import Repo, make_repo
from lock_answers import HELD, Answer, Call, LockAnswers, lock_answers

from herdr.cli.guard_check import PATHS_MAX

NOWHERE = "http://127.0.0.1:1"


class Holders:
    """What others hold, by name, as the gateway would find it."""

    def __init__(self, answers: LockAnswers) -> None:
        self._answers = answers
        self._held: dict[str, dict[str, Any]] = {}
        answers.script = self

    def hold(self, path: str, **fields: Any) -> None:
        self._held[path] = {**HELD, "path": path, **fields}

    def drop(self) -> None:
        self._held.clear()

    def __call__(self, call: Call) -> Answer | None:
        if call.path != "/v1/locks/check":
            return self._answers.grant(call)
        assert 1 <= len(call.body["paths"]) <= PATHS_MAX
        for path in call.body["paths"]:
            if "\\" in path or any(ord(c) < 32 for c in path):
                return 400, {"code": "bad_path", "detail": f"{path!r} holds what no path may"}
        held = [(p, self._held[p]) for p in call.body["paths"] if p in self._held]
        found = [{**c, "asked": p} for p, c in held if c["owner"] != call.body.get("owner")]
        return 200, {"conflicts": found}

    def asked(self) -> list[str]:
        """Return all paths that were asked for as files."""
        bodies = self._answers.calls("POST", "/v1/locks/check")
        return [path for body in bodies if body["mode"] == "write" for path in body["paths"]]


@pytest.fixture
def answers() -> Iterator[LockAnswers]:
    with lock_answers() as running:
        yield running


@pytest.fixture
def others(answers: LockAnswers) -> Holders:
    return Holders(answers)


@pytest.fixture
def repo(tmp_path: Path, answers: LockAnswers) -> Repo:
    """A repository with the guard and one commit of `a.py` and `b.py`."""
    made = make_repo(tmp_path / "repo", answers.url, HERDR_OWNER="ann")
    made.stage("a.py", "b.py")
    assert made.commit().returncode == 0
    assert made.herdr("guard", "install").returncode == 0
    return made


def test_a_commit_of_what_nobody_holds_passes_silently(repo: Repo, others: Holders) -> None:
    others.hold("b.py")
    repo.stage("a.py")
    done = repo.commit()
    assert (done.returncode, done.stderr, repo.commits()) == (0, "", 2)
    assert others.asked() == ["a.py"]


def test_a_refusal_says_who_why_until_when_and_what_to_do(repo: Repo, others: Holders) -> None:
    others.hold("a.py")
    repo.stage("a.py", "b.py")
    done = repo.commit()
    assert (done.returncode, repo.commits()) == (1, 1)
    first, conflict, advice, you = done.stderr.splitlines()
    assert first == "herdr: guard: refused, because others have locked what this touches:"
    assert conflict.startswith("  a.py: cursor holds it until 12:01:00 (") and conflict.endswith(
        ": a new cart"
    )
    assert "ask cursor to let go" in advice and "--no-verify" in advice
    assert you == "You are ann."
    assert repo.commit("--no-verify").returncode == 0


def test_what_one_holds_oneself_is_in_nobodys_way(repo: Repo, others: Holders) -> None:
    others.hold("a.py", owner="ann")
    repo.stage("a.py")
    assert repo.commit().returncode == 0
    repo.stage("a.py")
    done = repo.commit(HERDR_OWNER="")
    assert done.returncode == 1
    assert "ann holds it" in done.stderr and "Nobody has said who you are" in done.stderr
    repo.git("config", "herdr.owner", "ann")
    assert repo.commit(HERDR_OWNER="").returncode == 0


def test_who_only_waits_holds_nothing(repo: Repo, others: Holders) -> None:
    others.hold("a.py", state="waiting")
    repo.stage("a.py")
    assert repo.commit().returncode == 0


def test_a_lease_that_has_just_run_out_still_counts(repo: Repo, others: Holders) -> None:
    others.hold("a.py", state="expired")
    repo.stage("a.py")
    done = repo.commit()
    assert done.returncode == 1 and "free in a few seconds" in done.stderr


@pytest.mark.parametrize("name", ["git:HEAD", "git:index"])
def test_the_branch_and_the_index_of_this_working_tree_count(repo: Repo, others: Holders, name: str) -> None:
    others.hold(name)
    repo.stage("a.py")
    done = repo.commit()
    assert done.returncode == 1 and f"  {name}: cursor holds it" in done.stderr


def test_git_names_are_asked_for_as_an_intent_once(repo: Repo, answers: LockAnswers, others: Holders) -> None:
    repo.stage("a.py", "b.py")
    assert repo.commit().returncode == 0
    first, second = answers.calls("POST", "/v1/locks/check")
    assert first == {"workspace": "default", "paths": ["a.py", "b.py"], "mode": "write", "owner": "ann"}
    assert second == {**first, "paths": ["git:HEAD", "git:index"], "mode": "intent"}


def test_the_first_commit_of_all(tmp_path: Path, answers: LockAnswers, others: Holders) -> None:
    repo = make_repo(tmp_path / "new", answers.url)
    assert repo.herdr("guard", "install").returncode == 0
    others.hold("sub/a.py")
    repo.stage("sub/a.py")
    assert repo.commit().returncode == 1
    others.drop()
    assert (repo.commit().returncode, repo.commits()) == (0, 1)


@pytest.mark.parametrize("held", ["a.py", "moved/a.py"])
def test_both_ends_of_a_rename_count(repo: Repo, others: Holders, held: str) -> None:
    (repo.top / "moved").mkdir()
    repo.git("mv", "a.py", "moved/a.py")
    others.hold(held)
    done = repo.commit()
    assert done.returncode == 1 and f"  {held}: cursor" in done.stderr
    others.drop()
    assert repo.commit().returncode == 0
    assert {"a.py", "moved/a.py"} <= set(others.asked())


def test_a_deletion_counts(repo: Repo, others: Holders) -> None:
    repo.git("rm", "-q", "a.py")
    others.hold("a.py")
    assert repo.commit().returncode == 1


def test_only_what_the_commit_holds_counts(repo: Repo, others: Holders) -> None:
    others.hold("b.py")
    repo.stage("a.py", "b.py")
    assert repo.commit("--only", "a.py").returncode == 0
    assert repo.commit("-a").returncode == 1


def test_an_amended_commit_is_checked_for_what_it_adds(repo: Repo, others: Holders) -> None:
    others.hold("a.py")
    assert repo.commit("--amend").returncode == 0  # another message
    repo.stage("a.py")
    assert repo.commit("--amend").returncode == 1
    assert repo.commits() == 1


def branched(repo: Repo, name: str) -> None:
    """Make a branch that changes a file, and come back."""
    repo.git("switch", "-q", "-c", "other")
    repo.write(name, "theirs\n")
    repo.git("add", name)
    repo.git("commit", "-q", "--no-verify", "-m", "theirs")
    repo.git("switch", "-q", "main")


def test_a_merge_that_git_commits_itself(repo: Repo, others: Holders) -> None:
    branched(repo, "a.py")
    repo.stage("b.py")
    assert repo.commit().returncode == 0
    others.hold("a.py")
    done = repo.run("git", "merge", "--no-ff", "-m", "m", "other")
    assert done.returncode != 0 and "  a.py: cursor holds it" in done.stderr
    others.drop()
    assert repo.commit().returncode == 0
    assert len(repo.git("log", "-1", "--format=%P").split()) == 2


def test_a_fast_forward_makes_no_commit_and_is_not_checked(repo: Repo, others: Holders) -> None:
    branched(repo, "a.py")
    others.hold("a.py")
    assert repo.run("git", "merge", "other").returncode == 0


def test_a_merge_resolved_by_hand(repo: Repo, others: Holders) -> None:
    branched(repo, "a.py")
    repo.stage("a.py")
    assert repo.commit().returncode == 0
    assert repo.run("git", "merge", "other").returncode != 0
    repo.write("a.py", "both\n")
    repo.git("add", "a.py")
    others.hold("a.py")
    done = repo.commit()
    assert done.returncode == 1 and "  a.py: cursor holds it" in done.stderr
    others.drop()
    assert repo.commit().returncode == 0
    assert len(repo.git("log", "-1", "--format=%P").split()) == 2


@pytest.mark.parametrize(
    "name", ["a b.py", 'it\'s "q".py', "grün/ünï.py", "-x.py", "app/[id]/p.tsx", "a*b", "git:HEAD", "c:d"]
)
def test_odd_names(repo: Repo, others: Holders, name: str) -> None:
    sent = f"./{name}" if ":" in name else name
    others.hold(sent)
    repo.stage(name)
    done = repo.commit()
    assert done.returncode == 1 and f"  {sent}: cursor" in done.stderr
    others.drop()
    done = repo.commit()
    assert (done.returncode, done.stderr) == (0, "")


def test_names_that_no_lock_can_have_are_told_and_the_others_checked(repo: Repo, others: Holders) -> None:
    raw = os.fsencode(repo.top) + b"/\xff.py"
    with open(raw, "w") as file:
        file.write("x")
    others.hold("b.py")
    repo.stage("line\nbreak.py", "b.py", "back\\slash.py")
    repo.git("add", "-A")
    done = repo.commit()
    assert done.returncode == 1 and "  b.py: cursor" in done.stderr and "Traceback" not in done.stderr
    others.drop()
    repo.git("config", "herdr.guardStrict", "true")
    done = repo.commit()
    assert done.returncode == 0
    assert r"not checked against locks: '\udcff.py': its name is not UTF-8" in done.stderr
    assert r"line\nbreak.py: " in done.stderr and r"back\\slash.py" in done.stderr
    assert len(done.stderr.splitlines()) == 3


def test_many_paths_are_asked_in_slices(repo: Repo, others: Holders, answers: LockAnswers) -> None:
    names = [f"many/{number}.py" for number in range(600)]
    for name in names:
        repo.write(name)
    repo.git("add", "-A")
    others.hold(names[300])
    done = repo.commit()
    assert done.returncode == 1 and f"  {names[300]}: cursor" in done.stderr
    assert sorted(others.asked()) == sorted(names)
    assert len(answers.calls("POST", "/v1/locks/check")) == 4


def test_many_conflicts_are_counted(repo: Repo, others: Holders) -> None:
    names = [f"many/{number}.py" for number in range(30)]
    for name in names:
        others.hold(name)
    repo.stage(*names)
    done = repo.commit()
    assert done.returncode == 1 and "  … and 10 more" in done.stderr
    assert len(done.stderr.splitlines()) == 24


def test_a_working_tree_of_its_own(repo: Repo, others: Holders, answers: LockAnswers) -> None:
    tree = repo.top.parent / "tree"
    repo.git("worktree", "add", "-q", "-b", "there", str(tree))
    there = Repo(tree, answers.url, HERDR_OWNER="ann")
    answers.workspaces = [{"name": "main", "path": str(repo.top)}, {"name": "tree", "path": str(tree)}]
    others.hold("a.py")
    there.stage("a.py")
    assert there.commit().returncode == 1
    assert {b["workspace"] for b in answers.calls("POST", "/v1/locks/check")} == {"tree"}
    assert there.herdr("guard", "status").stdout.count("installed") == 2


def test_a_submodule_is_a_path_of_its_parent_and_a_repository_itself(
    repo: Repo, others: Holders, answers: LockAnswers
) -> None:
    other = make_repo(repo.top.parent / "library", answers.url)
    other.stage("lib.py")
    assert other.commit().returncode == 0
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.top), "lib")
    repo.git("config", "diff.ignoreSubmodules", "all")
    assert repo.commit().returncode == 0
    answers.workspaces = [{"name": "w", "path": str(repo.top)}]
    inner = Repo(repo.top / "lib", answers.url, HERDR_OWNER="ann")
    assert inner.herdr("guard", "install").returncode == 0
    others.hold("lib/lib.py")
    others.hold("git:HEAD")  # the parent's, which a commit in here does not move
    inner.stage("lib.py")
    done = inner.commit()
    assert done.returncode == 1 and "  lib/lib.py: cursor" in done.stderr and "git:HEAD" not in done.stderr
    others.drop()
    assert inner.commit().returncode == 0
    others.hold("lib")
    repo.git("add", "lib")
    done = repo.commit()
    assert done.returncode == 1 and "  lib: cursor" in done.stderr


def test_each_path_is_asked_for_in_the_workspace_that_holds_it(
    repo: Repo, others: Holders, answers: LockAnswers
) -> None:
    answers.workspaces = [
        {"name": "one", "path": str(repo.top / "one"), "roots": []},
        {"name": "two", "path": "/in/the/container", "roots": [str(repo.top / "two")]},
    ]
    repo.stage("one/a.py", "two/b.py", "c.py")
    done = repo.commit()
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert "guard: 1 path not checked against locks: outside of the watched workspaces" in done.stderr
    asked = [
        (b["workspace"], b["paths"]) for b in answers.calls("POST", "/v1/locks/check") if b["mode"] == "write"
    ]
    assert asked == [("one", ["a.py"]), ("two", ["b.py"])]


@pytest.mark.parametrize("by", ["option", "setting"])
def test_the_workspace_may_be_named(repo: Repo, others: Holders, answers: LockAnswers, by: str) -> None:
    answers.workspaces = [{"name": "shop", "path": "/src/shop"}]
    if by == "setting":
        assert repo.herdr("guard", "install", "--workspace", "shop").returncode == 0
    repo.stage("sub/a.py")
    options = ("--workspace", "shop") if by == "option" else ()
    assert repo.herdr("guard", "check", *options).returncode == 0
    assert {b["workspace"] for b in answers.calls("POST", "/v1/locks/check")} == {"shop"}
    assert others.asked() == ["sub/a.py"]


UNABLE: list[tuple[str, Any, str]] = [
    ("no answer", None, "no answer from"),
    ("an error", (503, {"code": "log_unavailable", "detail": "the disk is full"}), "the disk is full"),
    ("a token is needed", (401, {"code": "unauthorized", "detail": "no token"}), "no token"),
    ("unknown workspace", (404, {"code": "unknown_workspace", "detail": "no workspace w"}), "no workspace w"),
    ("a wrong owner", (400, {"code": "invalid_request", "detail": "owner: too long"}), "owner: too long"),
    ("something else", (200, ["a web page"]), "is not a Herdr gateway"),
    ("something other", (200, {"conflicts": None}), "is not a Herdr gateway"),
]


@pytest.mark.parametrize(("answer", "said"), [row[1:] for row in UNABLE], ids=[row[0] for row in UNABLE])
@pytest.mark.parametrize("strict", [False, True])
def test_a_gateway_that_cannot_tell(
    repo: Repo, answers: LockAnswers, answer: Answer | None, said: str, strict: bool
) -> None:
    answers.script = lambda c: answer if c.path == "/v1/locks/check" else answers.grant(c)
    expect_unable(repo, said, strict)


@pytest.mark.parametrize("strict", [False, True])
def test_without_a_gateway(repo: Repo, strict: bool) -> None:
    repo.environ["HERDR_GATEWAY_URL"] = NOWHERE
    expect_unable(repo, "nothing listens at http://127.0.0.1:1", strict)


def test_a_gateway_that_hangs_delays_a_commit_by_three_seconds(repo: Repo) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes the connection and says nothing
        repo.environ["HERDR_GATEWAY_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        expect_unable(repo, "does not answer within 3 s", strict=False)


def expect_unable(repo: Repo, said: str, strict: bool) -> None:
    if strict:
        assert repo.herdr("guard", "install", "--strict").returncode == 0
    repo.stage("a.py")
    done = repo.commit()
    assert (done.returncode, repo.commits()) == ((1, 1) if strict else (0, 2))
    assert "guard: NOT CHECKED against locks" in done.stderr and said in done.stderr
    assert "Traceback" not in done.stderr
    assert strict or len(done.stderr.splitlines()) == 1
