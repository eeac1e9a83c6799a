"""Pure: from what the files hold now to what they will hold, and back."""

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from herdr.connect.edits import Edit, applied, check, in_effect, removed
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
    """None for a file that is ours alone."""

    @property
    def is_toml(self) -> bool:
        """Whether it is TOML, not JSON."""
        return self.path.endswith(".toml")


class Step(NamedTuple):
    """One file: what it holds, and what it will hold (None: no such file)."""

    path: str
    now: bytes | None
    then: bytes | None
    keep: Kept | None = None
    """What is to be remembered of it."""
    stays: bool = False
    """A file of ours that was changed since: whether it goes is for its user to say."""


def connecting(path: str, file: File, now: bytes | None, kept: Kept | None) -> Step:
    """Return the step that connects; raises Unreadable with what is wrong in the file."""
    if file.whole is not None:
        then = file.whole.encode()
        return Step(path, now, then, Kept(path, _before(kept, now), then, ()))
    text, bom = _text(path, now)
    try:
        if text.strip():
            check(text, file.is_toml)
        if kept is not None and kept.edits == file.edits and text.strip() and in_effect(text, file.edits):
            return Step(path, now, now, kept)
        changed = applied(_without_stale(text, file, kept), file.edits)
        check(changed, file.is_toml)
    except Unreadable as error:
        raise Unreadable(f"{path} cannot be changed: {error.detail}. Mend it and connect again") from None
    then = bom + changed.encode()
    return Step(path, now, then, Kept(path, _before(kept, now), then, file.edits))


def _without_stale(text: str, file: File, kept: Kept | None) -> str:
    """Take out what an earlier connecting has written and this one does not."""
    if kept is None or not text.strip():
        return text
    wanted = {edit.place() for edit in file.edits}
    stale = [edit for edit in kept.edits if edit.place() not in wanted]
    return removed(text, stale, _text(kept.path, kept.before)[0])


def _before(kept: Kept | None, now: bytes | None) -> bytes | None:
    return now if kept is None else undone(kept, now)


def disconnecting(kept: Kept, now: bytes | None) -> Step:
    """Return the step that takes back what was remembered. Raises Unreadable."""
    then = undone(kept, now)
    return Step(kept.path, now, then, stays=not kept.edits and now is not None and now == then != kept.before)


def undone(kept: Kept, now: bytes | None) -> bytes | None:
    """Return the file as it would be without us: as it was, with what others have changed in it since."""
    if now is None or now == kept.before:
        return now
    if now == kept.after:
        return kept.before
    if not kept.edits:
        return now  # a file that was ours alone and is not any more
    text, bom = _text(kept.path, now)
    try:
        if text.strip():
            check(text, kept.is_toml)
        left = removed(text, kept.edits, _text(kept.path, kept.before)[0])
        if left.strip():
            check(left, kept.is_toml)
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
    text = (data or b"").decode("utf-8", "replace")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _text(path: str, data: bytes | None) -> tuple[str, bytes]:
    """Return a file's text, and the mark that it begins with, if any."""
    raw = data or b""
    bom = BOM if raw.startswith(BOM) else b""
    try:
        return raw[len(bom) :].decode(), bom
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} cannot be changed: it is not UTF-8 ({error.reason})") from None
