"""What `herdr connect` has changed, kept in the user's state folder so that it can be taken back."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from herdr.cli.files import write_whole
from herdr.connect.plan import Kept, Step
from herdr.errors import HerdrError

STATE_VARIABLE = "XDG_STATE_HOME"


def state_folder() -> Path:
    """Return the folder for such things (XDG Base Directory Specification)."""
    named = os.environ.get(STATE_VARIABLE)
    return Path(named) if named and os.path.isabs(named) else Path.home() / ".local" / "state"


class Connections:
    """The files of one client, in one folder."""

    def __init__(self, client: str, folder: Path) -> None:
        place = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        self._folder = Path(os.path.realpath(folder))
        self._file = state_folder() / "herdr" / "connect" / f"{client}-{place}.json"

    def kept(self) -> dict[str, Kept]:
        """Return what is remembered, by path."""
        try:
            return {kept.path: kept for kept in msgspec.json.decode(self._file.read_bytes(), type=list[Kept])}
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise HerdrError(
                f"{self._file}, where the original files are kept, is damaged: {error}"
            ) from None

    @staticmethod
    def read(path: str) -> bytes | None:
        """Return what a file holds; None when it is not there."""
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise HerdrError(f"{path} is a folder; a file is expected there") from None

    def carry_out(self, steps: Sequence[Step], *, undo: bool) -> None:
        """Do all steps, or none: when one cannot be done, those before it are taken back. Raises HerdrError.

        What has to be remembered is written first, so that whatever happens can be undone.
        """
        if not undo:
            self._remember([step.keep for step in steps if step.keep is not None])
        done: list[Step] = []
        try:
            for step in steps:
                if step.now != step.then:
                    done.append(step)
                    _write(step.path, step.then)
        except OSError as error:
            for step in reversed(done):
                _write(step.path, step.now)
            raise HerdrError(f"{error.filename}: {error.strerror}; nothing was changed") from None
        for step in steps:
            if step.then is None:
                self._prune(Path(os.path.realpath(step.path)).parent)
        if undo:
            self._file.unlink(missing_ok=True)

    def _prune(self, folder: Path) -> None:
        """Remove the folders that hold nothing without our file."""
        while folder != self._folder and folder.is_relative_to(self._folder):
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _remember(self, kept: Sequence[Kept]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = msgspec.json.encode(kept)
        write_whole(self._file, [data])
        self._file.chmod(0o600)  # the files may hold secrets of other programs


def _write(path: str, data: bytes | None) -> None:
    """Write a file whole, with the mode that it had; a link stays one. Folders that were made stay."""
    place = Path(os.path.realpath(path))
    if data is None:
        place.unlink(missing_ok=True)
        return
    mode = place.stat().st_mode & 0o7777 if place.exists() else None
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, [data])
    if mode is not None:
        place.chmod(mode)
