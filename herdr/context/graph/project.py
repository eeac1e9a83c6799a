"""Pure: what the graph's questions are put to. `herdr.storage.sqlite.graph` implements it; a test has its own."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from herdr.context.graph.language import Files, Language


class Place(NamedTuple):
    """One symbol of one file."""

    path: str
    symbol: int
    """Place in the outline's `symbols`."""


class Pair(NamedTuple):
    """How often one file calls names that another one defines; names with many definers are left out."""

    source: str
    target: str
    name: str
    calls: int


class Project(Files, Protocol):
    """All outlines of one workspace, and the indexes over their names. Paths are sorted everywhere."""

    def language(self, name: str) -> Language:
        """Return the module of a language that outlines name."""
        ...

    def paths(self) -> Iterable[str]:
        """Return every file that has an outline."""
        ...

    def defining(self, name: str) -> Sequence[str]:
        """Return the files that define something with this name (`save`)."""
        ...

    def names(self) -> Iterable[str]:
        """Return every name that something in the workspace has, sorted."""
        ...

    def calling(self, name: str) -> Sequence[str]:
        """Return the files that call something with this last name."""
        ...

    def importing(self, key: str) -> Sequence[str]:
        """Return the files with an import whose last parts (of its module, or its name) are this key."""
        ...

    def pairs(self, definers_max: int) -> Iterable[Pair]:
        """Return who calls whom by name, where at most `definers_max` files define the name."""
        ...
