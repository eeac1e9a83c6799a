"""What a requested path means, read from its letters alone. Pure; the file system has its say afterwards.

One path has one canonical form, however it was written: forward slashes, no `.`, `..` or empty segments,
Unicode in form NFC, and no more stars than needed. A folder ends in `/`, and `src/**` is the folder `src/`.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple, NoReturn

from herdr.errors import FieldError, InvalidInput
from herdr.glob import check_glob, is_glob
from herdr.locks.lock import FOLDER, Name

PATHS_MAX = 256
"""In one request. Who changes more files at once locks their folder; a bound also keeps the answer readable."""
WILDCARDS_MAX = 32
"""Runs of `*` or `?` in all paths of one request; the `**` of a folder is none. One glob is compared with up to
10,000 held names, in 0.2 ms mostly and 10 ms if it begins with `**`; 32 of those are what a request may cost."""
PATHS_BYTES_MAX = 64 * 1024
"""Of one request's paths together: they stand in an event, twice, and in the stored lock. 256 paths of 250 bytes."""
PATH_BYTES_MAX = 4096  # PATH_MAX of Linux
SEGMENT_BYTES_MAX = 255  # NAME_MAX of Linux, and of every file system that people work on
SEGMENTS_MAX = 256  # real trees are below 50 deep; comparing two names costs the product of their depths
GIT_NAMES = ("git:HEAD", "git:index")

_DRIVE = re.compile(r"[A-Za-z]:")
_STARS = re.compile(r"\*{2,}")
_WILD = re.compile(r"[*?]+")
_RUNS = re.compile(r"\*+|\?+")


class Requested(NamedTuple):
    """One requested path, canonical."""

    text: str
    """As it was asked for."""
    segments: tuple[str, ...]
    """Relative to the workspace, and none for the whole of it; of `git:HEAD`, `("HEAD",)`."""
    is_folder: bool
    """Whether everything beneath is meant too."""
    kind: Literal["path", "glob", "git"]

    @property
    def canonical(self) -> str:
        """The path in canonical writing, which `read_path` reads as the same again."""
        if self.kind == "git":
            return f"git:{self.segments[0]}"
        path = "/".join(self.segments) + "/" * self.is_folder if self.segments else ""
        return f"./{path}" if not path or _begins_otherwise(path) else path


def read_path(text: str) -> Requested:
    """Read one requested path. Raises InvalidInput `bad_path` that says what is wrong and what to write."""
    if text.startswith("git:"):
        return _read_git(text)
    _check_letters(text)
    _check_start(text)
    composed = unicodedata.normalize("NFC", text)
    if max(len(text.encode()), len(composed.encode())) > PATH_BYTES_MAX:
        _refuse(text, f"is longer than {PATH_BYTES_MAX} bytes, so no file can have it")
    parts = composed.split("/")
    segments = _resolve(text, parts)
    is_folder = parts[-1] in ("", ".", "..")
    if segments[-1:] == ["**"]:
        segments.pop()
        is_folder = True
    _check_lengths(text, segments)
    globbed = any(map(is_glob, segments))
    if globbed:
        _check_glob(text, "/".join(segments))
    return Requested(text, tuple(segments), is_folder, "glob" if globbed else "path")


def read_paths(texts: Sequence[str]) -> tuple[Requested, ...]:
    """Read the paths of one request, each once, in the order given.

    Raises InvalidInput: `bad_path` for the first wrong one, with its place in `errors`; `invalid_request` when
    they are none, more than PATHS_MAX or have more than WILDCARDS_MAX wildcards together.
    """
    check_count(texts)
    read: dict[str, Requested] = {}
    for place, text in enumerate(texts):
        try:
            requested = read_path(text)
        except InvalidInput as error:
            error.errors.append(FieldError("paths", error.detail, place))
            raise
        read.setdefault(requested.canonical, requested)
    if sum(len(path.canonical.encode()) for path in read.values()) > PATHS_BYTES_MAX:
        raise InvalidInput(
            f"the paths have more than {PATHS_BYTES_MAX} bytes together, which stand in every event about the lock. "
            "Ask for their folder"
        )
    wildcards = sum(len(_RUNS.findall(segment)) for path in read.values() for segment in path.segments)
    if wildcards > WILDCARDS_MAX:
        raise InvalidInput(
            f"the paths have {wildcards} wildcards together; at most {WILDCARDS_MAX} can be compared with what "
            "others hold in good time. Ask for a folder, or for fewer globs"
        )
    return tuple(read.values())


def check_count(paths: Sequence[object]) -> None:
    """Raise InvalidInput `invalid_request` unless there are 1 to PATHS_MAX paths."""
    if not paths:
        raise InvalidInput("no paths; name at least one, such as src/a.py")
    if len(paths) > PATHS_MAX:
        raise InvalidInput(
            f"too many paths: {len(paths)}, of at most {PATHS_MAX} in one request; ask for their folder instead"
        )


def names_of(requested: Requested, space: str, *, folded: bool = False) -> Name:
    """Return the name that the path has in a space, by its letters alone.

    `folded` is for a volume that takes `A.py` and `a.py` for one file: the letters are compared without case.
    """
    segments = requested.segments
    if folded and requested.kind != "git":
        segments = tuple(map(fold_glob, segments))
    cut = len(segments)
    if requested.kind == "glob":
        cut = next(place for place, segment in enumerate(segments) if is_glob(segment))
    rest = segments[cut:] + FOLDER * requested.is_folder
    return Name(space, segments[:cut], rest, requested.canonical)


def fold(segment: str) -> str:
    """Return a literal segment without the case of its letters."""
    return unicodedata.normalize("NFC", segment.casefold())


def fold_glob(segment: str) -> str:
    """Return a segment with wildcards without case; `?` as `*`, for one letter may become several (`ß` is `ss`)."""
    return segment if segment == "**" else _WILD.sub("*", fold(segment))


def _read_git(text: str) -> Requested:
    if text not in GIT_NAMES:
        _refuse(text, f"is no part of git that can be locked; there are {' and '.join(GIT_NAMES)}")
    return Requested(text, (text.removeprefix("git:"),), False, "git")


def _check_letters(text: str) -> None:
    if not text:
        _refuse(text, "is empty; for the whole workspace write ./")
    if len(text) > PATH_BYTES_MAX:  # not even looked at
        _refuse(text, f"is longer than {PATH_BYTES_MAX} bytes, so no file can have it")
    for char in text:
        if "\ud800" <= char <= "\udfff":
            _refuse(text, "holds half of a surrogate pair, which is not text; send it as UTF-8")
        if unicodedata.category(char) == "Cc":
            _refuse(text, f"holds the control character U+{ord(char):04X}; write the path without it")
    if "\\" in text:
        _refuse(text, "holds a backslash; write / between folders, on Windows too")


def _check_start(text: str) -> None:
    if text.startswith("/"):
        _refuse(text, "is absolute; write it relative to the folder of the workspace")
    if text == "~" or text.startswith("~/"):
        _refuse(text, "begins at a home folder; write it relative to the folder of the workspace")
    if _DRIVE.match(text):
        _refuse(
            text,
            "begins with a drive; write it relative to the folder of the workspace "
            f"(a file that has this name is ./{text:.80})",
        )


def _begins_otherwise(path: str) -> bool:
    """Tell whether a canonical path would be read as something else without `./` before it."""
    return path.startswith(("git:", "~/")) or path == "~" or _DRIVE.match(path) is not None


def _resolve(text: str, parts: list[str]) -> list[str]:
    segments: list[str] = []
    for part in parts:
        if part in ("", "."):
            continue
        if part != "..":
            segment = part if part == "**" else _STARS.sub("*", part)
            if segment != "**" or segments[-1:] != ["**"]:
                segments.append(segment)
        elif not segments:
            _refuse(text, "leads out of the workspace; only what lies in it can be locked")
        elif is_glob(segments.pop()):
            _refuse(text, "has .. right after a wildcard, which may mean any folder; write the folder out")
    return segments


def _check_lengths(text: str, segments: list[str]) -> None:
    if len(segments) > SEGMENTS_MAX:
        _refuse(text, f"is more than {SEGMENTS_MAX} folders deep; lock a folder further up")
    if any(len(segment.encode()) > SEGMENT_BYTES_MAX for segment in segments):
        _refuse(text, f"has a segment of more than {SEGMENT_BYTES_MAX} bytes, so no file can have it")


def _check_glob(text: str, glob: str) -> None:
    try:
        check_glob(glob)
    except InvalidInput as error:
        _refuse(text, f"cannot be compared: {error.detail}. Lock a folder instead, or write several paths")


def _refuse(text: str, why: str) -> NoReturn:
    shown = text if len(text) <= 80 else f"{text[:60]}…"
    raise InvalidInput(
        f"the path {ascii(shown) if not shown.isprintable() else repr(shown)} {why}", "bad_path"
    )
