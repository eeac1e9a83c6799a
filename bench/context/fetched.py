"""What these measures need from package registries: fetched once by pip, verified, and kept below `bench/cache/`."""

import os
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

CACHE = Path(__file__).parents[1] / "cache"
PIP_S = 1200.0
AIDER = "aider-chat==0.86.2"


class Sdist(NamedTuple):
    """A source distribution on PyPI."""

    name: str
    package: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Its file name."""
        return f"{self.package}-{self.version}.tar.gz"


DJANGO = Sdist(
    "Django 5.2.8", "django", "5.2.8", "23254866a5bb9a2cfa6004e8b809ec6246eba4b58a7589bc2772f1bcc8456c7f"
)
HOME_ASSISTANT = Sdist(
    "Home Assistant 2024.3.3",
    "homeassistant",
    "2024.3.3",
    "f62f2c9efa330ca82f70441f93d29361fa87c506c3065baf02b5d85559cdbe70",
)


def sdist(wanted: Sdist) -> Path:
    """Return the archive: from the folder in HERDR_BENCH_TREES, from the cache, or by pip. Its hash is checked."""
    given = os.environ.get("HERDR_BENCH_TREES")
    folders = [*([Path(given)] if given else []), _cache()]
    found = next((folder / wanted.file for folder in folders if (folder / wanted.file).exists()), None)
    file = found or _download(wanted)
    with file.open("rb") as opened:
        digest = sha256(opened.read()).hexdigest()
    if digest != wanted.sha256:
        raise RuntimeError(f"{file.name} is not the one that was measured: its SHA-256 is {digest}")
    return file


def aider_python() -> Path:
    """Return the Python of an environment of its own that has aider."""
    folder = _cache() / AIDER.replace("==", "-")
    python = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        _pip(python, "install", "-q", AIDER)
        done.touch()
    return python


def _download(wanted: Sdist) -> Path:
    asked = _cache() / "wanted.txt"
    asked.write_text(f"{wanted.package}=={wanted.version} --hash=sha256:{wanted.sha256}\n")
    options = ("--no-deps", "--no-binary", ":all:", "--require-hashes")
    _pip(Path(sys.executable), "download", *options, "-r", str(asked), "-d", str(_cache()))
    return _cache() / wanted.file


def _pip(python: Path, *arguments: str) -> None:
    done = subprocess.run(
        [str(python), "-m", "pip", *arguments], capture_output=True, text=True, timeout=PIP_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"pip {arguments[0]} failed: {done.stderr.strip()[-400:]}")


def _cache() -> Path:
    """Return the folder, which git ignores by a rule of its own."""
    CACHE.mkdir(exist_ok=True)
    rule = CACHE / ".gitignore"
    if not rule.exists():
        rule.write_text("*\n")
    return CACHE
