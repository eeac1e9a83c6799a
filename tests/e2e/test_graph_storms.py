"""Whatever storms over the files, the graph ends equal to one of a gateway that never saw the storm."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from gateway import GatewayProcess, running_gateway
from graphs import WS, ask, graph, names, watching
from wire import wait_until


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "gc.auto=0")
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True)


def source(number: int, word: str) -> str:
    called = "f" if number % 3 else f"{word}_{number - 1}"
    return f"from pkg.base import f\n\n\ndef {word}_{number}(a):\n    return {called}(a)\n"


def write_all(folder: Path, count: int, word: str) -> None:
    (folder / "pkg").mkdir(exist_ok=True)
    (folder / "pkg" / "base.py").write_text("def f(a):\n    return a\n")
    for number in range(count):
        file = folder / "pkg" / f"d{number % 40}" / f"m{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source(number, word))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / WS
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


@pytest.fixture
def gateway(tmp_path: Path, tree: Path) -> Iterator[GatewayProcess]:
    write_all(tree, 20, "before")
    with running_gateway(tmp_path / "data", *watching(tree)) as process:
        graph(process)
        yield process


def equals_fresh(gateway: GatewayProcess, tree: Path, tmp_path: Path) -> None:
    with running_gateway(tmp_path / "fresh", "--workspace", str(tree)) as other:
        wanted = graph(other)
        wait_until(lambda: graph(gateway)["version"] == wanted["version"], "the graph to equal a fresh one")
        found = graph(gateway)
        for count in ("files", "parsed", "symbols", "calls", "imports", "languages", "skipped"):
            assert found[count] == wanted[count], count
        assert ask(gateway, "callers", symbol="f", limit=1000) == ask(
            other, "callers", symbol="f", limit=1000
        )


def branch_switch(gateway: GatewayProcess, tree: Path, count: int) -> None:
    write_all(tree, count, "one")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "one")
    git(tree, "checkout", "-qb", "two")
    write_all(tree, count, "two")
    for number in range(0, count, 3):
        (tree / "pkg" / f"d{number % 40}" / f"m{number}.py").unlink()
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "two")
    wait_until(lambda: bool(names(gateway, "two_1")), "the files")
    git(tree, "checkout", "-q", "main")


def node_modules(gateway: GatewayProcess, tree: Path, count: int) -> None:
    (tree / ".gitignore").write_text("node_modules/\n")
    (tree / "index.js").write_text("function own() {}\n")
    for number in range(count):
        package = tree / "node_modules" / f"p{number % 200}"
        package.mkdir(parents=True, exist_ok=True)
        (package / f"i{number}.js").write_text("function theirs() {}\n")
    wait_until(lambda: names(gateway, "theirs") == [], "what is ignored to be out")


def overflow(gateway: GatewayProcess, tree: Path, count: int) -> None:
    """More notices than the kernel's queue holds, while nobody reads them: most are lost without a word."""
    gateway.pause()
    try:
        for number in range(count):
            folder = tree / f"new{number // 500}"
            folder.mkdir(exist_ok=True)
            (folder / f"n{number}.py").write_text(f"def n_{number}(): pass\n")
    finally:
        gateway.resume()


def rename_storm(gateway: GatewayProcess, tree: Path, count: int) -> None:
    write_all(tree, count, "moving")
    for round_ in range(6):
        for number in range(40):
            old = tree / "pkg" / f"d{number}{'x' * round_}"
            os.rename(old, old.with_name(f"d{number}{'x' * (round_ + 1)}"))
            Event().wait(0.001)  # so that the watcher meets them half-way


@pytest.mark.parametrize(
    ("storm", "count"),
    [(branch_switch, 400), (node_modules, 2000), (overflow, 7000), (rename_storm, 200)],
)
def test_a_storm_ends_in_a_graph_equal_to_a_fresh_one(
    gateway: GatewayProcess, tree: Path, tmp_path: Path, storm: object, count: int
) -> None:
    assert callable(storm)
    storm(gateway, tree, count)
    equals_fresh(gateway, tree, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("storm", "count"),
    [(branch_switch, 3000), (node_modules, 16_000), (overflow, 30_000), (rename_storm, 2000)],
)
def test_a_large_storm_ends_in_a_graph_equal_to_a_fresh_one(
    gateway: GatewayProcess, tree: Path, tmp_path: Path, storm: object, count: int
) -> None:
    assert callable(storm)
    storm(gateway, tree, count)
    equals_fresh(gateway, tree, tmp_path)
