"""What the gateway knows of a project, as one file: for CI, or another machine. `hub.snapshots`."""

import asyncio
import os
import secrets
from io import BufferedWriter
from pathlib import Path

import msgspec

from herdr_sdk.errors import ConnectionFailed
from herdr_sdk.plain_http import PlainHttp, Request, part

CHUNK_BYTES = 1024 * 1024
SILENCE_S = 300.0  # an export is packed, an import's changed files are parsed, before the gateway answers

_AS_IT_IS = {"Accept-Encoding": "identity"}  # or its length would not be that of the file
_PACKED = {"Content-Type": "application/zstd"}


class SnapshotReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an import has brought."""

    files: int = 0
    reused: int = 0
    """Files whose content is what the snapshot knows, and that were not parsed again."""
    parsed: int = 0
    artifacts: int = 0
    decisions: int = 0
    sessions: int = 0


class Snapshots:
    """Exports and imports; stands at `Hub.snapshots`."""

    def __init__(self, http: PlainHttp) -> None:
        self._http = http

    async def export(self, workspace: str, file: str | Path, *, sessions: bool = False) -> int:
        """Write what is known of the workspace to a file, whole conversations only with `sessions`.

        Returns its size in bytes. The file appears when it is whole, and replaces what was there; raises
        ConnectionFailed when the transfer broke off, NotFound, or OSError for a file that cannot be written.
        """
        target = Path(file)
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            query = {"sessions": sessions}
            request = Request("GET", _address(workspace), query, None, _AS_IT_IS, SILENCE_S)
            size = await self._fetch(request, beside)
            await asyncio.to_thread(os.replace, beside, target)
        finally:
            beside.unlink(missing_ok=True)
        return size

    async def import_(self, workspace: str, file: str | Path) -> SnapshotReport:
        """Take in a file that was exported; it needs the scope `admin`.

        Only files whose content differs from the snapshot's are parsed. Raises ServerError
        (`snapshot_damaged`, `snapshot_version`, `too_large`), or OSError for a file that cannot be read.
        """
        path = Path(file)
        with await asyncio.to_thread(path.open, "rb") as body:
            request = Request("POST", _address(workspace), {}, body, _PACKED, SILENCE_S)
            return await self._http.read(SnapshotReport, request)

    async def _fetch(self, request: Request, path: Path) -> int:
        size = 0
        with await asyncio.to_thread(path.open, "xb") as output:
            async with self._http.answer(request) as response:
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    size += await asyncio.to_thread(output.write, chunk)
                if response.content_length not in (None, size):
                    raise ConnectionFailed(f"The snapshot broke off after {size} bytes. Try again.")
            await asyncio.to_thread(_to_disk, output)
        return size


def _to_disk(file: BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


def _address(workspace: str) -> str:
    return f"/v1/snapshots/{part(workspace)}"
