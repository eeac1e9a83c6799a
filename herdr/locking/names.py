"""Names of paths, without holding up anybody."""

import asyncio
from collections.abc import Sequence

from herdr.locks.lock import Mode, Name
from herdr.locks.naming import Naming


class Names:
    """Asks `herdr.locks.naming`, on a thread where it looks at folders."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming

    async def names(
        self, workspace: str, paths: Sequence[str], mode: Mode
    ) -> tuple[tuple[str, ...], tuple[Name, ...]]:
        """See `Naming.names`."""
        if self._naming.needs_disk:
            # A network file system can take its time, and nobody else is to wait for it
            return await asyncio.to_thread(self._naming.names, workspace, paths, mode)
        return self._naming.names(workspace, paths, mode)
