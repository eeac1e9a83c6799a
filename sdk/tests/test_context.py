"""Looking at a project: what is asked, what the answers become, and what is not asked or sent twice."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from aiohttp import web

from herdr_sdk import ConnectionFailed, Hub, NotFound, NotReady, ServerError, Unauthorized
from herdr_sdk.graph import Language, Progress

MAP = {
    "text": "src/cart.py\n  class Cart\n",
    "ref": "ab12",
    "tokens": 11,
    "tokenizer": "bytes/2.7",
    "files": 1,
    "symbols": 1,
    "focus": ["src/cart.py"],
    "a field of a later version": {"x": 1},
}
TOTAL = {
    "symbol": "src/cart.py::Cart.total",
    "name": "total",
    "kind": "method",
    "path": "src/cart.py",
    "line": 12,
    "end_line": 19,
    "signature": "def total(self, tax: Decimal) -> Decimal",
    "exported": True,
    "later": 1,
}
MANIFEST = {
    "workspace": "shop",
    "graph": {
        "state": "indexing",
        "version": "0f3a",
        "files": 210,
        "parsed": 200,
        "symbols": 4100,
        "calls": 9000,
        "imports": 800,
        "languages": {"python": {"files": 180, "symbols": 4000}},
        "skipped": {"binary": 10},
        "progress": {"done": 20, "total": 210, "files_per_s": 412.5},
        "verified": None,
        "detail": None,
    },
    "head": {"branch": "main", "commit": "c0ffee"},
    "sessions": [
        {"session": "s1", "messages": 3, "updated": "2026-03-02T09:15:00.000Z", "sources": ["cursor"]}
    ],
    "artifacts": [{"name": "a", "kind": "patch", "ref": "ff", "bytes": 5, "expires": None}],
}


def problem(status: int, code: str, detail: str, **headers: str) -> web.Response:
    body = json.dumps({"code": code, "detail": detail, "title": "x", "status": status})
    return web.Response(status=status, text=body, content_type="application/problem+json", headers=headers)


def with_etag(value: dict[str, Any]) -> Callable[[Any], web.Response]:
    """Answer as the gateway does with texts: 304 to whoever has it."""

    def answer(asked: Any) -> web.Response:
        etag = f'"{value["ref"]}"'
        if asked.headers.get("if-none-match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        return web.json_response(value, headers={"ETag": etag})

    return answer


async def test_a_map(faulty) -> None:
    faulty.answer = lambda asked: MAP
    async with Hub(token="t0k3n") as hub:
        found = await hub.context("shop").map(tokens=512, focus=["src/cart.py", "a b&c"], names=("total",))
    assert (found.text, found.ref, found.tokens, found.tokenizer) == (MAP["text"], "ab12", 11, "bytes/2.7")
    assert (found.files, found.symbols, found.focus, found.unchanged) == (1, 1, ("src/cart.py",), False)
    [asked] = faulty.asked
    query = "tokens=512&focus=src%2Fcart.py&focus=a+b%26c&name=total"
    assert (asked.method, asked.address) == ("GET", f"/v1/context/shop/graph/map?{query}")
    assert asked.headers["authorization"] == "Bearer t0k3n"


async def test_one_focus_and_one_name_need_no_list(faulty) -> None:
    faulty.answer = lambda asked: MAP
    await Hub().context().map(focus="src/cart.py", names="total")
    query = "tokens=1024&focus=src%2Fcart.py&name=total"
    assert faulty.asked[0].address == f"/v1/context/default/graph/map?{query}"


async def test_the_same_text_is_not_sent_twice_and_says_so(faulty) -> None:
    faulty.answer = with_etag(MAP)
    hub = Hub()
    context = hub.context("shop")
    first, second = await context.map(), await context.map()
    other = await context.map(tokens=100)
    again = await hub.context("shop").map()
    assert [one.unchanged for one in (first, second, other, again)] == [False, True, False, True]
    assert second.text == again.text == first.text and second.focus == ("src/cart.py",)
    assert [asked.headers.get("if-none-match") for asked in faulty.asked] == [None, '"ab12"', None, '"ab12"']
    faulty.answer = with_etag({**MAP, "text": "other", "ref": "cd34"})
    assert [(one.unchanged, one.text) for one in (await context.map(), await context.map())] == [
        (False, "other"), (True, "other")
    ]  # fmt: skip


async def test_a_text_that_comes_whole_again_is_unchanged_all_the_same(faulty) -> None:
    faulty.answer = lambda asked: web.json_response(MAP, headers={"ETag": '"other"'})
    context = Hub().context()
    assert [(await context.map()).unchanged for _ in range(2)] == [False, True]


async def test_a_text_without_an_etag_is_not_kept(faulty) -> None:
    faulty.answer = lambda asked: MAP
    context = Hub().context()
    assert [(await context.map()).unchanged for _ in range(2)] == [False, False]
    assert all("if-none-match" not in asked.headers for asked in faulty.asked)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("src/cart.py", "src/cart.py"),
        ("a b/ü#?%.py", "a%20b/%C3%BC%23%3F%25.py"),
        ("../../v1/routes", "../../v1/routes"),
        ("./a/%2e%2e/b", "./a/%252e%252e/b"),
        ("caf\udce9.py", "caf%E9.py"),
    ],
)
async def test_a_file_is_asked_for_by_its_very_name(faulty, path, sent) -> None:
    faulty.answer = lambda asked: {"path": path.encode(errors="replace").decode(), "text": ""}
    await Hub().context("shop").file(path)
    assert faulty.asked[0].address == f"/v1/context/shop/graph/files/{sent}"


async def test_a_file(faulty) -> None:
    faulty.answer = lambda asked: {
        **{"path": "src/cart.py", "language": "python", "hash": "aa", "lines": 40, "bytes": 1000},
        **{"symbols": [TOTAL], "importers": ["src/shop.py"], "skipped": None, "broken": True},
        "imports": [
            {"module": ".tax", "name": "rate", "line": 3, "resolution": "exact", "paths": ["src/tax.py"]}
        ],
        **{"text": "class Cart", "ref": "bb", "tokens": 4, "tokenizer": "bytes/2.7"},
    }
    found = await Hub().context("a/b").file("src/cart.py")
    assert faulty.asked[0].address == "/v1/context/a%2Fb/graph/files/src/cart.py"
    assert (found.path, found.language, found.lines, found.bytes, found.broken) == (
        "src/cart.py", "python", 40, 1000, True
    )  # fmt: skip
    assert (found.symbols[0].signature, found.importers) == (TOTAL["signature"], ("src/shop.py",))
    assert (found.imports[0].module, found.imports[0].paths) == (".tax", ("src/tax.py",))
    assert (found.text, found.ref, found.unchanged) == ("class Cart", "bb", False)


async def test_a_file_that_was_not_read(faulty) -> None:
    nothing = {"language": None, "hash": None, "lines": None, "symbols": [], "imports": [], "importers": []}
    faulty.answer = lambda asked: {"path": "x.png", "text": "x.png\n", "skipped": "binary", **nothing}
    found = await Hub().context().file("x.png")
    assert (found.skipped, found.language, found.hash, found.lines) == ("binary", None, None, None)


async def test_symbols(faulty) -> None:
    faulty.answer = lambda asked: {"symbols": [TOTAL], "more": 7}
    context = Hub().context("shop")
    found = await context.symbols("Cart.*", kind="method", path="src/**", limit=5)
    await context.symbols("total")
    assert [asked.address.removeprefix("/v1/context/shop/graph/symbols?") for asked in faulty.asked] == [
        "name=Cart.%2A&kind=method&path=src%2F%2A%2A&limit=5", "name=total&limit=100"
    ]  # fmt: skip
    assert (found.more, found.symbols[0].symbol, found.symbols[0].line) == (7, TOTAL["symbol"], 12)


async def test_callers_and_callees(faulty) -> None:
    context = Hub().context()
    caller = {"symbol": None, "path": "b.py", "lines": [3, 9], "call": "cart.total", "resolution": "name"}
    caller |= {"candidates": 3, "target": None, "signature": None}
    faulty.answer = lambda asked: {"definitions": [TOTAL], "callers": [caller], "more": 2}
    callers = await context.callers("src/cart.py::Cart.total", limit=1)
    assert faulty.asked[-1].address.endswith("/callers?symbol=src%2Fcart.py%3A%3ACart.total&limit=1")
    [one] = callers.callers
    assert (one.path, one.lines, one.symbol, one.resolution, one.candidates) == (
        "b.py",
        (3, 9),
        None,
        "name",
        3,
    )
    assert (callers.definitions[0].name, callers.more) == ("total", 2)
    callee = {
        "name": "sum",
        "call": "sum",
        "lines": [4],
        "resolution": "a later one",
        "candidates": 0,
        "targets": [],
    }
    faulty.answer = lambda asked: {"definitions": [TOTAL], "callees": [callee], "more": 0}
    callees = await context.callees("total")
    assert faulty.asked[-1].address.endswith("/callees?symbol=total&limit=100")
    assert (callees.callees[0].resolution, callees.callees[0].targets) == ("a later one", ())


async def test_dependents_and_what_is_skipped(faulty) -> None:
    context = Hub().context()
    faulty.answer = lambda asked: {
        "path": "a",
        "dependents": [{"path": "b", "distance": 2, "via": "c"}],
        "more": 0,
    }
    [one] = (await context.dependents("a", depth=2)).dependents
    assert (one.path, one.distance, one.via) == ("b", 2, "c")
    faulty.answer = lambda asked: {"skipped": [{"path": "x.png", "reason": "binary", "bytes": 9}], "more": 4}
    skipped = await context.skipped(limit=1)
    assert (skipped.skipped[0].path, skipped.skipped[0].reason, skipped.more) == ("x.png", "binary", 4)
    assert [asked.address.rpartition("/")[2] for asked in faulty.asked] == [
        "dependents?path=a&depth=2&limit=100", "skipped?limit=1"
    ]  # fmt: skip


async def test_the_manifest_and_indexing(faulty) -> None:
    context = Hub().context("shop")
    faulty.answer = lambda asked: MANIFEST
    found = await context.manifest()
    assert (found.workspace, found.graph.state, found.graph.version) == ("shop", "indexing", "0f3a")
    assert found.graph.languages == {"python": Language(files=180, symbols=4000)}
    assert found.graph.progress == Progress(done=20, total=210, files_per_s=412.5)
    assert (found.sessions[0].sources, found.artifacts[0].ref, found.head.branch) == (
        ("cursor",),
        "ff",
        "main",
    )
    faulty.answer = lambda asked: web.json_response({"graph": MANIFEST["graph"]}, status=202)
    assert (await context.index(fresh=True)).progress == found.graph.progress
    last = faulty.asked[-1]
    assert (last.method, last.address, last.json) == ("POST", "/v1/context/shop/index", {"fresh": True})


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            problem(404, "unknown_symbol", "there is no total"),
            NotFound,
            r"^there is no total \[unknown_symbol\]$",
        ),
        (problem(503, "indexing", "wait", **{"Retry-After": "7"}), NotReady, r"\[indexing\]"),
        (problem(503, "workspace_lost", "the folder is away"), NotReady, r"\[workspace_lost\]"),
        (problem(503, "graph_unavailable", "the indexer is gone"), NotReady, r"\[graph_unavailable\]"),
        (problem(503, "context_unavailable", "it is behind"), NotReady, r"\[context_unavailable\]"),
        (problem(400, "bad_path", "leaves it"), ServerError, r"\[bad_path\]"),
        (problem(403, "missing_scope", "the token has no scope context"), Unauthorized, "no scope context"),
        (web.Response(status=502, text="<html>"), ServerError, "HTTP 502 with something else"),
        (web.Response(text="<html>"), ServerError, "something else than was asked for"),
        (web.json_response([1]), ServerError, "something else than was asked for"),
    ],
)
async def test_errors_are_the_sdks_own(faulty, answer, error, message) -> None:
    faulty.answer = lambda asked: answer
    with pytest.raises(error, match=message) as caught:
        await Hub().context("shop").callers("total")
    assert type(caught.value) is error
    if error is NotReady:
        assert caught.value.retry_after_s == (7.0 if caught.value.code == "indexing" else None)


async def test_a_lock_in_a_workspace_that_there_is_not_is_not_found(faulty) -> None:
    faulty.desk.refuse["lock"] = [{"code": "unknown_workspace", "detail": "no such workspace"}]
    async with Hub(name="cursor") as hub:
        with pytest.raises(NotFound, match="no such workspace"):
            await hub.lock("a.py").acquire()


async def test_without_a_gateway(faulty) -> None:
    await faulty.stop()
    with pytest.raises(ConnectionFailed, match=r"does not answer at http.*Is it running\?"):
        await Hub().context().map()


async def test_empty_names_are_the_callers_mistake(faulty) -> None:
    for ask in (lambda: Hub().context(""), lambda: Hub().session("")):
        with pytest.raises(ValueError, match="empty"):
            ask()
    with pytest.raises(ValueError, match="empty"):
        await Hub().context().file("")
    assert faulty.asked == []


async def test_a_blob_is_asked_for_once_and_its_hash_is_looked_at(faulty) -> None:
    content = b"what was found"
    ref = sha256(content).hexdigest()
    faulty.answer = lambda asked: web.Response(body=content, headers={"ETag": f'"{ref}"'})
    hub = Hub()
    assert [await hub.blob(ref) for _ in range(2)] == [content, content]
    assert [asked.address for asked in faulty.asked] == [f"/v1/blobs/{ref}"]
    with pytest.raises(ServerError, match=f"other content for {'0' * 64}: its SHA-256 is {ref}") as caught:
        await hub.blob("0" * 64)
    assert caught.value.code == "wrong_content"
