"""The commands about a project's context, at a real gateway."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from command_line import Cli
from gateway import running_gateway

CART = "from shop.tax import rate\n\n\nclass Cart:\n    def total(self, n: int) -> int:\n        return rate(n)\n"


@pytest.fixture(scope="module")
def herdr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    folder = tmp_path_factory.mktemp("context")
    work = folder / "work"
    (work / "shop").mkdir(parents=True)
    (work / "shop" / "cart.py").write_text(CART)
    (work / "shop" / "tax.py").write_text("def rate(n: int) -> int:\n    return n\n")
    with running_gateway(folder / "data", "--workspace", str(work)) as process:
        yield Cli(process.url, work)


def test_index_map_symbols_and_callers(herdr: Cli) -> None:
    for options in ((), ("--fresh",)):
        done = herdr("index", *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("work: 2 files in ") and "python    2      3" in done.stdout
    mapped = herdr("map", "--focus", "shop/cart.py", "--name", "total")
    assert "    def total(self, n: int) -> int" in mapped.stdout.splitlines()
    assert "symbols in 2 files of work" in mapped.stderr
    found = herdr("symbols", "*", "--path", "shop", "--kind", "function").stdout.splitlines()
    assert [line.split()[:3] for line in found[1:]] == [["shop/tax.py::rate", "1", "function"]]
    callers = herdr("callers", "rate").stdout.splitlines()
    assert callers[-1].split() == ["shop/cart.py::Cart.total", "6", "rate", "exact"]
    callees = herdr("callers", "Cart.total", "--callees").stdout.splitlines()
    assert callees[-1].split() == ["rate", "6", "exact", "shop/tax.py::rate"]


def test_artifacts(herdr: Cli, tmp_path: Path) -> None:
    put = herdr("artifacts", "put", "logs/a b", "--kind", "log_digest", "--ttl", "60", stdin="3 failed")
    assert (put.returncode, put.stderr) == (0, "") and put.stdout.startswith("logs/a b  8 bytes  ")
    assert herdr("artifacts", "get", "logs/a b").stdout == "3 failed"
    assert json.loads(herdr("artifacts", "get", "logs/a b", "--json").stdout)["kind"] == "log_digest"
    listed = herdr("artifacts").stdout.splitlines()
    assert listed[1].split()[:5] == ["logs/a", "b", "log_digest", "8", "bytes"]
    assert herdr("artifacts", "delete", "logs/a b").returncode == 0
    assert herdr("artifacts", "get", "logs/a b").returncode == 1
    with (tmp_path / "big").open("wb") as file:
        file.truncate(40 * 1024**2)
    refused = herdr("artifacts", "put", "big", str(tmp_path / "big"))
    assert refused.returncode == 1 and "larger than" in refused.stderr


def say(herdr: Cli, session: str, **message: object) -> None:
    body = json.dumps({"role": "user", "workspace": "work", **message}).encode()
    address = f"{herdr.url}/v1/sessions/{quote(session)}/messages"
    with urlopen(Request(address, body, {"Content-Type": "application/json"})) as answer:
        assert answer.status == 201


def test_sessions(herdr: Cli) -> None:
    assert herdr("session", "show", "none").returncode == 1
    say(herdr, "fix cart", content="Prices are Decimal from now on, because floats round.")
    say(herdr, "fix cart", content="Go on.")
    shown = herdr("session", "show", "fix cart", "--tokens", "500")
    assert shown.returncode == 0 and "Decimal" in shown.stdout and "2 messages" in shown.stderr
    listed = herdr("session", "list").stdout.splitlines()
    assert listed[1].split()[:4] == ["fix", "cart", "work", "2"]
    said = herdr("session", "messages", "fix cart", "--limit", "1")
    assert "Prices are Decimal from now on" in said.stdout.splitlines()[1]
    after = said.stderr.split()[-1]
    assert herdr("session", "messages", "fix cart", "--after", after).stdout.endswith("Go on.\n")
    assert herdr("session", "delete", "fix cart").returncode == 0
    assert "there are no sessions" in herdr("session", "list").stderr


def test_a_snapshot_out_in_and_shown(herdr: Cli, tmp_path: Path) -> None:
    file = str(tmp_path / "work.herdr")
    assert herdr("snapshot", "export", file).returncode == 0
    assert "2 files, 2 as in the snapshot, 0 parsed" in herdr("snapshot", "import", file).stdout
    shown = herdr("snapshot", "show", file)
    assert (shown.returncode, shown.stdout.splitlines()[1]) == (0, "of         work")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(300 * 1024**2)
    refused = herdr("snapshot", "import", str(tmp_path / "huge"))
    assert refused.returncode == 1 and "268435456 bytes" in refused.stderr
