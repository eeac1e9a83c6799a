"""aider's repository map of one tree, timed; run by a Python that has aider: aider_map.py ROOT LIST CACHE NAME.

LIST has the paths of the files, one a line. Prints one line of JSON. Nothing is asked of any server: tokens are
counted as a quarter of the characters, which costs nothing.
"""

import contextlib
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx  # type: ignore[import-not-found]  # noqa: F401 - before the map, whose time its import would be
import scipy.sparse  # type: ignore[import-not-found]  # noqa: F401
from aider.repomap import RepoMap  # type: ignore[import-not-found]

TOKENS = 1024


class Files:
    """What the map needs of aider's terminal."""

    def read_text(self, name: str) -> str | None:
        """Return a file's text; None when it is none."""
        with contextlib.suppress(UnicodeDecodeError):
            return Path(name).read_text()
        return None

    def tool_output(self, *said: object) -> None:
        """Say nothing."""

    def tool_warning(self, *said: object) -> None:
        """Say nothing."""

    tool_error = tool_warning


class Model:
    """What the map needs of a model."""

    def token_count(self, text: str) -> int:
        """Guess."""
        return len(text) // 4


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long it takes, in seconds, and what comes of it."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def peak_mib() -> float:
    """Return this process's peak of resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """See the module."""
    root, listed, cache, name = sys.argv[1:]
    files = [f"{root}/{path}" for path in Path(listed).read_text().split("\n") if path]
    RepoMap.TAGS_CACHE_DIR = cache  # not in the tree
    tags = RepoMap(TOKENS, root, Model(), Files())

    def all_tags() -> int:
        return sum(tag.kind == "def" for file in files for tag in tags.get_tags(file, file[len(root) + 1 :]))

    cold_s, definitions = timed(all_tags)
    done_at = time.monotonic()
    tags_mib = peak_mib()
    warm_s, _ = timed(all_tags)
    first_s, text = timed(lambda: tags.get_ranked_tags_map(set(), files, TOKENS))
    again_s, _ = timed(lambda: tags.get_ranked_tags_map(set(), files, TOKENS))
    other_s, _ = timed(lambda: tags.get_ranked_tags_map(set(), files, TOKENS, set(), {name}))
    found = {
        "tags_s": cold_s,
        "tags_done_at": done_at,
        "tags_again_s": warm_s,
        "definitions": definitions,
        "tags_mib": tags_mib,
        "map_s": first_s,
        "map_again_s": again_s,
        "map_other_s": other_s,
        "map_mib": peak_mib(),
        "map_characters": len(text or ""),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
