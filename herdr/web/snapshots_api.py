"""The handlers of `/v1/snapshots`."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from herdr.web.asgi import ClientGone, Receive, Reply, Scope, header, respond_json
from herdr.web.auth import Caller
from herdr.web.context_api import read
from herdr.web.context_bodies import ExportQuery
from herdr.web.context_desk import Snapshots
from herdr.web.problems import Refused

SNAPSHOT_MAX = 256 * 1024 * 1024
"""Bytes; the graph of a million lines is some 10 MiB."""

CHUNK = 256 * 1024


class SnapshotsApi:
    """Snapshots out and in, as files that pass through the disk and not through memory."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    async def export(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Send a snapshot of a workspace."""
        file = await self._snapshots.export(
            scope["path_params"]["workspace"], read(ExportQuery, scope).sessions
        )
        try:
            await _send_file(send, file)
        finally:
            await asyncio.to_thread(shutil.rmtree, file.parent, ignore_errors=True)

    async def receive(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Verify and import a snapshot."""
        parts = _parts(scope, receive)
        await respond_json(send, 200, await self._snapshots.receive(scope["path_params"]["workspace"], parts))


async def _send_file(send: Reply, file: Path) -> None:
    size = await asyncio.to_thread(lambda: file.stat().st_size)
    headers = [
        (b"content-type", b"application/zstd"),
        (b"content-length", b"%d" % size),
        (b"content-disposition", b'attachment; filename="herdr.snapshot"'),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    with await asyncio.to_thread(file.open, "rb") as opened:
        while chunk := await asyncio.to_thread(opened.read, CHUNK):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _parts(scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
    """Yield the body as it comes; raises Refused beyond SNAPSHOT_MAX, ClientGone when it breaks off."""
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > SNAPSHOT_MAX:
        raise _too_large()
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size > SNAPSHOT_MAX:
            raise _too_large()
        yield part
        more = message.get("more_body", False)


def _too_large() -> Refused:
    return Refused(
        "too_large",
        f"a snapshot may have {SNAPSHOT_MAX} bytes; export it without sessions",
        {"connection": "close"},
    )
