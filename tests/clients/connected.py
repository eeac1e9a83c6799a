"""Runs real AI tools that `herdr connect` has connected, in a real repository, and prints what held.

The model's part is a script on loopback: it makes the calls that the prompt names (`<<call NAME {…}>>`), one a
turn, and says when it is done. Everything else is real: the tool, its hooks, its MCP client, the gateway.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fake_llama import FakeLlama, Script, Tool
from gateway import GatewayProcess
from git_repo import Repo
from model_gateway import model_gateway
from wire import all_events, call, wait_until

from clients.prompter import text_of

Json = dict[str, Any]
RUN_MAX_S = 180.0
HOLDER, WHY = "cursor/refactor", "renames total()"
FILE = "shop.py"
BEFORE, AFTER = "def total(cart):\n    return 0\n", "def total(cart):\n    return 1\n"
CUE = re.compile(r"<<call (\S+) ")


class Client(NamedTuple):
    """One tool: how it is run without a terminal, and what its calls are named."""

    name: str
    program: str
    arguments: Callable[[str], tuple[str, ...]]
    """For a prompt."""
    environ: Mapping[str, str]
    read: Callable[[Path], str]
    """The cues of calls: read a file, change it, find a symbol over MCP."""
    edit: Callable[[Path], str]
    find: str
    mcp: str
    """What the names of our tools begin with."""


def cue(tool: str, /, **arguments: Any) -> str:
    """Return what makes the model call a tool."""
    return f"<<call {tool} {json.dumps(arguments)}>>"


CLAUDE = Client(
    "claude-code",
    "claude",
    lambda prompt: (
        *("-p", "--permission-mode", "acceptEdits", "--allowedTools", "mcp__herdr__*"),
        *("mcp__herdr__find_symbol", "--", prompt),
    ),
    {"ANTHROPIC_API_KEY": "local", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    lambda path: cue("Read", file_path=str(path)),
    lambda path: cue("Edit", file_path=str(path), old_string="return 0", new_string="return 1"),
    # It loads the descriptions of such tools when they are looked for
    f"{cue('mcp__herdr__find_symbol', name='total')} {cue('ToolSearch', query='herdr', max_results=20)}",
    "mcp__herdr__",
)
OPENCODE = Client(
    "opencode",
    "opencode",
    lambda prompt: ("run", prompt),
    {},
    lambda path: cue("read", filePath=str(path)),
    lambda path: cue("edit", filePath=str(path), oldString="return 0", newString="return 1"),
    cue("herdr_find_symbol", name="total"),
    "herdr_",
)
CLIENTS = {client.name: client for client in (CLAUDE, OPENCODE)}


def scripted(body: Json) -> Script:
    """Answer with the next call that the last prompt names, or with a word when all were made."""
    messages = body["messages"]
    prompts = [n for n, m in enumerate(messages) if m["role"] == "user" and CUE.search(_text(m))]
    if not prompts or not body.get("tools"):
        return Script(["A title"])
    text = _text(messages[prompts[-1]])
    done = sum(message["role"] == "tool" for message in messages[prompts[-1] :])
    cues = list(CUE.finditer(text))
    if done >= len(cues):
        return Script(["Done."])
    wanted = cues[done]
    arguments = json.dumps(json.JSONDecoder().raw_decode(text[wanted.end() :])[0])
    return Script([Tool(0, f"call_{len(messages)}_{done}", wanted[1], arguments)])


def _text(message: Json) -> str:
    text = text_of(message)
    return text.replace('\\"', '"') if '{\\"' in text else text  # opencode puts prompts in quotes


class Run:
    """One client in a repository of its own."""

    def __init__(self, client: Client, programs: Path, folder: Path) -> None:
        self.failed = 0
        self._client = client
        self._programs = programs
        self._home = folder / "home"
        self._work = folder / "work"
        self._folder = folder
        self._seen: list[Json] = []

    def note(self, what: str, held: object, detail: object = "") -> None:
        """Print a line of the table."""
        self.failed += not held
        shown = " ".join(str(detail).split())[-100 if held else -1500 :]
        print(f"{self._client.name:<12} {what:<62} {'yes' if held else 'NO':<4} {shown}", flush=True)

    def check(self) -> None:
        """Connect it, and go through what happens when somebody else holds the file."""
        self._home.mkdir(parents=True)
        self._work.mkdir()
        (self._work / FILE).write_text(BEFORE)
        more = {"workspaces": [{"name": "shop", "path": str(self._work)}]}
        with FakeLlama(4, 1_000_000) as fake:
            fake.script(self._answer)
            (self._folder / "gateway").mkdir()
            with model_gateway(self._folder / "gateway", {"local": fake}, more=more) as gateway:
                repo = Repo(self._work, gateway.url, HOME=str(self._home))
                repo.git("init", "-q")
                self._connect(repo)
                self._locked(gateway)
                self._released(gateway)
                self._over_mcp()
                self._disconnect(repo)

    def _answer(self, body: Json) -> Script:
        self._seen.append(body)
        return scripted(body)

    def _connect(self, repo: Repo) -> None:
        self._before = self._files()
        done = repo.run("herdr", "connect", self._client.name, "--project", "--model")
        self.note("herdr connect writes its configuration", done.returncode == 0, done.stderr.strip()[-300:])
        self.note("and says what it changes", "+" in done.stdout + done.stderr)

    def _disconnect(self, repo: Repo) -> None:
        done = repo.run("herdr", "connect", self._client.name, "--project", "--undo")
        now = {name: data for name, data in self._files().items() if name in self._before}
        self.note(
            "herdr connect --undo leaves no trace", done.returncode == 0 and now == self._before, done.stderr
        )

    def _files(self) -> dict[str, bytes]:
        """Return the files of the repository that a tool's configuration may be in."""
        hidden = [p for p in self._work.rglob("*") if p.is_file() and ".git/" not in str(p)]
        return {str(p.relative_to(self._work)): p.read_bytes() for p in hidden if p.name != FILE}

    def _run(self, prompt: str) -> "subprocess.CompletedProcess[str]":
        self._seen.clear()
        environ = {"PATH": os.environ["PATH"], "HOME": str(self._home), **self._client.environ}
        command = [str(self._programs / self._client.program), *self._client.arguments(prompt)]
        return subprocess.run(
            command,
            cwd=self._work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_MAX_S,
        )

    def _heard(self) -> str:
        """Return what the model was told of its calls."""
        messages = self._seen[-1]["messages"] if self._seen else []
        return "\n".join(_text(message) for message in messages if message["role"] == "tool")

    def _locked(self, gateway: GatewayProcess) -> None:
        body = {"paths": [FILE], "owner": HOLDER, "workspace": "shop", "purpose": WHY, "ttl_s": 600}
        self._lock = call(gateway, "POST", "/v1/locks", body).json()
        path = self._work / FILE
        done = self._run(f"Change it. {self._client.read(path)} {self._client.edit(path)}")
        self.note("answers", done.returncode == 0, (done.stdout + done.stderr)[-300:].strip())
        said = self._heard()
        self.note(
            "its edit of a locked file is denied with the holder's name", HOLDER in said and WHY in said, said
        )
        self.note("and the file is as it was", path.read_text() == BEFORE)
        prompts = [e for e in all_events(gateway) if e["type"] == "user.message"]
        self.note(
            "its prompt is a P0 event",
            [e["priority"] for e in prompts] == ["P0"],
            [e["source"] for e in prompts],
        )

    def _released(self, gateway: GatewayProcess) -> None:
        path, lock = self._work / FILE, self._lock
        call(gateway, "DELETE", f"/v1/locks/{lock['lock']}", {"token": lock["token"]})
        done = self._run(f"Change it. {self._client.read(path)} {self._client.edit(path)}")
        self.note(
            "its edit goes through after the release", path.read_text() == AFTER, self._heard() + done.stderr
        )
        wait_until(
            lambda: self._told(gateway), "the edit on the bus"
        )  # it is held back for a moment, for more edits
        ours = self._told(gateway)
        self.note("and is on the bus with its session", ours and ours[-1].get("session"), ours[-1:])
        stale = call(
            gateway,
            "POST",
            "/v1/events",
            {
                "type": "change.planned",
                "source": "x",
                "workspace": "shop",
                "subject": FILE,
                "based_on": self._lock["token"],
            },
        )
        version = stale.json().get("conflict", {})
        self.note(
            "and with a version that others' work is held to",
            ours and version.get("seq") == ours[-1]["seq"],
            stale.json(),
        )
        held = call(gateway, "GET", "/v1/locks").json()["locks"]
        self.note("and its own lock is given back", held == [], held)

    def _told(self, gateway: GatewayProcess) -> list[Json]:
        """Return what it has reported of its edits."""
        events = all_events(gateway, "type=file.changed")
        return [event for event in events if event["source"].startswith(self._client.name)]

    def _over_mcp(self) -> None:
        self._run(f"Find it. {self._client.find}")
        # As tools, or by name where it loads their descriptions later
        ours = sorted(set(re.findall(rf"\b{self._client.mcp}[a-z_]+", json.dumps(self._seen))))
        self.note("its MCP connection lists our tools", len(ours) == 12, ours)
        said = self._heard()
        self.note("and calls one of them", f"{FILE}" in said and "total" in said, said)


def main() -> int:
    """Run the checks; returns 1 when one did not hold."""
    parser = argparse.ArgumentParser(prog="check-connected", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the clients' programs")
    parser.add_argument("--only", choices=sorted(CLIENTS), action="append", help="repeatable")
    args = parser.parse_args()
    failed = 0
    for name in args.only or CLIENTS:
        with tempfile.TemporaryDirectory(prefix="check-connected-", ignore_cleanup_errors=True) as folder:
            run = Run(CLIENTS[name], args.programs.absolute(), Path(folder))
            run.check()
            failed += run.failed
    print(f"{failed} did not hold" if failed else "all held")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
