"""What the shared context needs of its storage; `herdr.storage.sqlite.context` implements it."""

from typing import Protocol

from herdr.context.artifacts import Artifacts
from herdr.context.blobs import Blobs
from herdr.context.histories import Histories


class Store(Protocol):
    """Blobs, artifacts and histories on one file with one writer."""

    @property
    def blobs(self) -> Blobs:
        """Content by its hash."""
        ...

    @property
    def artifacts(self) -> Artifacts:
        """The artifact cache."""
        ...

    @property
    def histories(self) -> Histories:
        """What was said in sessions."""
        ...

    async def tidy(self) -> bool:
        """Do a slice of upkeep; True when more is due. Raises ContextUnavailable."""
        ...
