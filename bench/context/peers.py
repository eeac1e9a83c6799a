"""What others take for the same files: aider's repository map, and universal-ctags."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.context.fetched import aider_python

PEER_S = 1800.0
NO_CTAGS = "universal-ctags is not installed (Debian: apt-get install universal-ctags)"
_AIDER = Path(__file__).with_name("aider_map.py")


class Aider(msgspec.Struct):
    """What aider took."""

    tags_s: float
    """For the tags of all files, read for the first time."""
    tags_done_at: float
    """Then, by the monotonic clock."""
    tags_again_s: float
    """For taking them from its cache, which every map does."""
    definitions: int
    tags_mib: float
    map_s: float
    map_again_s: float
    map_other_s: float
    """For a map when another name was mentioned than the last time."""
    map_mib: float
    map_characters: int
    began_at: float = 0.0
    """When the process was started, by the same clock."""

    @property
    def ready_s(self) -> float:
        """From the start of the process until it had all tags."""
        return self.tags_done_at - self.began_at

    @property
    def rank_s(self) -> float:
        """For ranking and rendering alone."""
        return max(self.map_s - self.tags_again_s, 0.0)

    @property
    def rank_other_s(self) -> float:
        """The same, when another name was mentioned."""
        return max(self.map_other_s - self.tags_again_s, 0.0)


def aider(folder: Path, tree: Path, paths: Sequence[str], name: str) -> Aider:
    """Let aider read and rank these files; `name`: what is mentioned for the last map."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="aider-") as place:
        listed = Path(place, "files.txt")
        listed.write_text("\n".join(paths))
        command = [str(aider_python()), str(_AIDER), str(tree), str(listed), str(Path(place, "tags")), name]
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        began = time.monotonic()
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PEER_S, check=False)
    if done.returncode:
        raise RuntimeError(f"aider failed: {done.stderr.strip()[-400:]}")
    found = msgspec.json.decode(done.stdout.splitlines()[-1], type=Aider)
    return msgspec.structs.replace(found, began_at=began)


class Ctags(msgspec.Struct):
    """What universal-ctags took."""

    seconds: float
    tags: int


def has_ctags() -> bool:
    """Tell whether there is a universal-ctags."""
    found = shutil.which("ctags")
    if found is None:
        return False
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=10, check=False)
    return "Universal Ctags" in said.stdout


def ctags(folder: Path, tree: Path, paths: Sequence[str]) -> Ctags:
    """Let ctags write the definitions of these files."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="ctags-") as place:
        listed, written = Path(place, "files.txt"), Path(place, "tags")
        listed.write_text("\n".join(paths))
        command = ["ctags", "--options=NONE", "-L", str(listed), "-f", str(written), "--fields=+neS"]
        began = time.perf_counter()
        subprocess.run(command, cwd=tree, timeout=PEER_S, check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        with written.open("rb") as opened:
            tags = sum(not line.startswith(b"!") for line in opened)
    return Ctags(seconds, tags)
