"""What `herdr connect` has changed, kept in the user's state folder so that it can be taken back."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from herdr.cli.files import write_whole
from herdr.connect.plan import Kept, Step
from herdr.errors import HerdrError

STATE_VARIABLE = "XDG_STATE_HOME"
PRIVATE = 0o600  # the originals may hold secrets of other programs


class Connected(msgspec.Struct, frozen=True):
    """What is remembered of one client in one folder."""

    files: list[Kept] = []
    folders: list[str] = []
    """That were made for the files."""
    token: bool | None = None
    """Whether the gateway asked for one, if it was ever asked."""
    model: bool = False
    """Whether the client asks the gateway's models."""

    def kept(self) -> dict[str, Kept]:
        """Return the files by their paths."""
        return {kept.path: kept for kept in self.files}


def state_folder() -> Path:
    """Return the folder for such things (XDG Base Directory Specification)."""
    named = os.environ.get(STATE_VARIABLE)
    return Path(named) if named and os.path.isabs(named) else Path.home() / ".local" / "state"


def read_file(path: str) -> bytes | None:
    """Return what a file holds; None when it is not there. Raises HerdrError."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HerdrError(f"{path} cannot be read ({error.strerror}); nothing was changed") from None


class Connections:
    """The files of one client, for a project's folder or the user's."""

    def __init__(self, client: str, scope: str, folder: Path) -> None:
        place = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]
        self._file = state_folder() / "herdr" / "connect" / f"{client}-{scope}-{place}.json"

    def read(self) -> Connected:
        """Return what is remembered. Raises HerdrError when it cannot be read."""
        raw = read_file(str(self._file))
        try:
            return Connected() if raw is None else msgspec.json.decode(raw, type=Connected)
        except msgspec.DecodeError as error:
            raise HerdrError(
                f"{self._file}, where the original files are kept, is damaged ({error}): put the files back by "
                "hand, and remove it"
            ) from None

    def carry_out(self, steps: Sequence[Step], then: Connected | None) -> None:
        """Do all steps, or none, and remember `then` (None: nothing). Raises HerdrError.

        It is remembered first, so that whatever happens on the way can be undone. When a step cannot be done, those
        before it are taken back.
        """
        before, was = self.read(), read_file(str(self._file))
        _check_unchanged(steps)
        folders = [*before.folders, *_missing_folders(steps)]
        done: list[Step] = []
        try:
            if then is not None:
                self._write(msgspec.json.encode(msgspec.structs.replace(then, folders=folders)))
            for step in steps:
                if step.now != step.then:
                    done.append(step)
                    _write(step.path, step.then)
        except OSError as error:
            left = [step.path for step in reversed(done) if not _put_back(step)]
            with suppress(OSError):
                self._write(was)
            _prune(folders if was is None else folders[len(before.folders) :])
            raise HerdrError(_refusal(error, left)) from None
        if then is None:
            _prune(folders)
            self._write(None)

    def _write(self, data: bytes | None) -> None:
        if data is None:
            self._file.unlink(missing_ok=True)
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self._file, [data], PRIVATE)


def _check_unchanged(steps: Sequence[Step]) -> None:
    """Raise HerdrError when a file is not what was looked at, as programs write their own files at any time."""
    for step in steps:
        if read_file(step.path) != step.now:
            raise HerdrError(
                f"{step.path} was changed at this moment; nothing was changed by us: do it again"
            )


def _missing_folders(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the folders that have to be made, outermost first."""
    seen: set[Path] = set()
    for step in steps:
        if step.then is not None:
            parents = Path(os.path.realpath(step.path)).parents
            missing = [folder for folder in parents if not folder.exists() and folder not in seen]
            seen.update(missing)
            yield from map(str, reversed(missing))


def _prune(folders: Sequence[str]) -> None:
    """Remove the folders that we have made and that nothing is in."""
    for folder in reversed(folders):
        with suppress(OSError):
            os.rmdir(folder)


def _write(path: str, data: bytes | None) -> None:
    """Write a file whole, with the mode and the owner that it had; a link stays one."""
    place = Path(os.path.realpath(path))
    if data is None:
        place.unlink(missing_ok=True)
        return
    try:
        was = place.stat()
    except FileNotFoundError:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, [data])
    else:
        write_whole(place, [data], was.st_mode & 0o7777, (was.st_uid, was.st_gid))


def _put_back(step: Step) -> bool:
    """Take a step back; tell whether it could be done."""
    try:
        if read_file(step.path) != step.now:
            _write(step.path, step.now)
    except (OSError, HerdrError):
        return False
    return True


def _refusal(error: OSError, left: Sequence[str]) -> str:
    what = f"{error.filename2 or error.filename or 'a file'} cannot be written ({error.strerror})"
    if left:
        return f"{what}, and these could not be put back: {', '.join(left)}. Mend it and use --undo"
    return f"{what}; nothing was changed"
