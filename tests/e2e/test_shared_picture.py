"""The accident that the shared picture is for: one tool changes a signature while another writes a caller of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.test_accidents import tools
from gateway import GatewayProcess, running_gateway
from graphs import WS, graph, watching


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / WS
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "cart.py").write_text("def total(items):\n    return sum(items)\n")
    (folder / "shop" / "till.py").write_text(
        "from shop.cart import total\n\ndef bill(items):\n    return total(items)\n"
    )
    return folder


@pytest.fixture
def gateway(tmp_path: Path, tree: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data", *watching(tree)) as process:
        graph(process)
        yield process


def test_a_tool_that_writes_a_caller_knows_the_new_signature(gateway: GatewayProcess, tree: Path) -> None:
    editor = f"""
    import pathlib
    async with Hub(name="editor") as hub:
        say("ready")
        await line()
        pathlib.Path({str(tree / "shop" / "cart.py")!r}).write_text("def total(items, currency):\\n    return 0\\n")
        await hub.publish("file.changed", subject="shop/cart.py", workspace={WS!r})
        say("changed")
        await line()
    """
    writer = f"""
    async with Hub(name="writer") as hub, hub.follow(type="context.changed") as changes:
        say("ready")
        await line()
        found = await hub.context({WS!r}).callers("shop/cart.py::total")
        say(found.definitions[0].signature)
        say(*[caller.path + ":" + str(caller.lines[0]) + " " + caller.resolution for caller in found.callers])
        async for event in changes:
            [signature] = event.data["signatures"]
            say(signature["old"], "->", signature["new"], *signature["callers"])
            break
    """
    with tools(gateway, writer, editor) as (b, a):
        assert (b.hear(), a.hear()) == ("ready", "ready")
        a.go_on()
        assert a.hear() == "changed"
        b.go_on()
        assert b.hear() == "def total(items, currency)", "asked right after the other's report"
        assert b.hear() == "shop/till.py:4 exact"
        assert b.hear() == "def total(items) -> def total(items, currency) shop/till.py", (
            "told without asking"
        )
        a.go_on()
