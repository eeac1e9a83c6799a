"""Writes under somebody else's lock, seen on a real disk or reported by a tool that did not ask."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import Stream, accept, all_events, call, wait_until


class Shop:
    """A watched folder and its gateway."""

    def __init__(self, gateway: GatewayProcess, folder: Path) -> None:
        self.gateway = gateway
        self.folder = folder

    def lock(self, *paths: str, **more: Any) -> dict[str, Any]:
        body = {"paths": paths, "owner": "cursor", "workspace": "shop", **more}
        answer = call(self.gateway, "POST", "/v1/locks", body)
        assert answer.status == 201, answer.json()
        return dict(answer.json())

    def report(self, path: str, source: str, hash_: str | None) -> None:
        data = {} if hash_ is None else {"hash": hash_}
        accept(
            self.gateway,
            type="file.changed",
            subject=path,
            workspace="shop",
            source=source,
            data=data,
            priority="P0",
        )

    def sed(self, path: str, text: str) -> None:
        """Write as a shell command of somebody would, in another process."""
        subprocess.run([sys.executable, "-c", "import sys; open(*sys.argv[1:2], 'w').write(sys.argv[2])",
                        str(self.folder / path), text], check=True)  # fmt: skip

    def conflicts(self) -> list[dict[str, Any]]:
        return [event["data"] for event in all_events(self.gateway, "type=conflict.detected")]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text("1\n")
    config = tmp_path / "herdr.yaml"
    config.write_text(
        f"workspaces: [{{name: shop, path: {folder}}}]\nbus: {{debounce_ms: 50, p2_per_s: 0}}\n"
    )
    with running_gateway(tmp_path / "data", "--config", str(config)) as gateway:
        yield Shop(gateway, folder)


def sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_a_write_that_the_holder_reports_is_its_own(shop: Shop) -> None:
    """And one that it does not report is found: the control that the first was looked at."""
    shop.lock("a.py", "b.py")
    with Stream(shop.gateway, "type=conflict.detected") as stream:
        stream.start()
        shop.report("a.py", "cursor", sha256("mine\n"))
        shop.sed("a.py", "mine\n")
        shop.sed("b.py", "not mine\n")
        found = stream.next().json()
    assert [finding["paths"] for finding in shop.conflicts()] == [["b.py"]]
    data = found["data"]
    assert (data["by"], data["status"], data["hash"]) == ("unknown", "unlocked", sha256("not mine\n"))
    assert data["holder"]["owner"] == "cursor" and found["priority"] == "P0"


def test_who_reports_the_content_later_is_named_to_both(shop: Shop) -> None:
    shop.lock("a.py")
    with Stream(shop.gateway, "as=cursor") as holder, Stream(shop.gateway, "as=codex") as writer:
        shop.sed("a.py", "by a shell\n")
        assert holder.next().json()["data"]["by"] == "unknown"
        shop.report("a.py", "codex", sha256("by a shell\n"))
        for stream in (holder, writer):
            assert stream.next().json()["data"]["by"] == "codex"


def test_who_says_that_it_wrote_under_anothers_lock_is_told_at_once(shop: Shop) -> None:
    shop.lock("src/")
    with Stream(shop.gateway, "as=codex") as writer:
        shop.report("src/new.py", "codex", None)
        data = writer.next().json()["data"]
    assert (data["by"], data["subject"], data["holder"]["owner"]) == ("codex", "src/new.py", "cursor")


def test_a_holder_that_reports_nothing_has_said_so(shop: Shop) -> None:
    shop.lock("a.py", reports=False)
    shop.lock("b.py")
    shop.sed("a.py", "anything\n")
    shop.sed("b.py", "found\n")
    wait_until(lambda: len(shop.conflicts()) > 0, "the finding")
    assert [finding["paths"] for finding in shop.conflicts()] == [["b.py"]]
