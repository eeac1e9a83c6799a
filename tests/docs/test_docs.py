"""The documents, checked against the code: lists are complete, links lead somewhere, what is printed works."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, get_args
from unittest.mock import MagicMock

import pytest
from gateway import GatewayProcess
from wire import call

import herdr
import herdr_sdk
from herdr.cli.main import GROUPS
from herdr.config import load
from herdr.pool.failures import STATUSES
from herdr.sharing.folding import DELETED, RECORDED
from herdr.tasks.events import PREFIX
from herdr.tasks.task import What
from herdr.web import asgi
from herdr.web.context_routes import context_endpoints
from herdr.web.dashboard_routes import dashboard_endpoints
from herdr.web.hook_routes import hook_endpoints
from herdr.web.lock_routes import lock_endpoints
from herdr.web.mcp.endpoint import McpEndpoint
from herdr.web.model_routes import model_endpoints
from herdr.web.routes import endpoints, websockets
from herdr.web.surface import Endpoint
from herdr.web.task_routes import task_endpoints

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(p for top in ("docs", "spec", "sdk") for p in (ROOT / top).rglob("*.md"))]
    + [p for p in (ROOT / "bench").rglob("*.md") if not {"cache", "results"} & {*p.parts}]  # the peers' own
)
NO_EVENTS = {
    asgi.ABORT,
    asgi.WRITE_WHOLE,
    "herdr.lock",
    "herdr.yaml",
    "herdr.indexer",
    "herdr.web",
}  # keys, files, a module
CODE_AT = {  # where a call that raises, or makes, an error has the code among its arguments
    **dict.fromkeys(
        ("HerdrError", "InvalidInput", "NotFound", "LogUnavailable", "StartupError", "TooMany"), 1
    ),
    **{"TaskConflict": 1, "TooManyTasks": 1, "NotHolder": 3},
    **{"ModelError": 0, "Refused": 0, "_told_as": 0, "invalid": 1, "refuse": 1, "__init__": 1},
}
PROTOCOLS = "herdr/pool/protocols/"  # what is wrong in a model's request is always `invalid_request`
MAKES_EVENT = {
    *(
        "Draft",
        "WorkspaceEvent",
        "announce",
        "_announce",
        "own",
        "own_draft",
        "_own_event",
        "synthetic_block",
    ),
}
FROM_THE_INDEXER = {"context.changed", "context.indexed"}  # their names are put together
OF_TASKS = {PREFIX + what for what in get_args(What)}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_ENDPOINT_ROW = re.compile(r"^\| \[`([A-Z]+) (\S+)`\]\(\S+\) \| (.+?) \|", re.MULTILINE)
_CODE_ROW = re.compile(r"^\| `([a-z_]+)` \|", re.MULTILINE)
_METRIC_ROW = re.compile(r"^\| `((?:herdr|gen_ai)_\w+)` \| (gauge|counter|histogram) \|", re.MULTILINE)
_METRIC = re.compile(r"(Gauge|Counter|Histogram)MetricFamily\(\s*\"((?:herdr|gen_ai)_\w+)\"")


def blocks(path: Path, language: str) -> list[str]:
    return [body for found, body in _FENCE.findall(path.read_text()) if found == language]


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "herdr").rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def called(node: ast.Call) -> str:
    return getattr(node.func, "id", None) or getattr(node.func, "attr", "")


def texts(node: ast.expr) -> Iterator[str]:
    """Yield what an expression may be, as far as it is text that stands there."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.BoolOp):
        yield from (text for value in node.values for text in texts(value))
    elif isinstance(node, ast.IfExp):
        yield from (*texts(node.body), *texts(node.orelse))


def codes_in_the_code() -> set[str]:
    found = {"internal"}
    for path, tree in trees():
        for node in ast.walk(tree) if not path.startswith(PROTOCOLS) else ():
            if isinstance(node, ast.Call) and called(node) in CODE_AT:
                place = CODE_AT[called(node)]
                for value in node.args[place : place + 1]:
                    found.update(texts(value))
                for keyword in node.keywords:
                    found.update(texts(keyword.value) if keyword.arg == "code" else ())
            elif isinstance(node, ast.ClassDef):
                for line in node.body:
                    name = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
                    if getattr(name, "id", "") == "code" and (value := getattr(line, "value", None)):
                        found.update(texts(value))
    return found - {""}


def event_types_in_the_code() -> set[str]:
    found: set[str] = set()
    for _, tree in trees():
        loggers = {
            id(argument)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and called(node) == "getLogger"
            for argument in node.args
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(node) in MAKES_EVENT and node.args:
                found.update(text for text in texts(node.args[0]) if "." in text)
            elif isinstance(node, ast.Constant) and id(node) not in loggers:
                if isinstance(node.value, str) and re.fullmatch(r"herdr\.[a-z_]+", node.value):
                    found.add(node.value)
                elif isinstance(node.value, bytes):
                    found.update(re.findall(r"event: (herdr\.[a-z_]+)", node.value.decode()))
    return found - NO_EVENTS


BUILDERS = (
    *(model_endpoints, lock_endpoints, task_endpoints, context_endpoints, hook_endpoints),
    dashboard_endpoints,
)


def all_endpoints() -> list[Endpoint]:
    others = [
        endpoint
        for build in BUILDERS
        for endpoint in build(*(MagicMock() for _ in inspect.signature(build).parameters))
    ]
    others += McpEndpoint(*(MagicMock() for _ in inspect.signature(McpEndpoint).parameters)).endpoints()
    parts = inspect.signature(endpoints).parameters
    return endpoints(**{name: others if name == "others" else MagicMock() for name in parts})


def plain_path(path: str) -> str:
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def anchors(path: Path) -> set[str]:
    """Return the names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text()), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def links(path: Path) -> list[str]:
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", path.read_text()))
    return [link for link in _LINK.findall(prose) if "://" not in link and not link.startswith("mailto:")]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in links(path):
        target, _, anchor = link.partition("#")
        place = (path.parent / target).resolve() if target else path
        assert place.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(place), f"{link}: there is no such heading"


@pytest.mark.parametrize("index", ["README.md", "docs/README.md"])
def test_every_page_of_the_documentation_has_its_place(index: str) -> None:
    linked = {
        (ROOT / index).parent.joinpath(link.partition("#")[0]).resolve() for link in links(ROOT / index)
    }
    wanted = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.name != "README.md"}
    if index == "README.md":  # it links the folder of the decisions, and the other pages beside it
        wanted = {page for page in wanted if page.parent.name != "adr"} | set(ROOT.glob("*.md"))
        wanted -= {ROOT / "README.md"}
    assert not {str(page.relative_to(ROOT)) for page in wanted - linked}


def test_every_endpoint_is_in_the_reference() -> None:
    text = (REFERENCE / "http.md").read_text()
    shown = {(method, path): scope for method, path, scope in _ENDPOINT_ROW.findall(text)}
    there = {(e.method, plain_path(e.path)): f"`{e.scope}`" if e.scope else "none" for e in all_endpoints()}
    sockets = websockets(*(MagicMock() for _ in inspect.signature(websockets).parameters))
    assert len(there) > 10 and sockets
    for path in sockets:
        assert shown.pop(("GET", path)).startswith("`events:")
    assert shown == there


def test_every_endpoint_is_in_the_protocol() -> None:
    text = (ROOT / "spec/protocol.md").read_text()
    missing = {plain_path(e.path) for e in all_endpoints() if f"`{e.method} {plain_path(e.path)}" not in text}
    assert not missing


def test_every_error_code_is_in_the_reference_and_no_other() -> None:
    shown = _CODE_ROW.findall((REFERENCE / "errors.md").read_text())
    assert len(shown) == len(set(shown)), "a code stands twice"
    of_models = set(_CODE_ROW.findall((REFERENCE / "models.md").read_text().partition("## Errors")[2]))
    assert of_models == set(STATUSES) - {"internal"}
    assert len(shown) > 30
    assert {*shown, *of_models} == codes_in_the_code() | of_models


def test_every_metric_is_in_the_reference(gateway: GatewayProcess) -> None:
    source = "".join(
        (ROOT / f"herdr/web/{name}.py").read_text() for name in ("metrics", "model_numbers", "lock_numbers")
    )
    there = {
        (f"{name}_total" if kind == "Counter" else name, kind.lower())
        for kind, name in _METRIC.findall(source)
    }
    assert set(_METRIC_ROW.findall((REFERENCE / "metrics.md").read_text())) == there
    said = re.findall(r"^# TYPE (\w+) (\w+)$", call(gateway, "GET", "/metrics").body.decode(), re.MULTILINE)
    assert said and set(said) <= there


def test_every_event_type_is_in_the_reference() -> None:
    shown = set(re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", (REFERENCE / "events.md").read_text()))
    there = event_types_in_the_code() | FROM_THE_INDEXER | OF_TASKS | {RECORDED, DELETED}
    assert {"herdr.gap", "herdr.bye", "herdr.corrupt", "conflict.detected", "file.changed"} <= there
    assert not there - shown
    assert not {name for name in shown if name.startswith("herdr.")} - there


def test_every_command_is_in_the_reference() -> None:
    text = (REFERENCE / "cli.md").read_text()
    assert GROUPS
    assert not [name for name in GROUPS if not re.search(rf"\bherdr {name}\b", text)]


def test_every_script_has_its_place() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert not [path.name for path in (ROOT / "scripts").iterdir() if f"`scripts/{path.name}" not in text]


@pytest.mark.parametrize("path", sorted((ROOT / "docs/how-to").glob("*.md")), ids=lambda path: path.stem)
def test_every_configuration_that_is_printed_is_right(path: Path, tmp_path: Path) -> None:
    for number, text in enumerate(blocks(path, "yaml")):
        (tmp_path / f"{number}.yaml").write_text(text)
        secrets = {name: f"hrd_{name}" for name in re.findall(r"token_env: (\w+)", text)}
        load(tmp_path / f"{number}.yaml", secrets)


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## \[([0-9][^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == herdr.__version__ == herdr_sdk.__version__


def test_the_tests_that_the_architecture_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "ARCHITECTURE.md").read_text())
    assert len(named) > 15
    for file, name in named:
        assert (ROOT / file).exists(), f"there is no {file}"
        found = re.search(rf"^(async )?def {name}\(|^{name} = ", (ROOT / file).read_text(), re.MULTILINE)
        assert found or name in (ROOT / file).read_text(), f"there is no {file}::{name}"


def test_the_modules_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    trip = text[text.index("## One event's trip") : text.index("## Code map")]
    named = re.findall(r"[`*]((?:web|bus|storage)/\w+)", trip)
    assert len(named) > 15
    for name in named:
        assert (ROOT / f"herdr/{name}.py").exists() or (ROOT / f"herdr/{name}").is_dir(), name


@pytest.mark.parametrize(
    ("row", "constant", "unit"),
    [
        ("events of a request", "web.drafts.EVENTS_MAX", 1),
        ("sockets", "web.server.CONNECTIONS_MAX", 1),
        ("one follow", "bus.select.PATTERNS_MAX", 1),
        ("one follow", "bus.select.TEXT_MAX", 1),
        ("one follow", "web.query.ATTRS_MAX", 1),
        ("one WebSocket", "web.connect.PUBLISHES_MAX", 1),
        ("one WebSocket", "web.channels.FOLLOWS_MAX", 1),
        ("large bodies", "bus.publish.DECODE_GATE_ROWS", 1),
        ("debounce windows", "bus.debounce.REPLACED_IDS_MAX", 1),
        ("debounce windows", "bus.intake.HELD_BYTES_MAX", 2**20),
        ("gathered file changes", "bus.overflow.GROUPS_MAX", 1),
        ("gathered file changes", "bus.overflow.PATHS_MAX", 1),
        ("body of a model call", "web.models.MODEL_BODY_MAX", 2**20),
        ("calls that wait", "pool.line.WAITING_MAX", 1),
        ("retries", "pool.pool.RETRIES_KEPT", 1),
        ("rows of", "recording.CALLS_KEPT", 1),
        ("a batch", "bus.lanes.BATCH_ITEMS_MAX", 1),
        ("a batch", "bus.lanes.BATCH_BYTES_MAX", 2**20),
        ("a batch", "bus.lanes.BATCH_ITEMS_MAX_WITH_P0", 1),
        ("tail in memory", "bus.tail.BYTES_MAX", 2**20),
        ("a page", "bus.page.EVENTS_MAX", 1),
        ("a page", "bus.page.BYTES_MAX", 2**10),
        ("shared pages", "bus.follow.PAGES_SHARED_MAX", 1),
        ("ids in memory", "bus.recent_ids.CAPACITY", 1),
        ("versions of subjects", "bus.versions.SUBJECTS_MAX", 1),
        ("tasks", "tasks.table.OPEN_MAX", 1),
        ("tasks", "tasks.table.BYTES_MAX", 2**20),
        ("tasks", "tasks.state.STEPS_MAX", 1),
        ("tools known by their hooks", "hooking.memory.SESSIONS_MAX", 1),
        ("tools known by their hooks", "hooking.memory.HOLDS_MAX", 1),
        ("tools known by their hooks", "hooking.memory.OWN_MAX", 1),
        ("tools known by their hooks", "hooks.changes.CHANGES_MAX", 1),
        ("what a hook tells", "hooks.words.CONTEXT_MAX", 1),
        ("what a hook tells", "hooks.words.NEWS_SAID", 1),
        ("an inbox", "bus.inbox.NAMES_MAX", 1),
        ("an inbox", "bus.inbox.WAITING_MAX", 1),
        ("an inbox", "bus.inbox.LOOKED_BACK", 1),
        ("agents that registered", "web.mcp.agents.AGENTS_MAX", 1),
        ("streams of MCP's notices", "web.mcp.server.LISTENERS_MAX", 1),
        ("the live stream", "web.live_tail.EVENTS_A_BEAT", 1),
        ("the live stream", "web.live.WAITING_MAX", 2**20),
        ("the live stream", "web.live_tail.BODY_SHOWN_MAX", 2**10),
        ("links that sign", "web.browser_sessions.LINKS_MAX", 1),
        ("a source file", "context.graph.reading.SOURCE_BYTES_MAX", 2**20),
        ("a source file", "indexer.parse_pool.CHUNK_S", 1),
        ("a source file", "indexer.__main__.WORKERS_MAX", 1),
        ("a source file", "indexer.index.CHUNK_FILES", 1),
        ("what waits for the indexer", "sharing.child.UNSENT_MAX", 2**20),
        ("what waits for the indexer", "sharing.looking.DIRTY_MAX", 1),
        ("a question about the graph", "sharing.graphs.WAIT_S", 1),
        ("a question about the graph", "context.graph.lookups.LOOKS_MAX", 1),
        ("a question about the graph", "web.context_bodies.LIMIT_MAX", 1),
        ("`context.changed`", "indexer.news.FILES_SAID", 1),
        ("`context.changed`", "indexer.news.SIGNATURES_SAID", 1),
        ("`context.changed`", "indexer.news.CALLERS_SAID", 1),
        ("`context.changed`", "indexer.news.OUTLINES_KEPT", 1),
        ("a map", "context.graph.map.PIECES_MAX", 1),
        ("a map", "sharing.pictures.MAPS_MAX", 1),
        ("content that nothing owns", "context.blobs.CACHED_BYTES_MAX", 2**20),
        ("content that nothing owns", "context.blobs.CACHED_BLOB_MAX", 2**20),
        ("artifacts", "context.artifacts.COUNT_MAX", 1),
        ("artifacts", "web.artifacts_api.BODY_MAX", 2**20),
        ("artifacts", "context.artifacts.TTL_MAX_S", 86_400),
        ("sessions", "context.histories.SESSIONS_MAX", 1),
        ("sessions", "context.histories.BYTES_MAX", 2**30),
        ("summary of a session", "context.sessions.state.FULL_MAX", 1),
        ("summary of a session", "context.sessions.state.SHORT_MAX", 1),
        ("summary of a session", "context.sessions.state.FILES_MAX", 1),
        ("summary of a session", "context.sessions.state.ERRORS_MAX", 1),
        ("a window", "sharing.pictures.NEWEST_MAX", 1),
        ("a window", "sharing.pictures.NEWEST_BYTES_MAX", 2**20),
        ("messages of a request", "web.context_bodies.MESSAGES_MAX", 1),
        ("contexts beside events", "bus.beside.AT_ONCE_MAX", 1),
        ("a snapshot", "web.snapshots_api.SNAPSHOT_MAX", 2**20),
        ("a snapshot", "context.snapshot.UNPACKED_MAX", 2**30),
        ("targets", "bus.targets.TARGETS_MAX", 1),
        ("P0 deliveries watched", "bus.undelivered.WATCHED_MAX", 1),
        ("rules", "bus.rulebook.RULES_MAX", 1),
        ("rules", "config.sections.ROUTES_MAX", 1),
        ("watched folders", "watching.WORKSPACES_MAX", 1),
        ("the log", "storage.sqlite.upkeep.ROWS_A_SLICE", 1),
        ("write-ahead log", "storage.sqlite.upkeep.CHECKPOINT_AT", 2**20),
        ("write-ahead log", "storage.sqlite.upkeep.CHECKPOINT_FORCED_AT", 2**20),
    ],
)
def test_the_bounds_are_those_of_the_code(row: str, constant: str, unit: int) -> None:
    module, _, name = constant.rpartition(".")
    number = int(getattr(import_module(f"herdr.{module}"), name)) // unit
    text = (ROOT / "ARCHITECTURE.md").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {row}"))
    assert re.search(rf"(?<!\d)(?<!\d,){number:,}(?!,?\d)", line), f"{number:,} is not in: {line}"


def shell(command: str, gateway: GatewayProcess) -> list[str]:
    """Return how to run a command as it is printed, but for the port."""
    return ["bash", "-c", command.replace("127.0.0.1:8787", f"127.0.0.1:{gateway.port}")]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def answer(command: str, gateway: GatewayProcess) -> dict[str, object]:
    done = subprocess.run(
        shell(command, gateway), env=environment(), capture_output=True, timeout=30, check=True
    )
    return dict(json.loads(done.stdout))


def line_with(stream: IO[str] | None, start: str) -> str:
    assert stream is not None
    for line in stream:
        if line.startswith(start):
            return line.removeprefix(start).strip()
    raise AssertionError(f"the stream ended before {start!r}")


@pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl is not installed; scripts/test runs it where it is"
)
def test_the_curl_examples_of_the_readme_work(gateway: GatewayProcess) -> None:
    follow, publish, read, _ = (b for b in blocks(ROOT / "README.md", "sh") if b.startswith("curl"))
    stream = subprocess.Popen(
        shell(f"exec {follow}", gateway),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with stream:
        try:
            line_with(stream.stdout, "id:")
            receipt = answer(publish, gateway)
            assert receipt["status"] == "accepted"
            event = json.loads(line_with(stream.stdout, "data:"))
        finally:
            stream.terminate()
    assert event["seq"] == receipt["seq"] and event["type"] == "test.failed"
    events = answer(read, gateway)["events"]
    assert isinstance(events, list) and event in events
    (printed,) = blocks(ROOT / "README.md", "json")
    assert json.loads(printed).keys() == receipt.keys()


def test_the_sdk_example_of_the_readme_works(gateway: GatewayProcess, tmp_path: Path) -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    (tmp_path / "hello.py").write_text(example)
    environ = environment() | {"HERDR_GATEWAY_URL": gateway.url}
    done = subprocess.run(
        [sys.executable, "hello.py"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == ["accepted 1", "1 hello test.failed {'name': 'test_login'}"], (
        done.stderr
    )
