"""Lines from a pipe in batches: as many as are there, and never a wait for more."""

import os
import select
from collections.abc import Iterator
from typing import NamedTuple

from herdr.errors import HerdrError

LINES_MAX = 500  # per request; half of what the gateway takes
BYTES_MAX = 4 * 1024**2  # per request, half of the gateway's default; one line may be as long
_CHUNK = 256 * 1024


class Batch(NamedTuple):
    """Lines that go into one request, without their ends, and their numbers from 1; blank ones are left out."""

    lines: list[bytes]
    numbers: list[int]


def read_batches(descriptor: int) -> Iterator[Batch]:
    """Yield the lines of a pipe or file; raises HerdrError for one that is too long.

    A slow producer's lines go out one by one as they come, a fast one's by the hundred.
    """
    batch, number, size = Batch([], []), 0, 0
    for line in _lines(descriptor):
        if line is None or size + len(line or b"") > BYTES_MAX or len(batch.lines) >= LINES_MAX:
            if batch.lines:
                yield batch
            batch, size = Batch([], []), 0
        if line is None:
            continue
        number += 1
        if line.strip():
            batch.lines.append(line)
            batch.numbers.append(number)
            size += len(line)
    if batch.lines:
        yield batch


def _lines(descriptor: int) -> Iterator[bytes | None]:
    """Yield lines, and None wherever reading on might have to wait."""
    rest = bytearray()
    while True:
        if not select.select([descriptor], [], [], 0)[0]:
            yield None
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        rest += chunk
        *lines, last = rest.split(b"\n") if b"\n" in chunk else [rest]
        rest = bytearray(last)
        yield from map(bytes, lines)
        if len(rest) > BYTES_MAX:
            raise HerdrError(f"stdin holds a line of more than {BYTES_MAX} bytes, which no event may have")
    if rest:
        yield bytes(rest)
