"""What languages share whose imports name files."""

from collections.abc import Sequence

from herdr.context.graph.language import Files


def normal(path: str) -> str | None:
    """Resolve `.` and `..` in a relative path; None for what lies outside of the workspace."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def ending(tail: str, files: Files) -> list[str]:
    """Return the files whose path is this or ends in it, whole folders only."""
    whole = normal(tail)
    if not whole:
        return []
    return [p for p in files.named(whole.rpartition("/")[2]) if p == whole or p.endswith(f"/{whole}")]


def nearest(paths: Sequence[str], folder: str) -> Sequence[str]:
    """Return the one path that shares the most folders with this one; none if that is not one alone."""
    if len(paths) < 2:
        return tuple(paths)
    here = folder.split("/")
    ranked = sorted((-_shared(path.split("/")[:-1], here), path) for path in paths)
    return (ranked[0][1],) if ranked[0][0] < ranked[1][0] else ()


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
