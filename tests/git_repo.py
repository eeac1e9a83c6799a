"""A real git repository that the machine's own settings do not reach."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(sys.executable).parent
"""Where `herdr` is."""


class Repo:
    """Runs git, and `herdr` as from a shell in the repository."""

    def __init__(self, top: Path, url: str, **environ: str) -> None:
        self.top = top
        self.url = url
        settings = top.parent / "empty.gitconfig"
        settings.touch()
        clean = {n: v for n, v in os.environ.items() if not n.startswith(("HERDR_", "GIT_"))}
        who = {f"GIT_{role}_{what}": "t@t" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.environ = {
            **clean,
            **who,
            "GIT_CONFIG_GLOBAL": str(settings),
            "GIT_CONFIG_NOSYSTEM": "1",
            "HERDR_GATEWAY_URL": url,
            "PATH": f"{PROGRAMS}{os.pathsep}{clean['PATH']}",
            "TZ": "UTC",
            **environ,
        }

    def run(self, *command: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=self.top,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=60,
        )

    def git(self, *args: str, **environ: str) -> str:
        """Run git, which must succeed."""
        done = self.run("git", *args, **environ)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout.strip()

    def herdr(self, *args: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return self.run("herdr", *args, **environ)

    def write(self, name: str, text: str = "text\n") -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def stage(self, *names: str) -> None:
        """Write files and add them to the index."""
        for name in names:
            self.write(name, f"{name} {self.commits()}\n")
        self.git("add", "--", *names)

    def commit(self, *options: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return self.run("git", "commit", "-q", "-m", "change", *options, **environ)

    def commits(self) -> int:
        done = self.run("git", "rev-list", "--count", "HEAD")
        return int(done.stdout) if done.returncode == 0 else 0

    def hook(self, name: str, text: str, mode: int = 0o755) -> Path:
        """Put a hook where git looks for it."""
        path = self.top / self.git("rev-parse", "--git-path", f"hooks/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


def make_repo(top: Path, url: str, **environ: str) -> Repo:
    """Make an empty repository, on the branch `main`."""
    top.mkdir(parents=True)
    repo = Repo(top, url, **environ)
    repo.git("init", "-q", "-b", "main")
    return repo
