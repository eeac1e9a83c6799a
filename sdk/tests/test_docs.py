"""The examples in the SDK's pages: each is run, against a gateway at the address that they name."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from fake_tasks import TaskTable

import herdr_sdk
from herdr_sdk import locks, outbox, sessions, texts
from herdr_sdk.inbox import FULL_BYTES, FULL_EVENTS
from herdr_sdk.versions import SUBJECTS_MAX

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "sdk.md").read_text()
PAGES = [DOCS / "reference" / "sdk.md", *sorted((DOCS / "how-to").glob("sdk-*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M))
]


@pytest.mark.parametrize("code", EXAMPLES)
async def test_examples_run(faulty, code) -> None:
    namespace: dict[str, object] = {}
    await asyncio.to_thread(exec, compile(code, "example", "exec"), namespace)
    for name in ("report", "load", "debugger", "tail"):
        if name in namespace:
            assert callable(namespace[name])


async def test_the_examples_that_only_define_do_what_they_say(faulty, capsys) -> None:
    report = _define("reference/sdk.md", "async def report")
    await report([{"file": "a.py"}, {"file": "b.py"}])
    faulty.refusal = lambda frame: {
        "code": "invalid_event",
        "detail": "no.",
        "errors": [{"index": 1, "field": "subject", "message": "bad"}],
    } if len(frame["events"]) == 2 else None  # fmt: skip
    await report([{"file": "a.py"}, {"file": "b.py"}])
    once = _define("how-to/sdk-publish-reliably.md", "async def report")
    await once("b7", "lint", True)
    await once("b7", "lint", True)
    assert capsys.readouterr().out.splitlines() == [
        "2 stored", "{'file': 'b.py'} subject bad", "new", "known already"
    ]  # fmt: skip


async def test_the_example_that_loads_a_file(faulty, tmp_path) -> None:
    path = tmp_path / "lines"
    path.write_text("1\n[2]\n")
    load = _define("how-to/sdk-publish-reliably.md", "def load")
    assert await asyncio.to_thread(load, path) == 2
    assert [event["data"] for event in faulty.log] == [1, [2]]


async def test_the_examples_about_a_project_do_what_they_say(faulty, capsys) -> None:
    total = {"symbol": "src/cart.py::total", "path": "src/cart.py", "line": 3, "signature": "def total()"}
    caller = {"path": "b.py", "call": "total", "resolution": "exact"}
    answers = {
        "map": {"text": "the map"},
        "callers": {"definitions": [total], "callers": [caller]},
        "fix": {"session": "fix", "text": "the window"},
        "messages": {"messages": [{"seq": 1, "id": "m", "status": "accepted"}]},
        "pytest": {"name": "digests/pytest"},
    }
    faulty.answer = lambda asked: answers[asked.address.partition("?")[0].rpartition("/")[2]]
    brief = _define("reference/sdk.md", "async def brief")
    assert await brief("total") == "the map\nsrc/cart.py:3 def total()\nb.py calls it as total (exact)"
    assert await _define("reference/sdk.md", "async def take_over")("fix") == "the window"
    await _define("reference/sdk.md", "async def share")("3 failed")
    assert capsys.readouterr().out == f"{json.dumps(answers['pytest']).encode()!r}\n"


async def test_the_example_about_tasks_does_what_it_says(faulty, capsys) -> None:
    faulty.answer = table = TaskTable(faulty)
    table.add(note={"summary": "net prices", "decisions": ["Decimal"]})
    code = _define("reference/sdk.md", "async def code")
    async with herdr_sdk.Hub(name="coder/1") as hub:
        await code(hub)
    assert capsys.readouterr().out == "Add VAT net prices ('Decimal',)\n"
    assert [what for what, _ in table.told] == ["claim", "hand-over"]


def test_every_public_name_is_in_the_reference() -> None:
    missing = [name for name in herdr_sdk.__all__ if not re.search(rf"`[^`\n]*\b{name}\b", REFERENCE)]
    assert missing == ["FieldError"], "it is known by the fields that hold it"


def test_the_bounds_in_the_reference_are_the_codes() -> None:
    assert f"{outbox.FRAME_EVENTS} events or {outbox.FRAME_BYTES // 1024} KiB" in REFERENCE
    assert f"{outbox.FRAMES_OPEN} frames, {outbox.EVENTS_OPEN:,}" in REFERENCE
    assert f"{outbox.BYTES_OPEN // 2**20} MiB are unanswered" in REFERENCE
    assert f"{SUBJECTS_MAX:,} subjects" in REFERENCE
    assert f"lets one stand for {locks.WAIT_MAX_S:g}" in REFERENCE
    assert f"up\nto {locks.RELEASE_S:g} s for the gateway's word" in REFERENCE
    assert f"at most {texts.ENTRIES_MAX} answers or {texts.BYTES_MAX // 2**20} MiB" in REFERENCE
    assert f"{sessions.MESSAGES_MAX:,} messages or {sessions.BYTES_MAX // 2**20} MiB a request" in REFERENCE
    assert f"{FULL_EVENTS:,} events or {FULL_BYTES // 2**20} MiB waiting" in REFERENCE


def _define(page: str, marker: str):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.S | re.M)
    [code] = [block for block in blocks if marker in block]
    namespace: dict[str, object] = {}
    exec(code, namespace)
    return namespace[marker.split()[-1]]
