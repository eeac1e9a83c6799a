"""Snapshots: a file is there when it is whole, or not at all."""

import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from herdr_sdk import ConnectionFailed, Hub, NotFound, ServerError

CONTENT = os.urandom(3 * 1024 * 1024)


def whole(asked: Any) -> web.Response:
    return web.Response(body=CONTENT, content_type="application/zstd")


async def test_an_export_is_written_whole(faulty, tmp_path) -> None:
    faulty.answer = whole
    target = tmp_path / "shop.herdr"
    target.write_bytes(b"old")
    snapshots = Hub().snapshots
    assert await snapshots.export("shop", target) == len(CONTENT)
    assert target.read_bytes() == CONTENT
    await snapshots.export("a b", str(target), sessions=True)
    assert [asked.address for asked in faulty.asked] == [
        "/v1/snapshots/shop?sessions=false", "/v1/snapshots/a%20b?sessions=true"
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["shop.herdr"]
    umask = os.umask(0o022)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("framing", ["content-length", "chunked"])
async def test_an_export_that_breaks_off_leaves_nothing(faulty, tmp_path, framing) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if framing == "content-length":
            response.content_length = len(CONTENT)
        else:
            response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(CONTENT[: len(CONTENT) // 2])
        request.transport.abort()
        return response

    faulty.plain = half
    await faulty.stop()
    await faulty.start()
    target = tmp_path / "shop.herdr"
    target.write_bytes(b"old")
    with pytest.raises(ConnectionFailed):
        await Hub(url=faulty.url).snapshots.export("shop", target)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("shop.herdr", b"old")]


async def test_an_export_that_is_refused_leaves_nothing(faulty, tmp_path) -> None:
    faulty.answer = lambda asked: web.json_response({"code": "unknown_workspace", "detail": "no"}, status=404)
    with pytest.raises(NotFound):
        await Hub().snapshots.export("shop", tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    faulty.answer = whole
    with pytest.raises(FileNotFoundError):
        await Hub().snapshots.export("shop", tmp_path / "none" / "x")


async def test_an_import_is_the_file(faulty, tmp_path) -> None:
    file = tmp_path / "shop.herdr"
    file.write_bytes(CONTENT)
    report = {"files": 9, "reused": 7, "parsed": 2, "artifacts": 1, "decisions": 3, "sessions": 0, "later": 1}
    faulty.answer = lambda asked: report
    got = await Hub().snapshots.import_("shop", file)
    assert (got.files, got.reused, got.parsed, got.artifacts, got.decisions, got.sessions) == (
        9,
        7,
        2,
        1,
        3,
        0,
    )
    [asked] = faulty.asked
    assert (asked.method, asked.address, asked.body == CONTENT) == ("POST", "/v1/snapshots/shop", True)
    assert asked.headers["content-type"] == "application/zstd"


async def test_an_import_that_is_refused(faulty, tmp_path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    faulty.answer = lambda asked: web.json_response(
        {"code": "snapshot_damaged", "detail": "cut off"}, status=400
    )
    with pytest.raises(ServerError, match=r"cut off \[snapshot_damaged\]"):
        await Hub().snapshots.import_("shop", tmp_path / "x")
    faulty.refuse_body = web.json_response({"code": "too_large", "detail": "over 256 MiB"}, status=413)
    with pytest.raises(ServerError, match="over 256 MiB"):
        await Hub().snapshots.import_("shop", tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        await Hub().snapshots.import_("shop", Path("/nowhere/x"))
