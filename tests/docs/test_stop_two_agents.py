"""The how-to on locks, done as it is printed: every command once and in order, in a real repository."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess
from wire import call

PAGE = Path(__file__).parents[2] / "docs/how-to/stop-two-agents-editing-one-file.md"
PRINTED_LOCK, PRINTED_TOKEN = "01M8P4HA1W77PYNM5X39VAJPCH", "17"
PATIENCE_S = 30


class Shop:
    """The reader: a repository, a terminal, and what the commands have said."""

    def __init__(self, gateway: GatewayProcess, folder: Path) -> None:
        self.gateway = gateway
        self.folder = folder
        self.lock = self.token = "none yet"
        self.said: dict[str, str] = {}
        """What each command printed, by the command as it stands on the page."""
        self.waiting: subprocess.Popen[str] | None = None

    def theirs(self, text: str) -> str:
        """Put the reader's own address, folder, lock and token into what is printed."""
        text = text.replace("127.0.0.1:8787", f"127.0.0.1:{self.gateway.port}").replace("curl ", "curl -sS ")
        text = text.replace("/path/to/shop", str(self.folder)).replace(PRINTED_LOCK, self.lock)
        return re.sub(rf"(token=|Token: ){PRINTED_TOKEN}\b", rf"\g<1>{self.token}", text)

    def environ(self) -> dict[str, str]:
        dropped = ("_proxy", "herdr_owner", "git_dir", "git_index_file")
        clean = {name: text for name, text in os.environ.items() if not name.lower().endswith(dropped)}
        path = f"{Path(sys.executable).parent}:{clean['PATH']}"
        who = {
            f"GIT_{who}_{what}": "me@shop.example"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        return {**clean, **who, "PATH": path, "HERDR_GATEWAY_URL": self.gateway.url}

    def run(self, command: str, code: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-ec", self.theirs(command)],
            cwd=self.folder,
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == code, done.stdout + done.stderr
        self.said[command] = done.stdout + done.stderr
        return self.said[command]

    def begin(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", f"exec {self.theirs(command)}"],
            env=self.environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def take(self, answer: dict[str, Any]) -> None:
        """Go on with the lock of an answer."""
        self.lock, self.token = str(answer["lock"]), str(answer["token"])


@pytest.fixture
def shop(gateway: GatewayProcess, tmp_path: Path) -> Iterator[Shop]:
    there = Shop(gateway, tmp_path / "shop")
    (there.folder / "src").mkdir(parents=True)
    (there.folder / "src/cart.py").write_text("total = 0\n")
    there.run("git init -q && git add . && git commit -q -m begin")
    yield there
    if there.waiting is not None:
        with there.waiting as waiting:
            waiting.terminate()


def the_only(commands: list[str], text: str) -> str:
    (found,) = (command for command in commands if text in command)
    return found


def listed(shop: Shop) -> Any:
    return call(shop.gateway, "GET", "/v1/locks").json()


def masked(value: Any) -> str:
    """Blank what is another one each time: ids, times, tokens."""
    text = re.sub(r"[0-9A-Z]{26}", "ID", json.dumps(value))
    return re.sub(r'"token": \d+', '"token": N', re.sub(r"[-0-9]{10}T[0-9:.]{12}Z", "TIME", text))


def carry_out(command: str, shop: Shop) -> None:
    if '"wait_s"' in command:
        shop.waiting = shop.begin(command)
        while not listed(shop)["waiting"]:
            pass
    elif "-N" in command:
        with shop.begin(command) as follower:
            assert follower.stdout is not None and follower.stdout.readline().startswith("retry:")
            follower.terminate()
    else:
        shop.run(command)
    if "/v1/workspaces" in command:
        while b'"watching"' not in call(shop.gateway, "GET", "/v1/workspaces").body:
            pass
    if '"owner": "cursor"' in command:
        shop.take(json.loads(shop.said[command]))
    if "DELETE" in command and shop.waiting is not None:
        answer, _ = shop.waiting.communicate(timeout=PATIENCE_S)
        shop.waiting = None
        shop.take(json.loads(answer))
    if "guard install" in command:
        (shop.folder / "src/cart.py").write_text("total = 1\n")
        assert "claude holds" in shop.run("git commit -a -m mine", code=1)


def test_the_how_to_happens_as_it_is_printed(shop: Shop) -> None:
    fences = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    commands, shown = [], {}
    for language, body in fences:
        if language == "sh":
            commands.append(body)
            carry_out(body, shop)
        elif language == "python":
            (shop.folder.parent / "example.py").write_text(body)
            shown[body] = shop.run(f"python {shop.folder.parent}/example.py")
        else:
            shown[commands[-1]] = body

    ours, theirs = (json.loads(shop.said[c]) for c in commands if c in shown)
    printed_ours, printed_theirs = (
        json.loads(text) for command, text in shown.items() if command in commands
    )
    assert masked(ours) == masked(printed_ours)
    assert masked(theirs) == masked(printed_theirs)
    assert [text.split()[0] for text in shown.values() if not text.startswith("{")] == ["editing", "here"]
    assert "cursor" in shop.said[the_only(commands, "/v1/locks/check")]
    assert "refactor" not in shop.said[the_only(commands, "herdr locks\n")]
    assert "claude" in shop.said[the_only(commands, "herdr locks\n")]
    assert shop.run("git log --format=%s").split("\n")[:2] == ["Split the cart", "begin"]
    assert shop.run("git branch --show-current") == "release\n"
    assert listed(shop) == {"locks": [], "waiting": [], "waits": []}
    told = call(shop.gateway, "GET", "/v1/events?as=claude&after=0&type=lock.released").json()["events"]
    assert [event["data"]["reason"] for event in told] == ["claude hangs since 17:00"]
