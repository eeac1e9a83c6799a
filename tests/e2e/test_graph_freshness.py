"""Whoever asks the graph gets what was reported or written before, without waiting for anybody's window."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway import GatewayProcess, running_gateway
from graphs import WS, ask, fresh_version, graph, manifest, names, watching
from wire import call, post, wait_until


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / WS
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "cart.py").write_text("class Cart:\n    def total(self):\n        return 0\n")
    (folder / "shop" / "till.py").write_text(
        "from shop.cart import Cart\n\ndef bill(cart):\n    return Cart().total()\n"
    )
    return folder


@pytest.fixture
def gateway(tmp_path: Path, tree: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data", *watching(tree)) as process:
        graph(process)
        yield process


def report(gateway: GatewayProcess, path: str) -> None:
    event = {"type": "file.changed", "source": "editor", "subject": path, "workspace": WS}
    assert post(gateway, event).status == 202  # the event itself waits for a window


def test_a_reported_change_is_read_before_the_next_answer(gateway: GatewayProcess, tree: Path) -> None:
    for number in range(20):
        (tree / "shop" / "cart.py").write_text(f"def total_{number}(): pass\n")
        report(gateway, "shop/cart.py")
        assert names(gateway, "total_*") == [f"shop/cart.py::total_{number}"]


def test_a_reported_new_file_is_there(gateway: GatewayProcess, tree: Path) -> None:
    (tree / "shop" / "tax.py").write_text("def vat(): pass\n")
    report(gateway, "shop/tax.py")
    assert names(gateway, "vat") == ["shop/tax.py::vat"]


def test_a_reported_deletion_is_gone(gateway: GatewayProcess, tree: Path) -> None:
    (tree / "shop" / "cart.py").unlink()
    report(gateway, "shop/cart.py")
    assert names(gateway, "Cart") == []
    callers = ask(gateway, "callees", symbol="shop/till.py::bill")["callees"]
    assert {found["resolution"] for found in callers} == {"external"}


def test_a_change_that_nobody_reports_is_found(gateway: GatewayProcess, tree: Path) -> None:
    (tree / "shop" / "new.py").write_text("def fresh(): pass\n")
    wait_until(lambda: names(gateway, "fresh") == ["shop/new.py::fresh"], "the new file")
    os.rename(tree / "shop" / "new.py", tree / "shop" / "moved.py")
    wait_until(lambda: names(gateway, "fresh") == ["shop/moved.py::fresh"], "the new name")


@pytest.mark.parametrize(
    "path", ["../outside.py", "shop/../../outside.py", "/etc/passwd", "shop//cart.py", "./a.py", ""]
)
def test_a_report_about_a_path_outside_reads_nothing_there(
    gateway: GatewayProcess, tree: Path, path: str
) -> None:
    (tree.parent / "outside.py").write_text("def secret(): pass\n")
    before = graph(gateway)["version"]
    event = {"type": "file.changed", "source": "x", "subject": path or None, "workspace": WS}
    assert post(gateway, event).status in (200, 202)
    assert names(gateway, "secret") == []
    assert graph(gateway)["version"] == before


def test_a_link_out_of_the_workspace_is_not_followed(gateway: GatewayProcess, tree: Path) -> None:
    (tree.parent / "outside.py").write_text("def secret(): pass\n")
    (tree / "link.py").symlink_to(tree.parent / "outside.py")
    (tree / "folder").symlink_to(tree.parent)
    report(gateway, "link.py")
    report(gateway, "folder/outside.py")
    assert names(gateway, "secret") == []


def test_rules_that_begin_to_ignore_a_file_take_it_out_and_back(tmp_path: Path, tree: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        graph(gateway)
        assert names(gateway, "Cart") == ["shop/cart.py::Cart"]
        (tree / ".gitignore").write_text("cart.py\n")
        wait_until(lambda: names(gateway, "Cart") == [], "the file to leave")
        (tree / ".gitignore").unlink()
        wait_until(lambda: names(gateway, "Cart") == ["shop/cart.py::Cart"], "the file to come back")


def test_a_restart_keeps_the_graph_and_finds_what_changed_meanwhile(tmp_path: Path, tree: Path) -> None:
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        version = graph(gateway)["version"]
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        again = graph(gateway)
        assert again["version"] == version
        assert (again["last_pass"]["parsed"], again["last_pass"]["same"]) == (0, 0), "nothing had to be read"
        gateway.kill()
    (tree / "shop" / "cart.py").write_text("def other(): pass\n")
    (tree / "shop" / "till.py").unlink()
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        graph(gateway)
        assert names(gateway, "*") == ["shop/cart.py::other"]


def test_an_index_anew_parses_everything_and_equals_the_old_one(gateway: GatewayProcess) -> None:
    before = graph(gateway)
    answer = call(gateway, "POST", f"/v1/context/{WS}/index", {"fresh": True})
    assert answer.status == 202
    after = graph(gateway)
    assert after["last_pass"]["parsed"] == 2
    assert {**after, "last_pass": 0, "verified": ""} == {**before, "last_pass": 0, "verified": ""}


def test_an_indexer_that_is_killed_comes_back(gateway: GatewayProcess, tree: Path) -> None:
    version = graph(gateway)["version"]
    children = subprocess.run(
        ["pgrep", "-P", str(gateway.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(children) == 1
    os.kill(int(children[0]), 9)

    def is_back() -> bool:
        return call(gateway, "GET", f"/v1/context/{WS}/graph/symbols?name=Cart").status == 200

    wait_until(lambda: manifest(gateway)["graph"]["state"] != "ready" or is_back(), "the end of the indexer")
    wait_until(is_back, "another indexer")
    assert graph(gateway)["version"] == version
    (tree / "shop" / "tax.py").write_text("def vat(): pass\n")
    report(gateway, "shop/tax.py")
    assert names(gateway, "vat") == ["shop/tax.py::vat"]


def test_a_workspace_that_disappears_is_said_and_comes_back(gateway: GatewayProcess, tree: Path) -> None:
    away = tree.with_name("away")
    os.rename(tree, away)

    def lost() -> bool:
        answer = call(gateway, "GET", f"/v1/context/{WS}/graph/symbols?name=Cart")
        return answer.status == 503 and answer.json()["code"] == "workspace_lost"

    wait_until(lost, "the loss")
    assert manifest(gateway)["graph"]["state"] == "lost"
    assert call(gateway, "GET", "/v1/artifacts").status == 200, "the rest goes on"
    os.rename(away, tree)
    wait_until(lambda: manifest(gateway)["graph"]["state"] == "ready", "the folder")
    assert names(gateway, "Cart") == ["shop/cart.py::Cart"]


def test_what_the_bus_carries_names_the_change_and_the_callers(gateway: GatewayProcess, tree: Path) -> None:
    (tree / "shop" / "cart.py").write_text("class Cart:\n    def total(self, currency):\n        return 0\n")
    report(gateway, "shop/cart.py")
    names(gateway, "Cart")

    def events() -> list[dict[str, object]]:
        page = call(gateway, "GET", "/v1/events?type=context.changed&after=0").json()
        return [event["data"] for event in page["events"]]

    wait_until(lambda: len(events()) == 1, "the event")
    (told,) = events()
    assert told["files"] == [
        {
            "path": "shop/cart.py",
            "hash": told["files"][0]["hash"],  # type: ignore[index]
            "change": "changed",
            "added": 0,
            "removed": 0,
            "changed": 1,
        }
    ]
    assert told["signatures"] == [
        {
            "symbol": "shop/cart.py::Cart.total",
            "old": "def total(self)",
            "new": "def total(self, currency)",
            "callers": ["shop/till.py"],
            "more": 0,
        }
    ]
    assert told["version"] == graph(gateway)["version"]


def test_the_graph_equals_that_of_a_gateway_which_never_saw_the_folder(
    gateway: GatewayProcess, tree: Path, tmp_path: Path
) -> None:
    (tree / "shop" / "cart.py").write_text("def other(): pass\n")
    report(gateway, "shop/cart.py")
    names(gateway, "x")
    assert graph(gateway)["version"] == fresh_version(tree, tmp_path / "other")["version"]
