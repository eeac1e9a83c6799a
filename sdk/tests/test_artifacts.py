"""Artifacts: content goes in and comes out as it is."""

from typing import Any

import pytest
from aiohttp import web

from herdr_sdk import Hub, NotFound, ServerError
from herdr_sdk.plain_http import ASK_FIRST_BYTES

ABOUT = {
    **{"name": "digests/pytest 7.txt", "workspace": "shop", "kind": "log_digest", "ref": "ab", "bytes": 7},
    **{"content_type": "text/plain", "created": "c", "expires": "e", "used": None, "by": "ci", "later": 1},
    **{"session": "s1", "based_on": "17", "redacted": 2},
}


async def test_putting_text_and_bytes(faulty) -> None:
    faulty.answer = lambda asked: web.json_response(ABOUT, status=201)
    artifacts = Hub().artifacts
    got = await artifacts.put(
        "digests/pytest 7.txt",
        "2 füßen",
        kind="log_digest",
        ttl_s=3600,
        workspace="shop",
        session="s 1",
        based_on=17,
    )
    big = bytes(range(256)) * 8192
    await artifacts.put("core", big)
    first, second = faulty.asked
    query = "kind=log_digest&ttl_s=3600&workspace=shop&session=s+1&based_on=17"
    assert (first.method, first.address) == ("PUT", f"/v1/artifacts/digests/pytest%207.txt?{query}")
    assert (first.body, first.headers["content-type"]) == ("2 füßen".encode(), "text/plain; charset=utf-8")
    assert (second.address, second.body == big) == ("/v1/artifacts/core?workspace=default", True)
    assert (second.headers["content-type"], second.headers["content-length"]) == (
        "application/octet-stream", str(len(big))
    )  # fmt: skip
    assert (got.name, got.kind, got.by, got.based_on, got.redacted) == (
        "digests/pytest 7.txt", "log_digest", "ci", "17", 2
    )  # fmt: skip


async def test_content_that_is_the_same_is_not_sent_again(faulty) -> None:
    def answer(asked: Any) -> web.Response:
        if asked.headers.get("if-none-match") == '"ab"':
            return web.Response(status=304)
        return web.Response(body=b"\x00{}", content_type="application/json", headers={"ETag": '"ab"'})

    faulty.answer = answer
    artifacts = Hub().artifacts
    assert [await artifacts.get("a/b", workspace="shop") for _ in range(2)] == [b"\x00{}", b"\x00{}"]
    assert [asked.address for asked in faulty.asked] == ["/v1/artifacts/a/b?workspace=shop"] * 2
    assert faulty.asked[1].headers["if-none-match"] == '"ab"'
    assert await Hub().artifacts.get("a/b") == b"\x00{}"
    assert faulty.asked[2].headers.get("if-none-match") is None
    faulty.answer = lambda asked: web.Response(body=b"new", headers={"ETag": '"cd"'})
    assert await artifacts.get("a/b", workspace="shop") == b"new"


async def test_describing_listing_and_deleting(faulty) -> None:
    artifacts = Hub().artifacts
    faulty.answer = lambda asked: ABOUT
    assert (await artifacts.describe("a")).expires == "e"
    faulty.answer = lambda asked: {"artifacts": [ABOUT], "bytes": 7, "limit_bytes": 134217728, "more": 3}
    found = await artifacts.list(kind="patch", workspace="shop", session="s", limit=1)
    await artifacts.list()
    assert (found.artifacts[0].ref, found.bytes, found.limit_bytes, found.more) == ("ab", 7, 134217728, 3)
    faulty.answer = lambda asked: web.Response(status=204)
    await artifacts.delete("a", workspace="w")
    assert [(asked.method, asked.address) for asked in faulty.asked] == [
        ("GET", "/v1/artifacts/a?workspace=default&meta=true"),
        ("GET", "/v1/artifacts?workspace=shop&kind=patch&session=s&limit=1"),
        ("GET", "/v1/artifacts?workspace=default&limit=100"),
        ("DELETE", "/v1/artifacts/a?workspace=w"),
    ]


async def test_refusals(faulty) -> None:
    artifacts = Hub().artifacts
    faulty.answer = lambda asked: web.json_response(
        {"code": "unknown_artifact", "detail": "gone"}, status=404
    )
    with pytest.raises(NotFound, match="gone"):
        await artifacts.get("a")
    faulty.answer = lambda asked: web.json_response(
        {"code": "artifact_too_large", "detail": "too large"}, status=413
    )
    with pytest.raises(ServerError, match="artifact_too_large"):
        await artifacts.put("a", "x")
    with pytest.raises(ValueError, match="empty"):
        await artifacts.put("", "x")


async def test_large_content_is_refused_before_it_is_sent(faulty) -> None:
    too_large = {"code": "artifact_too_large", "detail": "an artifact has at most 16 MiB"}
    faulty.refuse_body = web.json_response(too_large, status=413, headers={"Connection": "close"})
    with pytest.raises(ServerError, match="at most 16 MiB"):
        await Hub().artifacts.put("core", bytes(ASK_FIRST_BYTES))
    assert (faulty.expected, faulty.asked) == (["/v1/artifacts/core?workspace=default"], [])
    faulty.answer = lambda asked: ABOUT
    await Hub().artifacts.put("small", bytes(ASK_FIRST_BYTES - 1))
    assert (len(faulty.expected), len(faulty.asked)) == (1, 1)
