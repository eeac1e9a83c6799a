"""What is known of a project, against a real gateway process."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdr_sdk import Hub, NotFound, ServerError, blocking

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from gateway import GatewayProcess, running_gateway

CART = """\
from shop.tax import rate


class Cart:
    def total(self, n: int) -> int:
        return n + rate(n)
"""
TAX = "def rate(n: int) -> int:\n    return n\n"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("context")
    (folder / "work" / "shop").mkdir(parents=True)
    (folder / "work" / "shop" / "cart.py").write_text(CART)
    (folder / "work" / "shop" / "tax.py").write_text(TAX)
    with running_gateway(folder / "data", "--workspace", str(folder / "work")) as process:
        yield process


@pytest.fixture
def gateway(process: GatewayProcess, monkeypatch: pytest.MonkeyPatch) -> GatewayProcess:
    monkeypatch.delenv("HERDR_GATEWAY_TOKEN", raising=False)
    monkeypatch.setenv("HERDR_GATEWAY_URL", process.url)
    return process


async def test_one_project_seen_from_all_sides(gateway) -> None:
    context = Hub().context("work")
    found = await context.map(tokens=512, focus="shop/cart.py", names="total")
    assert "def total(self, n: int) -> int" in found.text
    assert 0 < found.tokens <= 512 and found.tokenizer and len(found.ref) == 64
    again = await context.map(tokens=512, focus="shop/cart.py", names="total")
    assert (again.unchanged, again.text) == (True, found.text)
    [total] = (await context.symbols("Cart.total")).symbols
    assert (total.symbol, total.line, total.kind) == ("shop/cart.py::Cart.total", 5, "method")
    [caller] = (await context.callers("shop/tax.py::rate")).callers
    assert (caller.symbol, caller.lines, caller.resolution) == ("shop/cart.py::Cart.total", (6,), "exact")
    [callee] = (await context.callees("Cart.total")).callees
    assert [target.symbol for target in callee.targets] == ["shop/tax.py::rate"]
    outline = await context.file("shop/tax.py")
    assert (outline.importers, outline.language, outline.symbols[0].name) == (
        ("shop/cart.py",),
        "python",
        "rate",
    )
    [dependent] = (await context.dependents("shop/tax.py", depth=2)).dependents
    assert (dependent.path, dependent.distance) == ("shop/cart.py", 1)
    manifest = await context.manifest()
    assert (manifest.workspace, manifest.graph.languages["python"].files) == ("work", 2)
    assert (await context.skipped()).skipped == ()
    assert (await context.index(fresh=True)).state in ("indexing", "ready")
    assert (await context.symbols("rate")).symbols[0].path == "shop/tax.py"


async def test_a_change_that_was_reported_is_in_the_next_answer(gateway, process) -> None:
    folder = process.data.parent / "work" / "shop"
    async with Hub(name="tool-a") as hub:
        context = hub.context("work")
        await context.file("shop/tax.py")
        await asyncio.to_thread(
            (folder / "late.py").write_text, "from shop.tax import rate\n\nlate = rate(1)\n"
        )
        await hub.publish("change.created", subject="shop/late.py", workspace="work")
        outline = await context.file("shop/tax.py")
        assert (outline.importers, outline.unchanged) == (("shop/cart.py", "shop/late.py"), False)
        await asyncio.to_thread((folder / "late.py").unlink)
        await hub.publish("change.deleted", subject="shop/late.py", workspace="work")
        assert (await context.file("shop/tax.py")).importers == ("shop/cart.py",)


async def test_a_hash_is_never_that_of_an_older_file(gateway, process) -> None:
    file = process.data.parent / "work" / "shop" / "tax.py"
    async with Hub(name="tool-a") as hub:
        context = hub.context("work")
        before = await context.file("shop/tax.py")
        await asyncio.to_thread(file.write_text, TAX.replace("return n", "return 2 * n"))
        await hub.publish("change.modified", subject="shop/tax.py", workspace="work")
        after = await context.file("shop/tax.py")
        assert (after.text, after.unchanged) == (before.text, True)
        assert after.hash != before.hash


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "shop/../../x"])
async def test_paths_that_lead_out(gateway, path) -> None:
    with pytest.raises(ServerError) as caught:
        await Hub().context("work").file(path)
    assert caught.value.code == "bad_path"


async def test_what_there_is_not(gateway) -> None:
    hub = Hub()
    for ask, code in (
        (hub.context("none").symbols("x"), "unknown_workspace"),
        (hub.context("work").file("none.py"), "unknown_file"),
        (hub.context("work").callers("none"), "unknown_symbol"),
        (hub.session("none").messages(), "unknown_session"),
        (hub.artifacts.get("none"), "unknown_artifact"),
        (hub.blob("0" * 64), "unknown_blob"),
    ):
        with pytest.raises(NotFound) as caught:
            await ask
        assert caught.value.code == code


@pytest.mark.parametrize("content", [b"", b"no line break", bytes(range(256)) * 8192])
async def test_artifacts_are_kept_byte_for_byte(gateway, content) -> None:
    artifacts = Hub().artifacts
    stored = await artifacts.put("a/b c?", content, kind="patch", ttl_s=60, workspace="work", based_on=17)
    assert (stored.bytes, stored.kind, stored.based_on) == (len(content), "patch", "17")
    assert [await artifacts.get("a/b c?", workspace="work") for _ in range(2)] == [content, content]
    assert await Hub().blob(stored.ref) == content
    assert [one.name for one in (await artifacts.list(workspace="work")).artifacts] == ["a/b c?"]
    await artifacts.delete("a/b c?", workspace="work")
    with pytest.raises(NotFound):
        await artifacts.describe("a/b c?", workspace="work")


async def test_what_is_too_large_is_refused_and_says_so(gateway) -> None:
    with pytest.raises(ServerError) as caught:
        await Hub().artifacts.put("big", bytes(40 * 1024 * 1024))
    assert caught.value.code in ("artifact_too_large", "too_large")


async def test_a_session_of_two_tools(gateway) -> None:
    ours, theirs = Hub().session("fix cart", "work"), Hub().session("fix cart", "work")
    first = await ours.say(
        "user", "Prices are Decimal from now on, because floats round.", files=["shop/cart.py"]
    )
    assert first.stored
    again = await theirs.say("user", "Prices are Decimal from now on, because floats round.", id=first.id)
    assert (again.status, again.seq) == ("duplicate", first.seq)
    await theirs.record([{"role": "tool", "tool": "pytest", "content": f"{n} passed"} for n in range(3)])
    page = await ours.messages(limit=2)
    assert (page.total, page.more, page.messages[0].files) == (4, True, ("shop/cart.py",))
    window = await theirs.window()
    assert (window.messages, window.unchanged) == (4, False)
    assert "Decimal" in window.text and window.tokens <= 2048
    assert (await theirs.window()).unchanged
    [listed] = (await Hub().sessions(workspace="work")).sessions
    assert (listed.session, listed.messages) == ("fix cart", 4)
    await ours.delete()
    with pytest.raises(NotFound):
        await ours.window()


def test_a_snapshot_out_and_in(gateway, tmp_path) -> None:
    with blocking.Hub() as hub:
        size = hub.snapshots.export("work", tmp_path / "x")
        assert size == (tmp_path / "x").stat().st_size
        report = hub.snapshots.import_("work", tmp_path / "x")
        assert (report.files, report.reused, report.parsed) == (2, 2, 0)
        (tmp_path / "y").write_bytes((tmp_path / "x").read_bytes()[:-9])
        with pytest.raises(ServerError) as caught:
            hub.snapshots.import_("work", tmp_path / "y")
        assert caught.value.code == "snapshot_damaged"
