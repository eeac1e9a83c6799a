"""Pure: under which keys a file's imports are found by the file that they mean."""

import re
from collections.abc import Iterable

from herdr.context.graph.outline import Import, Outline

_PARTS = re.compile(r"[/\\.:]+")


def import_keys(outline: Outline) -> Iterable[str]:
    """Return the last part of each module, with and without its ending, and each name taken from one.

    A name may itself be a module (`from shop import cart`). A module of dots alone (`from .. import Cart`) is `.`.
    """
    return sorted({key for found in outline.imports for key in _keys(found)})


def _keys(found: Import) -> Iterable[str]:
    parts = [part for part in _PARTS.split(found.module) if part]
    yield from parts[-2:] if parts or not found.module else "."
    if found.name and found.name != "*":
        yield from [part for part in _PARTS.split(found.name) if part][-1:]
