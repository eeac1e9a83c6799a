"""Source trees to measure on: unpacked anew, as git repositories, since that is what people work in."""

import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

from bench.context.fetched import Sdist, sdist
from herdr.context.graph.languages.registry import language_of

GIT_S = 300.0
_NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
_AUTHOR = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0")


def tree_of(folder: Path, wanted: Sdist) -> Path:
    """Return a source distribution, unpacked and committed below `folder`: once for all measures of one run.

    Who changes files in it puts them back with `restore`.
    """
    place = folder / "trees" / wanted.package
    tree = place / f"{wanted.package}-{wanted.version}"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix="tree-") as beside:
            with tarfile.open(sdist(wanted)) as archive:
                archive.extractall(beside, filter="data")
            _commit(Path(beside, tree.name), wanted.name)
            place.mkdir(parents=True)
            Path(beside, tree.name).rename(tree)
    return tree


def _commit(tree: Path, message: str) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, *_AUTHOR, "commit", "-q", "-m", message)


def restore(tree: Path) -> None:
    """Bring every file back to what was committed."""
    git(tree, "checkout", "-q", "--", ".")
    git(tree, "clean", "-q", "-fd")


def checked_out(tree: Path, place: Path) -> None:
    """Make a fresh checkout at `place`: the same content, every inode and time another one."""
    git(tree.parent, "clone", "-q", "--no-hardlinks", str(tree), str(place))


def sources(tree: Path) -> list[str]:
    """Return the paths of the files in languages that Herdr reads, which is what the peers are given."""
    return [
        path for path in git(tree, "ls-files", "-z").split("\0") if path and language_of(path) is not None
    ]


def git(folder: Path, *arguments: str) -> str:
    """Run git without anybody's settings and return what it says."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=os.environ | _NOBODY,
        capture_output=True,
        text=True,
        timeout=GIT_S,
        check=True,
    )
    return done.stdout
