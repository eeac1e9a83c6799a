"""From requested paths to the names that a lock covers, with the file system's help. Blocks: call it in a thread.

A path gets a name in every workspace that contains it, for itself and for all that it is a link to. What a
wildcard or a folder contains is not looked at: links further down are followed when they are asked for by name.
"""

import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from herdr.errors import FieldError, InvalidInput, NotFound
from herdr.glob import is_glob
from herdr.locks.disk import Disk, LinkLoop, Trail, WorkTree, find_work_tree, is_case_blind
from herdr.locks.lock import FOLDER, Mode, Name, size_of
from herdr.locks.paths import Requested, names_of, read_paths

NAMES_BYTES_MAX = 256 * 1024
"""Of one lock's names together, as its event stands in the log: a quarter of what an event's data may have."""
NAMES_MAX = 4096  # of one lock: 256 paths with 16 names each. Two or three are usual; a lock is kept whole
WRONG_SAID = 10  # of the paths that lead out; who sees ten knows what is wrong with the others
DEFAULT = "default"  # the workspace of whoever names none; it may have no folder


class _Space(NamedTuple):
    """One workspace's place on the disk."""

    name: str
    root: str
    """Real path; the folder need not be there now."""
    parts: tuple[str, ...]
    """The same, cut."""
    fold: bool

    def within(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return what an absolute path's segments are from the root on; None when it is not in there."""
        base = parts[: len(self.parts)]
        if base == self.parts or (self.fold and _letters(base, True) == _letters(self.parts, True)):
            return _letters(parts[len(base) :], self.fold)
        return None


class Naming:
    """Names paths. `roots` gives the folder of each workspace, as it is now.

    `blind` tells whether a folder's volume takes `A` and `a` for one name, or None when that cannot be told; it
    is asked once for each folder, and again only after a None.
    """

    def __init__(
        self, roots: Callable[[], Mapping[str, str]], blind: Callable[[str], bool | None] = is_case_blind
    ) -> None:
        self._roots = roots
        self._blind = blind
        self._folds: dict[str, bool] = {}
        self._folding: frozenset[str] = frozenset()

    def plain(self, workspace: str, path: str) -> Name:
        """Return the name of a path as watchers have it: real, and no pattern. Does not look at the disk.

        Whether letters count without case is known once `names` was called for any workspace.
        """
        return Name(workspace, _letters(path.split("/"), workspace in self._folding), (), path)

    @property
    def needs_disk(self) -> bool:
        """Whether `names` looks at folders, and may block."""
        return bool(self._roots())

    def names(
        self, workspace: str, paths: Sequence[str], mode: Mode
    ) -> tuple[tuple[str, ...], tuple[Name, ...]]:
        """Return the paths in canonical form, folders with a `/` at the end, and all names that they have.

        Raises NotFound `unknown_workspace`; InvalidInput `bad_path` with the places of the wrong paths in
        `errors`, or `invalid_request` for too many. No message holds a path of this machine.
        """
        asked = read_paths(paths)
        spaces = self._spaces(workspace)
        shown: dict[str, None] = {}
        names: dict[Name, None] = {}
        wrong: list[FieldError] = []
        disk = Disk()
        for requested in asked:
            try:
                path, found = _name(requested, workspace, spaces, disk, mode)
            except InvalidInput as error:
                wrong.append(FieldError("paths", error.detail, paths.index(requested.text)))
                continue
            shown[path] = None
            names.update(dict.fromkeys(found))
            if len(names) > NAMES_MAX or size_of(tuple(names)) > NAMES_BYTES_MAX:
                raise InvalidInput(
                    f"the paths have more than {NAMES_MAX} names, or {NAMES_BYTES_MAX} bytes of names, together, "
                    "as they are or lead to symbolic links, or lie in several workspaces; lock their folder instead"
                )
        if wrong:
            raise InvalidInput(wrong[0].message, "bad_path", wrong[:WRONG_SAID])
        return tuple(shown), tuple(names)

    def _spaces(self, workspace: str) -> dict[str, _Space]:
        roots = self._roots()
        if workspace not in roots and workspace != DEFAULT:
            raise NotFound(
                f"no workspace is called {workspace!r}; `herdr workspace list` shows them, and "
                "`herdr workspace add PATH --name NAME` adds one",
                "unknown_workspace",
            )
        found = {name: os.path.realpath(root) for name, root in roots.items()}
        self._folds = {root: fold for root, fold in self._folds.items() if root in found.values()}
        spaces = {n: _Space(n, root, Path(root).parts, self._fold(root)) for n, root in found.items()}
        self._folding = frozenset(space.name for space in spaces.values() if space.fold)
        return spaces

    def _fold(self, root: str) -> bool:
        known = self._folds.get(root)
        if known is None:
            blind = self._blind(root)
            if blind is None:
                return False
            self._folds[root] = known = blind
        return known


def _name(
    requested: Requested, workspace: str, spaces: Mapping[str, _Space], disk: Disk, mode: Mode
) -> tuple[str, list[Name]]:
    home = spaces.get(workspace)
    if requested.kind == "git":
        return requested.canonical, list(_git_names(requested, workspace, spaces, mode))
    if home is None:
        return requested.canonical, [names_of(requested, workspace)]
    literal, rest = _split(requested)
    trail = _follow(requested, home, literal, disk)
    if requested.kind == "path" and trail.is_folder:
        requested, rest = requested._replace(is_folder=True), FOLDER
    return requested.canonical, list(_placed(requested.canonical, trail, rest, spaces))


def _split(requested: Requested) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the segments before the first wildcard, and the others."""
    segments, cut = requested.segments, len(requested.segments)
    if requested.kind == "glob":
        cut = next(place for place, segment in enumerate(segments) if is_glob(segment))
    return segments[:cut], segments[cut:] + FOLDER * requested.is_folder


def _follow(requested: Requested, home: _Space, literal: tuple[str, ...], disk: Disk) -> Trail:
    """Return where a path leads; raises InvalidInput when that is nowhere, or out of the workspace."""
    try:
        trail = disk.follow(home.root, literal)
    except LinkLoop as loop:
        raise InvalidInput(f"the path {_said(requested)} {loop.detail}", "bad_path") from None
    if home.within(Path(trail.names[-1]).parts) is None:
        raise InvalidInput(
            f"the path {_said(requested)} leads out of the workspace through a symbolic link; only what lies "
            "in the workspace can be locked in it",
            "bad_path",
        )
    return trail


def _said(requested: Requested) -> str:
    text = requested.canonical
    return repr(text if len(text) <= 80 else f"{text[:60]}…")


def _placed(shown: str, trail: Trail, rest: tuple[str, ...], spaces: Mapping[str, _Space]) -> Iterator[Name]:
    for parts in (Path(full).parts for full in trail.names):
        for space in spaces.values():
            literal = space.within(parts)
            if literal is not None:
                yield Name(space.name, literal, _letters(rest, space.fold), shown)
    if trail.shared is not None and not rest:
        device, inode = trail.shared
        yield Name(f"file:{device:x}", (str(inode),), (), shown)


def _git_names(
    requested: Requested, workspace: str, spaces: Mapping[str, _Space], mode: Mode
) -> Iterator[Name]:
    """Yield what `git:HEAD` or `git:index` is; switching the branch changes the index and any file."""
    home = spaces.get(workspace)
    tree = find_work_tree(home.root) if home is not None else None
    space = f"git:{workspace}" if tree is None else f"git:{_short(tree.git_dir)}"
    yield names_of(requested, space)
    if requested.canonical == "git:HEAD" and mode == "write":
        yield Name(space, ("index",), (), requested.canonical)
        for name, literal in _covered(tree, workspace, spaces):
            yield Name(name, literal, FOLDER, requested.canonical)


def _covered(
    tree: WorkTree | None, workspace: str, spaces: Mapping[str, _Space]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield where a work tree's files are: in workspaces within it, and in those that contain it."""
    if tree is None:
        yield workspace, ()
        return
    for space in spaces.values():
        literal = space.within(Path(tree.top).parts)
        if literal is not None:
            yield space.name, literal
        elif find_work_tree(space.root) == tree:
            yield space.name, ()


def _short(git_dir: str) -> str:
    return blake2b(os.fsencode(git_dir), digest_size=4).hexdigest()


def _letters(segments: Sequence[str], fold: bool) -> tuple[str, ...]:
    """Return segments as they are compared, and as text: a link may lead to a name that is not UTF-8."""
    texts = [unicodedata.normalize("NFC", segment) for segment in segments]
    if fold:
        texts = [unicodedata.normalize("NFC", text.casefold()) for text in texts]
    return tuple(text.encode(errors="backslashreplace").decode() for text in texts)
