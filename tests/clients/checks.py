"""What is checked of each client, and the table of what held."""

import asyncio
import json
import os
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from gateway import GatewayProcess
from wire import call

from clients.prompter import Prompter
from clients.recipes import FILE, INSIDE, RECIPES, Recipe, claude_code

Row = dict[str, Any]
TURN_MAX_S = 1200.0  # a prompt of 14,000 tokens on a busy machine takes ten minutes


class Done(NamedTuple):
    """One run of a client."""

    code: int
    said: str
    errors: str
    rows: list[Row]
    """The calls that it made, oldest first."""
    seconds: float


class Checks:
    """Runs the clients and notes what held."""

    def __init__(
        self, gateway: GatewayProcess, prompter: Prompter, programs: Path, folder: Path, whole: bool
    ) -> None:
        self.failed = 0
        self._gateway = gateway
        self._prompter = prompter
        self._programs = programs
        self._folder = folder
        self._whole = whole

    def note(self, client: str, what: str, held: bool, detail: object) -> None:
        """Print a line of the table."""
        self.failed += not held
        print(f"{client:<12} {what:<42} {'yes' if held else 'NO':<4} {detail}", flush=True)

    async def client(self, name: str) -> None:
        """Two turns of one client, and a third in which it runs a tool."""
        recipe = self._settled(name, whole=self._whole)
        first = await self._run(name, recipe, "Say hello.", again=False)
        agent = recipe.agent(first.said + first.errors)
        self._note_answer(name, "answers", first)
        agents = {row["agent"] for row in first.rows}
        self.note(name, "is known by its own name", all(re.fullmatch(agent, a) for a in agents), agents)
        expected = recipe.keeps, recipe.kinds
        second = await self._run(name, recipe, "Say goodbye.", again=True)
        self._note_answer(name, "goes on", second)
        self._note_cache(name, "finds its first turn in its slot", first.rows, second.rows, *expected)
        third = await self._run(name, recipe, f"Read it. {recipe.tool}", again=True)
        self._note_answer(name, "runs a tool", third)
        heard = [m for body in self._prompter.seen[-4:] for m in body["messages"] if m["role"] == "tool"]
        told = any(INSIDE in json.dumps(message) for message in heard)
        self.note(name, "tells the model the tool's result", told, INSIDE)
        self._note_cache(name, "finds the tool's turn in its slot", second.rows, third.rows, *expected)
        if recipe.too_long and not self._whole:
            await self._too_long(name)

    async def _too_long(self, name: str) -> None:
        """A client whose whole prompt does not fit must understand why."""
        recipe = self._settled(name, whole=True)
        done = await self._run(name, recipe, "Say hello.", again=False)
        understood = done.code != 0 and re.search(recipe.too_long, done.said + done.errors) is not None
        self.note(name, "understands that its prompt is too long", understood, recipe.too_long)

    async def agents(self) -> None:
        """Two Claude Codes at once, of which one has a sub-agent."""
        name = "two + sub"
        path = json.dumps(str(self._folder / "one" / "work" / FILE))
        read = f'Look it up. <<call Read {{"file_path": {path}}}>>'
        helper = {
            "description": "look",
            "subagent_type": "helper",
            "run_in_background": False,
            "prompt": read,
        }
        first, second = (self._settled(one, whole=self._whole) for one in ("one", "two"))
        one, two = first.agent(""), second.agent("")
        both = await asyncio.gather(
            self._run("one", first, f"Ask. <<call Agent {json.dumps(helper)}>>", again=False),
            self._run("two", second, "Say hello.", again=False),
        )
        again = await asyncio.gather(
            self._run("one", first, "Say goodbye.", again=True),
            self._run("two", second, "Say more.", again=True),
        )
        for done in (*both, *again):
            self._note_answer(name, "answers", done)
        rows = self._rows(None)
        calls = {
            "first": [row for row in rows if row["agent"] == one],
            "second": [row for row in rows if row["agent"] == two],
            "sub-agent": [row for row in rows if row["agent"].startswith(f"{one}/")],
        }
        slots = {who: sorted({row["slot"] for row in made}) for who, made in calls.items()}
        apart = all(len(held) == 1 for held in slots.values()) and len({*map(str, slots.values())}) == 3
        self.note(name, "keep three slots apart", apart, slots)
        for who, made in calls.items():
            self._note_cache(name, f"the {who} finds its turns in its slot", made[:1], made[1:])

    def _settled(self, name: str, *, whole: bool) -> Recipe:
        """Make a client's home, or make it anew."""
        home = self._folder / name
        (home / "work").mkdir(parents=True, exist_ok=True)
        (home / "work" / FILE).write_text(f"{INSIDE}\n")
        recipe = RECIPES.get(name, claude_code)(self._gateway.url, home, whole)
        for path, content in recipe.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(content)
        return recipe

    async def _run(self, name: str, recipe: Recipe, prompt: str, *, again: bool) -> Done:
        home, before, began = self._folder / name, self._newest(), time.monotonic()
        program = self._programs / recipe.program
        process = await asyncio.create_subprocess_exec(
            program,
            *(recipe.again if again else recipe.first),
            prompt,
            cwd=home / "work",
            env={"PATH": os.environ["PATH"], "HOME": str(home), **recipe.environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said, errors = await asyncio.wait_for(process.communicate(), TURN_MAX_S)
        except TimeoutError:
            said, errors = b"", b"it took too long, and was ended"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        seconds = time.monotonic() - began
        return Done(process.returncode or 0, said.decode(), errors.decode(), self._rows(before), seconds)

    def _newest(self) -> str | None:
        rows = call(self._gateway, "GET", "/v1/calls?limit=1").json()["calls"]
        return rows[0]["call"] if rows else None

    def _rows(self, after: str | None) -> list[Row]:
        query = f"&after={after}" if after else ""
        rows: list[Row] = call(self._gateway, "GET", f"/v1/calls?limit=1000{query}").json()["calls"]
        return rows[::-1]

    def _note_answer(self, name: str, what: str, done: Done) -> None:
        errors = [row["error"] for row in done.rows if row["error"]]
        held = done.code == 0 and bool(done.said.strip()) and bool(done.rows) and not errors
        shown = (
            " ".join(done.said.split())[:40] if held else f"{done.said[-300:]} {done.errors[-600:]} {errors}"
        )
        self.note(
            name, what, held, f"exit {done.code}, {len(done.rows)} calls, {done.seconds:.0f} s: {shown!r}"
        )

    def _note_cache(
        self, name: str, what: str, first: list[Row], then: list[Row], keeps: float = 1.0, kinds: int = 1
    ) -> None:
        """Each call must find what is kept of the prompt before it in its slot, and no call a slot of its own.

        `kinds`: of conversations that the client holds under one name, and so of slots.
        """
        main = [row for row in (*first, *then) if row["route"] != "background"]
        by_slot = {row["slot"]: [r for r in main if r["slot"] == row["slot"]] for row in main}
        held = bool(first and then) and len(by_slot) <= kinds
        for rows in by_slot.values():
            pairs = pairwise(rows)
            held &= all(new["cached_tokens"] >= keeps * old["prompt_tokens"] - 1 for old, new in pairs)
        shown = [f"{row['cached_tokens']}/{row['prompt_tokens']}@{row['slot']}" for row in main]
        self.note(name, what, held, " ".join(shown))
