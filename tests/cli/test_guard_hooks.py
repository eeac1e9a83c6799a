"""Putting the guard's hooks in and taking them out again, beside whatever hooks are there."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_repo import PROGRAMS, Repo, make_repo
from lock_answers import HELD, Answer, Call, LockAnswers, lock_answers

from herdr.cli import guard_hooks

NAMES = ("pre-commit", "pre-merge-commit")
SAYS = '#!/bin/sh\necho "before: $# $*"\n'


@pytest.fixture
def answers() -> Iterator[LockAnswers]:
    with lock_answers() as running:
        yield running


@pytest.fixture
def repo(tmp_path: Path, answers: LockAnswers) -> Repo:
    made = make_repo(tmp_path / "a repo", answers.url, HERDR_OWNER="ann")
    made.stage("a.py")
    assert made.commit().returncode == 0
    return made


def hold_everything(answers: LockAnswers) -> None:
    def script(call: Call) -> Answer | None:
        if call.path != "/v1/locks/check":
            return answers.grant(call)
        return 200, {"conflicts": [{**HELD, "asked": path, "path": path} for path in call.body["paths"]]}

    answers.script = script


def is_guarded(repo: Repo, answers: LockAnswers) -> bool:
    """Tell whether a commit of something that is held is refused, by the guard."""
    hold_everything(answers)
    repo.stage("a.py")
    done = repo.commit()
    answers.script = answers.grant
    return done.returncode == 1 and "guard: refused" in done.stderr


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return what is in a folder: mode and content, or where a link leads to."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def hooks(repo: Repo) -> Path:
    return repo.top / repo.git("rev-parse", "--git-path", "hooks")


def test_it_is_put_in_and_taken_out_and_nothing_is_left(repo: Repo, answers: LockAnswers) -> None:
    before = tree(repo.top / ".git/hooks")
    done = repo.herdr("guard", "install")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"{repo.top}/.git/hooks/{name}\n" for name in NAMES)
    assert is_guarded(repo, answers)
    done = repo.herdr("guard", "uninstall")
    assert done.returncode == 0 and done.stdout.count(": removed\n") == 2
    assert tree(repo.top / ".git/hooks") == before
    assert not is_guarded(repo, answers)
    again = repo.herdr("guard", "uninstall")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == "herdr: the guard is not installed here\n"


def test_an_existing_hook_runs_first_and_comes_back_as_it_was(repo: Repo, answers: LockAnswers) -> None:
    repo.hook("pre-commit", SAYS, 0o750)
    before = tree(hooks(repo))
    for _ in range(3):  # a second and third time change nothing
        assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    done = repo.commit()
    assert done.returncode == 0 and done.stderr == "before: 0 \n"  # git sends what hooks print there
    assert is_guarded(repo, answers)
    assert repo.herdr("guard", "uninstall").returncode == 0
    assert tree(hooks(repo)) == before


def test_an_existing_hook_that_fails_fails_the_commit(repo: Repo, answers: LockAnswers) -> None:
    repo.hook("pre-commit", "#!/bin/sh\necho no >&2\nexit 3\n")
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    done = repo.commit()
    assert (done.returncode, done.stderr) == (1, "no\n")
    assert not answers.calls("POST", "/v1/locks/check")


def test_what_an_existing_hook_adds_is_checked_too(repo: Repo, answers: LockAnswers) -> None:
    repo.hook("pre-commit", "#!/bin/sh\necho x > made.py && git add made.py\n")
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    assert repo.commit().returncode == 0
    assert answers.calls("POST", "/v1/locks/check")[0]["paths"] == ["a.py", "made.py"]


KINDS = {
    "sh": "#!/bin/sh\n",
    "sh with options": "#!/bin/sh -e\n",
    "bash by env": "#!/usr/bin/env bash\n",
    "no first line": "",
}


@pytest.mark.parametrize("first", list(KINDS.values()), ids=list(KINDS))
def test_a_shell_hook_sees_its_own_name_and_folder(repo: Repo, first: str) -> None:
    """As dispatchers need, that one script serves several hooks with, and husky."""
    text = f'{first}. "$(dirname "$0")/part"\necho "$(basename "$0") $part $#"\n'
    path = repo.hook("pre-commit", text)
    (path.parent / "part").write_text("part=found\n")
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    done = repo.commit()
    name = "pre-commit" if first else "pre-commit.before-herdr"
    assert (done.returncode, done.stderr) == (0, f"{name} found 0\n")


def test_a_bash_hook_stays_a_bash_hook(repo: Repo) -> None:
    repo.hook(
        "pre-commit", '#!/bin/bash\nwords=(a b)\n[[ ${#words[@]} = 2 ]] && echo "$BASH_VERSION" | head -c 1\n'
    )
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    done = repo.commit()
    assert done.returncode == 0 and done.stderr.isdigit()


def test_a_hook_of_another_language_runs_too(repo: Repo) -> None:
    repo.hook("pre-commit", f"#!{sys.executable}\nimport sys\nprint('python', len(sys.argv))\nsys.exit(5)\n")
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    done = repo.commit()
    assert (done.returncode, done.stderr) == (1, "python 1\n")


def test_a_hook_that_git_does_not_run_stays_one(repo: Repo) -> None:
    repo.hook("pre-commit", "#!/bin/sh\nexit 3\n", 0o644)
    before = tree(hooks(repo))
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    assert repo.commit().returncode == 0
    assert repo.herdr("guard", "uninstall").returncode == 0
    assert tree(hooks(repo)) == before


def test_a_hook_that_is_a_link(repo: Repo) -> None:
    repo.write("scripts/check", SAYS).chmod(0o755)
    (hooks(repo)).mkdir(exist_ok=True)
    (hooks(repo) / "pre-commit").symlink_to("../../scripts/check")
    before = tree(hooks(repo))
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    assert repo.commit().stderr == "before: 0 \n"
    assert repo.herdr("guard", "uninstall").returncode == 0
    assert tree(hooks(repo)) == before
    assert (repo.top / "scripts/check").read_text() == SAYS


def test_a_merge_runs_the_merge_hook_that_was_there(repo: Repo, answers: LockAnswers) -> None:
    repo.hook("pre-merge-commit", "#!/bin/sh\necho merge hook\n")
    assert repo.herdr("guard", "install").returncode == 0
    repo.git("switch", "-q", "-c", "other")
    repo.stage("b.py")
    assert repo.commit().returncode == 0
    repo.git("switch", "-q", "main")
    done = repo.run("git", "merge", "--no-ff", "-m", "m", "other")
    assert done.returncode == 0 and "merge hook" in done.stderr
    assert answers.calls("POST", "/v1/locks/check")[-2]["paths"] == ["b.py"]


@pytest.mark.parametrize("where", [".githooks", "sub folder/hooks", "/absolute"])
def test_a_folder_of_ones_own_for_hooks(repo: Repo, answers: LockAnswers, where: str) -> None:
    where = where if not where.startswith("/") else str(repo.top.parent / "elsewhere")
    repo.git("config", "core.hooksPath", where)
    repo.hook("pre-commit", SAYS)
    (repo.top / "deep/down").mkdir(parents=True)
    below = Repo(repo.top / "deep/down", answers.url)
    done = below.herdr("guard", "install", "--owner", "ann")
    assert done.returncode == 0 and "core.hooksPath is set" in done.stderr
    assert not (repo.top / ".git/hooks/pre-commit").exists()
    assert (repo.top / where / "pre-commit.before-herdr").read_text() == SAYS
    assert is_guarded(repo, answers)


def test_husky(repo: Repo, answers: LockAnswers) -> None:
    """Husky 9: its hooks find their common part, and the project's own script, by `$0`."""
    shared = (
        's=$(dirname "$(dirname "$0")")/$(basename "$0")\n[ ! -f "$s" ] && exit 0\nsh -e "$s" "$@"\nexit $?\n'
    )
    repo.git("config", "core.hooksPath", ".husky/_")
    repo.hook("pre-commit", '#!/usr/bin/env sh\n. "${0%/*}/h"')
    repo.write(".husky/_/h", shared)
    repo.write(".husky/pre-commit", "echo the project\n")
    done = repo.herdr("guard", "install")
    assert done.returncode == 0 and "put the line `herdr guard check` into .husky/pre-commit" in done.stderr
    repo.stage("a.py")
    assert repo.commit().stderr == "the project\n"
    assert is_guarded(repo, answers)
    # Installed again, husky writes its own hook over ours; so do we, as nothing is lost
    repo.hook("pre-commit", '#!/usr/bin/env sh\n. "${0%/*}/h"')
    assert repo.herdr("guard", "status").returncode == 1
    assert repo.herdr("guard", "install").returncode == 0
    assert is_guarded(repo, answers)
    # What it tells to do instead
    assert repo.herdr("guard", "uninstall").returncode == 0
    repo.write(".husky/pre-commit", "herdr guard check\n")
    assert is_guarded(repo, answers)


FRAMEWORK = """\
#!/usr/bin/env bash
HERE="$(cd "$(dirname "$0")" && pwd)"
if [ -x "$HERE/pre-commit.legacy" ]; then "$HERE/pre-commit.legacy" "$@" || exit 1; fi
echo framework
"""


def test_the_pre_commit_framework_there_first(repo: Repo, answers: LockAnswers) -> None:
    repo.hook("pre-commit", FRAMEWORK)
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("a.py")
    assert repo.commit().stderr == "framework\n"
    assert is_guarded(repo, answers)


def test_the_pre_commit_framework_put_in_afterwards(repo: Repo, answers: LockAnswers) -> None:
    """It moves the hook that it finds to `pre-commit.legacy`, and runs it."""
    repo.hook("pre-commit", SAYS)
    assert repo.herdr("guard", "install").returncode == 0
    hook = hooks(repo) / "pre-commit"
    hook.rename(hooks(repo) / "pre-commit.legacy")
    repo.hook("pre-commit", FRAMEWORK)
    assert is_guarded(repo, answers)
    status = repo.herdr("guard", "status")
    assert "pre-commit       installed as pre-commit.legacy, after pre-commit.before-herdr" in status.stdout
    assert repo.herdr("guard", "install").returncode == 0
    assert hook.read_text() == FRAMEWORK
    assert repo.herdr("guard", "uninstall").returncode == 0
    assert hook.read_text() == FRAMEWORK
    assert (hooks(repo) / "pre-commit.legacy").read_text() == SAYS
    assert sorted(p.name for p in hooks(repo).iterdir() if not p.name.endswith(".sample")) == [
        "pre-commit",
        "pre-commit.legacy",
    ]


def test_two_hooks_that_would_both_have_to_be_kept(repo: Repo) -> None:
    repo.hook("pre-commit", SAYS)
    assert repo.herdr("guard", "install").returncode == 0
    repo.hook("pre-commit", "#!/bin/sh\necho somebody else\n")
    before = tree(hooks(repo))
    done = repo.herdr("guard", "install")
    assert done.returncode == 1
    assert "was replaced after the guard was installed" in done.stderr
    assert tree(hooks(repo)) == before


def test_herdr_is_found_where_it_was_when_path_does_not_lead_there(repo: Repo, answers: LockAnswers) -> None:
    assert repo.herdr("guard", "install").returncode == 0
    repo.environ["PATH"] = without_herdr(repo)
    assert repo.run("sh", "-c", "command -v herdr").returncode != 0
    assert is_guarded(repo, answers)


def without_herdr(repo: Repo) -> str:
    """Return a PATH with git and a shell on it, and nothing else."""
    folder = repo.top.parent / "bin"
    folder.mkdir()
    for name in ("git", "sh"):
        found = repo.run("sh", "-c", f"command -v {name}").stdout.strip()
        (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.parametrize("strict", [False, True])
def test_no_herdr_at_all(repo: Repo, strict: bool) -> None:
    assert repo.herdr("guard", "install", *(["--strict"] if strict else [])).returncode == 0
    for name in NAMES:
        path = hooks(repo) / name
        path.write_text(path.read_text().replace(str(PROGRAMS), "/nowhere"))
    repo.environ["PATH"] = without_herdr(repo)
    repo.stage("a.py")
    done = repo.commit()
    assert (done.returncode, repo.commits()) == ((1, 1) if strict else (0, 2))
    assert "there is no herdr on PATH" in done.stderr and "guard: NOT CHECKED against locks" in done.stderr


@pytest.mark.parametrize("strict", [False, True])
def test_another_program_of_this_name_does_not_decide(repo: Repo, strict: bool) -> None:
    assert repo.herdr("guard", "install", *(["--strict"] if strict else [])).returncode == 0
    folder = repo.top.parent / "other"
    folder.mkdir()
    (folder / "herdr").write_text("#!/bin/sh\necho unknown command >&2\nexit 1\n")
    (folder / "herdr").chmod(0o755)
    repo.environ["PATH"] = f"{folder}{os.pathsep}{repo.environ['PATH']}"
    repo.stage("a.py")
    done = repo.commit()
    assert (done.returncode, "guard: NOT CHECKED" in done.stderr) == (1 if strict else 0, True)


def test_status(repo: Repo, answers: LockAnswers) -> None:
    none = repo.herdr("guard", "status", HERDR_OWNER="")
    assert none.returncode == 1 and none.stdout.count("not installed") == 2
    assert "owner      not said: set HERDR_OWNER" in none.stdout
    answers.workspaces = [{"name": "shop", "path": str(repo.top)}]
    assert repo.herdr("guard", "install", "--strict", "--owner", "bob").returncode == 0
    there = repo.herdr("guard", "status", HERDR_OWNER="")
    assert there.returncode == 0
    assert there.stdout.splitlines() == [
        f"hooks      {repo.top}/.git/hooks",
        "pre-commit       installed",
        "pre-merge-commit installed",
        "strict     yes: refuses when it cannot check",
        "owner      bob",
        f"checks     workspace shop ({repo.top})",
    ]
    assert repo.herdr("guard", "uninstall").returncode == 0
    assert "strict     no" in repo.herdr("guard", "status").stdout
    away = repo.herdr("guard", "status", HERDR_GATEWAY_URL="http://127.0.0.1:1")
    assert away.returncode == 1 and "checks     nothing now: nothing listens at" in away.stdout


def test_settings_are_the_working_trees_own_where_git_tells_them_apart(
    repo: Repo, answers: LockAnswers
) -> None:
    repo.git("config", "extensions.worktreeConfig", "true")
    tree = repo.top.parent / "tree"
    repo.git("worktree", "add", "-q", str(tree))
    there = Repo(tree, answers.url)
    assert there.herdr("guard", "install", "--owner", "bob", "--strict").returncode == 0
    assert there.git("config", "herdr.owner") == "bob"
    assert repo.run("git", "config", "herdr.owner").returncode == 1
    assert there.herdr("guard", "uninstall").returncode == 0
    assert there.run("git", "config", "herdr.guardStrict").returncode == 1


@pytest.mark.parametrize("part", ["install", "uninstall", "status", "check"])
def test_where_there_is_no_repository(tmp_path: Path, answers: LockAnswers, part: str) -> None:
    outside = Repo(tmp_path, answers.url)
    done = outside.herdr("guard", part, GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert done.returncode == (0 if part == "check" else 1)
    assert done.stderr.startswith("herdr: ") and "Traceback" not in done.stderr


def test_hooks_that_are_switched_off(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", "/dev/null")
    done = repo.herdr("guard", "install")
    assert done.returncode == 1 and "hooks are switched off here" in done.stderr


def test_a_hook_is_plain_posix_shell(tmp_path: Path) -> None:
    text = guard_hooks.script("pre-commit", tmp_path / "none")
    assert text.isascii() and "[[" not in text and len(text.splitlines()) < 30
