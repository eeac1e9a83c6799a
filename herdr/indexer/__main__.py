"""`python -m herdr.indexer`: the indexer as a process, started and ended by the gateway."""

import asyncio
import logging
import os
import signal
import sys

from herdr.clock import SystemClock
from herdr.indexer.form import graph_form
from herdr.indexer.parse_pool import ParsePool
from herdr.indexer.program import Program

WORKERS_MAX = 4  # beyond it storing is what takes the time


NICE = 10  # behind the gateway and the user's own work; the parse workers inherit it


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin.buffer)
    transport, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout.buffer)
    pool = ParsePool(min(os.cpu_count() or 1, WORKERS_MAX))
    program = Program(transport.write, pool, graph_form(), SystemClock())
    await program.serve(requests)


def main() -> None:
    """Serve until the standard input ends."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    os.nice(NICE)
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal's Ctrl-C goes to all; we end with our input
        signal.signal(number, signal.SIG_IGN)
    asyncio.run(_serve())


if __name__ == "__main__":
    main()
