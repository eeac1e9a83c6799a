"""The tutorial of two tools, done as it is printed: every command in order, and every answer compared.

Only what needs a package registry (`apt-get`, `git clone`, `scripts/install`) has been done already: the reader's
`~/herdr` is this checkout's environment.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from gateway import running_gateway
from wire import wait_until

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorial/two-tools-one-repository.md"
DONE_ALREADY = ("apt-get ", "git clone ", "scripts/install")
PATIENCE_S = 60
MADE_UP = re.compile(
    r"[-0-9]{10}T[0-9:.]{12}Z|\b\d\d:\d\d:\d\d\b|[0-9A-Z]{26}|\b(?:\d+ (?:min|s)|less than a second)\b"
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Reader:
    """A home folder, four terminals, and what was printed last."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = ""
        self.folder = home
        self.last = ""
        self.followed = home / "terminal-2"
        self.open: list[subprocess.Popen[str]] = []

    def theirs(self, command: str) -> str:
        """Put the reader's own address and folders into a command, and leave out what is done already."""
        kept = (line for line in command.splitlines(True) if not line.startswith(DONE_ALREADY))
        text = "".join(kept).replace("/tmp/herdr-", f"{self.home}/tmp-")
        return text.replace("http://127.0.0.1:8787", self.url).replace("curl ", "curl -sS ")

    def environ(self) -> dict[str, str]:
        clean = {
            name: text
            for name, text in os.environ.items()
            if not name.lower().endswith("_proxy")
            and not name.startswith(("HERDR_", "GIT_", "CLAUDE_", "XDG_"))
        }
        path = f"{self.home}/.local/bin:{clean['PATH']}"
        return {**clean, "HOME": str(self.home), "PATH": path, "HERDR_GATEWAY_URL": self.url}

    def begin(self, command: str, shown: int) -> subprocess.Popen[str]:
        """Run a command that goes on in a terminal of its own."""
        process = subprocess.Popen(
            ["bash", "-ec", f"exec {command.splitlines()[-1]}"],
            cwd=self.folder,
            env=self.environ(),
            stdin=subprocess.PIPE,
            stdout=shown,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.open.append(process)
        return process

    def run(self, command: str) -> None:
        """Run a command in the folder that its terminal is in, and note what it prints."""
        if command.startswith("exit"):
            self.open[-1].communicate(command, timeout=PATIENCE_S)
        elif "-- bash" in command:
            self.begin(command, subprocess.DEVNULL)
            wait_until(lambda: "lock.granted" in self.followed.read_text(), "the lock")
        elif "herdr tail" in command:
            with self.followed.open("w") as shown:
                self.begin(command, shown.fileno())
        else:
            self.last = self.ended(command)
        if "cd ~/herdr-shop" in command:
            self.folder = self.home / "herdr-shop"

    def ended(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=self.folder,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == (75 if "-- touch" in command else 0), done.stderr
        return done.stdout + done.stderr

    def leave(self) -> None:
        for process in self.open:
            with process:
                process.terminate()


def bare(text: str) -> list[str]:
    """Return lines without what is another one each time: ids, times, the width of columns."""
    return [" ".join(MADE_UP.sub("*", line).split()) for line in text.splitlines()]


def sees(reader: Reader, pattern: re.Pattern[str]) -> bool:
    return pattern.search(reader.followed.read_text()) is not None


def compare(printed: str, reader: Reader) -> None:
    """Look for each printed line in what the last command said, or the terminal that looks on has by now."""
    if "…" in printed:
        for line in printed.splitlines():
            parts = (part.strip() for part in re.split(r"…|\s{2,}", line))
            pattern = re.compile(".*".join(map(re.escape, filter(None, parts))))
            wait_until(partial(sees, reader, pattern), line)
        return
    printed = printed.replace("http://127.0.0.1:8787", reader.url)
    missing = [line for line in bare(printed) if line not in bare(reader.last)]
    assert not missing, reader.last


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    home = tmp_path / "home"
    (home / "herdr/.venv/bin").mkdir(parents=True)
    (home / "herdr/.venv/bin/herdr").symlink_to(Path(sys.executable).parent / "herdr")
    there = Reader(home)
    yield there
    there.leave()


def test_the_tutorial_happens_as_it_is_printed(reader: Reader) -> None:
    """The page's `scripts/serve` is a gateway of the same options on a free port."""
    fences = iter(_FENCE.findall(PAGE.read_text()))
    for language, body in fences:
        if "scripts/serve" in body:
            _, *options = shlex.split(reader.theirs(body).replace("~", str(reader.home)))
            break
        take(language, body, reader)
    where = options.index("--data")
    data = Path(options.pop(where + 1))
    del options[where]
    with running_gateway(data, *options) as gateway:
        reader.url = gateway.url
        reader.last = f"herdr 0.1.0 listens on {gateway.url}"
        for language, body in fences:
            take(language, body, reader)
        reader.leave()
    assert sorted(path.name for path in reader.folder.iterdir()) == [".git", "cart.py"]
    assert "def amount" in (reader.folder / "cart.py").read_text()


def take(language: str, body: str, reader: Reader) -> None:
    """Take one step of the page."""
    if language == "sh":
        reader.run(reader.theirs(body))
    else:
        compare(body, reader)
