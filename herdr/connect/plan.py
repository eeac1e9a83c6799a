"""Pure: from what the files hold now to what they will hold, and back."""

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from herdr.connect.edits import Edit, applied, check, removed
from herdr.connect.json_text import Unreadable
from herdr.connect.recipe import File

BOM = b"\xef\xbb\xbf"


class Kept(msgspec.Struct, frozen=True):
    """What is remembered of one file that was changed."""

    path: str
    """Absolute."""
    before: bytes | None
    """As it was; None: it was not there."""
    after: bytes
    """As it was left."""
    edits: tuple[Edit, ...]


class Step(NamedTuple):
    """One file: what it holds, and what it will hold (None: no such file)."""

    path: str
    now: bytes | None
    then: bytes | None
    keep: Kept | None = None
    """What is to be remembered of it."""


def connecting(path: str, file: File, now: bytes | None, kept: Kept | None) -> Step:
    """Return the step that connects; raises Unreadable with what is wrong in the file."""
    before = now if kept is None else undone(kept, now)
    if file.whole is not None:
        then = file.whole.encode()
    else:
        text, bom = _text(path, before)
        try:
            if text.strip():
                check(text, file.is_toml)
            changed = applied(text, file.edits)
            check(changed, file.is_toml)
        except Unreadable as error:
            raise Unreadable(
                f"{path} cannot be changed: {error.detail}. Mend it, or connect without this file's program"
            ) from None
        then = bom + changed.encode()
    return Step(path, now, then, Kept(path, before, then, file.edits))


def disconnecting(kept: Kept, now: bytes | None) -> Step:
    """Return the step that takes back what was remembered."""
    return Step(kept.path, now, undone(kept, now))


def undone(kept: Kept, now: bytes | None) -> bytes | None:
    """Return the file as it would be without us: as it was, with what others have changed in it since."""
    if now == kept.after or now is None:
        return kept.before if now is not None else None
    if not kept.edits:
        return now  # a file that was ours alone and is not any more
    text, bom = _text(kept.path, now)
    original = "" if kept.before is None else _text(kept.path, kept.before)[0]
    try:
        left = removed(text, kept.edits, original)
    except Unreadable as error:
        raise Unreadable(
            f"{kept.path} was changed since and cannot be read: {error.detail}. Mend it and undo again"
        ) from None
    return None if kept.before is None and left.strip() in ("", "{}") else bom + left.encode()


def difference(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of a unified diff."""
    for step in steps:
        if step.now != step.then:
            before, after = _lines(step.now), _lines(step.then)
            old, new = (step.path if data is not None else "/dev/null" for data in (step.now, step.then))
            yield from difflib.unified_diff(before, after, old, new, lineterm="")


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()


def _text(path: str, data: bytes | None) -> tuple[str, bytes]:
    """Return a file's text, and the mark that it begins with, if any."""
    raw = data or b""
    bom = BOM if raw.startswith(BOM) else b""
    try:
        return raw[len(bom) :].decode(), bom
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} cannot be changed: it is not UTF-8 ({error.reason})") from None
