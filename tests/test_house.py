"""The house rules, checked: who may import whom, what is pure, and how long things may grow."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAYERS = [  # each may import only from those below it; members of one layer do not see each other
    {"__main__"},
    {"cli"},
    {"app", "indexer", "reload", "tuning"},
    {"hooking", "local_model", "locking", "pooling", "recording", "sharing", "tasking", "watching", "web"}
    | {"storage"},
    {"bus", "connect", "context", "hooks", "locks", "pool", "tasks"},
    {"config"},
    {"event", "glob"},
    {"clock", "errors", "ids", "journal"},
]
SAME_LAYER = {("ids", "clock"), ("event", "glob")}  # leaves that build on a leaf
PURE = {
    "event",
    "glob",
    "errors",
    "journal",
    "bus.leases",
    *(f"bus.{name}" for name in ("classify", "route", "rulebook", "cursor", "select", "page", "decide")),
    *(f"bus.{name}" for name in ("debounce", "rate_limit", "overflow", "lanes", "recent_ids", "rates")),
    *(f"bus.{name}" for name in ("envelope", "versions", "tail", "targets", "undelivered", "intake")),
    *(
        f"web.{name}"
        for name in ("sse", "query", "drafts", "frames", "problems", "lock_bodies", "lock_answers")
    ),
    *(f"web.{name}" for name in ("bodies", "context_bodies", "task_bodies", "task_answers")),
    "web.live_tail",
    *(f"web.mcp.{name}" for name in ("arguments", "schemas", "words")),
    "bus.explain",
    *(
        f"context.{name}"
        for name in ("artifacts", "blobs", "excerpt", "histories", "paths", "redact", "shown")
    ),
    *(f"context.{name}" for name in ("snapshot", "tokens")),
    "indexer.backlog",
    *(f"context.watch.{name}" for name in ("changes", "report", "window", "pace")),
    *(
        f"locks.{name}"
        for name in ("lock", "refusals", "overlap", "index", "paths", "table", "state", "line")
    ),
    *(f"locks.{name}" for name in ("graph", "claims", "blockers", "relation", "waits", "events")),
    *(f"locks.{name}" for name in ("views", "unlocked")),
    *(f"pool.{name}" for name in ("request", "chunk", "failures", "names", "numbers", "records", "turns")),
    *(f"pool.{name}" for name in ("billing", "canonical", "chain", "identity", "joins", "inset")),
    "pool.inset_memory",
    *(f"pool.{name}" for name in ("schedule", "shares", "slots", "spill", "standing", "waiting", "plan")),
}
PURE_PACKAGES = ("connect.", "context.graph", "context.sessions", "hooks.", "pool.protocols", "tasks.")
IMPURE = {
    *("asyncio", "time", "random", "datetime", "uuid", "sqlite3", "aiosqlite", "aiohttp", "starlette"),
    *("uvicorn", "logging", "os", "threading", "socket", "secrets", "subprocess", "pathlib"),
}
BUS_MUST_NOT_SEE = {"starlette", "uvicorn", "aiohttp", "aiosqlite", "sqlite3", "socket", "http"}
VAGUE = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}
LINES_MAX, BODY_MAX, METHODS_MAX = 400, 50, 20


def modules(package: str = "herdr") -> Iterator[tuple[str, str]]:
    base = ROOT / ("sdk/herdr_sdk" if package == "herdr_sdk" else package)
    for path in sorted(base.rglob("*.py")):
        name = ".".join(path.relative_to(base).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        yield name, path.read_text()


def imports(name: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: absolute imports only"
            assert node.module is not None
            yield from (f"herdr.{a.name}" for a in node.names) if node.module == "herdr" else [node.module]


def layer(part: str) -> int | None:
    return next((i for i, names in enumerate(LAYERS) if part in names), None)


def test_imports_point_down() -> None:
    seen = 0
    for name, source in modules():
        part = name.split(".")[0]
        for target in imports(name, source):
            if not target.startswith("herdr.") or target == "herdr.__version__":
                continue
            other = target.split(".")[1]
            if other == part or (part, other) in SAME_LAYER:
                continue
            mine, theirs = layer(part), layer(other)
            assert mine is not None and theirs is not None, f"{name}: {target} has no layer"
            assert mine < theirs, f"{name} imports {target}"
            seen += 1
    assert seen > 100


def test_pure_modules_do_no_io() -> None:
    names = {name for name, _ in modules()}
    assert names >= PURE, f"no such module: {sorted(PURE - names)}"
    for name, source in modules():
        if name in PURE or name.startswith(PURE_PACKAGES):
            found = {target.split(".")[0] for target in imports(name, source)} & IMPURE
            assert not found, f"{name} is pure but imports {sorted(found)}"


def test_the_bus_knows_nothing_of_http_or_sql() -> None:
    for name, source in modules():
        if name.split(".")[0] == "bus":
            found = {target.split(".")[0] for target in imports(name, source)} & BUS_MUST_NOT_SEE
            assert not found, f"{name} imports {sorted(found)}"


def test_gateway_and_sdk_do_not_see_each_other() -> None:
    for name, source in modules():
        assert not any(target.startswith("herdr_sdk") for target in imports(name, source)), name
    for name, source in modules("herdr_sdk"):
        assert not any(target.split(".")[0] == "herdr" for target in imports(name, source)), name


def test_imports_stand_at_the_top() -> None:
    for package in ("herdr", "herdr_sdk"):
        for name, source in modules(package):
            for function in ast.walk(ast.parse(source)):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    inside = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
                    assert not inside, f"{name}.{function.name} imports inside a function"


def test_things_fit_on_a_screen() -> None:
    for package in ("herdr", "herdr_sdk"):
        for name, source in modules(package):
            assert len(source.splitlines()) <= LINES_MAX, f"{name} is too long"
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                    assert node.end_lineno is not None
                    assert node.end_lineno - body[0].lineno < BODY_MAX, f"{name}.{node.name} is too long"
                elif isinstance(node, ast.ClassDef):
                    methods = [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
                    assert len(methods) <= METHODS_MAX, f"{name}.{node.name} has {len(methods)} methods"


def test_names_say_something() -> None:
    for package in ("herdr", "herdr_sdk"):
        for name, _ in modules(package):
            assert not VAGUE & set(name.split(".")), name


def test_scripts_are_short_and_can_be_run() -> None:
    scripts = [*sorted((ROOT / "scripts").iterdir()), ROOT / ".ci/run"]
    assert {"install", "serve", "test", "check"} <= {script.name for script in scripts}
    for script in scripts:
        assert script.stat().st_mode & 0o111, f"{script.name} cannot be run"
        assert len(script.read_text().splitlines()) <= 30, f"{script.name} is too long"


def test_no_registry_is_named() -> None:
    hosts = ["python" + "hosted", "py" + "pi.org", "npm" + "js.org", "deb." + "debian"]
    for path in [
        *ROOT.glob("*.lock"),
        *ROOT.glob("*.toml"),
        *ROOT.rglob("docker/*"),
        *ROOT.glob("docs/**/*.md"),
    ]:
        text = path.read_text(errors="replace")
        assert not any(host in text for host in hosts), path
