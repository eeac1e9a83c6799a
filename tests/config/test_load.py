"""Whole configurations from real files, environments and flags."""

from pathlib import Path

import pytest

from herdr.config import (
    Config,
    ConfigError,
    Loaded,
    RouteRule,
    Token,
    Workspace,
    load,
    parse_routes,
    render,
)
from herdr.config.routes import RouteContext
from herdr.errors import StartupError

MINIMAL = """\
server:
  host: 0.0.0.0
  port: 8787
  max_connections: 256
bus:
  buffer_size: 10000
  persist_path: ./data/events.db
routes:
  - event: "file.changed"
    target: indexer
    priority: P2
    timeout_ms: 1000
  - event: "user.message"
    target: primary_agent
    priority: P0
    timeout_ms: 30000
context:
  project_graph_ttl: 60
  session_window: 2048
  artifact_cache_size: 128
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str, environ: dict[str, str] | None = None, flags: dict[str, object] | None = None) -> Loaded:
    file = Path("herdr.yaml")
    file.write_text(text)
    return load(file, environ or {}, flags or {})


def problems(
    text: str, environ: dict[str, str] | None = None, flags: dict[str, object] | None = None
) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(text, environ, flags)
    assert caught.value.detail.splitlines()[1:] == [f"  {problem}" for problem in caught.value.problems]
    return [str(problem) for problem in caught.value.problems]


def test_the_minimal_file_that_users_have() -> None:
    config = read(MINIMAL).config
    assert (config.server.host, config.server.port, config.server.max_connections) == ("0.0.0.0", 8787, 256)
    assert (config.bus.buffer_size, config.bus.persist_path) == (10000, "./data/events.db")
    assert config.routes == (
        RouteRule(name="file-1", event="file.changed", target="indexer", priority="P2", timeout_ms=1000),
        RouteRule(
            name="file-2", event="user.message", target="primary_agent", priority="P0", timeout_ms=30000
        ),
    )
    assert config.context == Config().context


def test_empty_file_is_the_defaults() -> None:
    assert read("").config == Config()


def test_empty_sections_are_the_defaults() -> None:
    sections = ("server", "bus", "routes", "workspaces", "auth", "context", "models")
    assert read("".join(f"{section}:\n" for section in sections)).config == Config()
    assert read("bus:\n  retention:\nmodels:\n  shares:\n").config.bus == Config().bus


def test_no_file_is_the_defaults() -> None:
    loaded = load(None, {})
    assert (loaded.config, loaded.path) == (Config(), None)
    assert set(loaded.origins.values()) == {"default"}


def test_the_file_may_be_named_by_the_environment(here: Path) -> None:
    (here / "other.yaml").write_text("server: {port: 1}")
    (here / "flag.yaml").write_text("server: {port: 2}")
    environ = {"HERDR_GATEWAY_CONFIG": "other.yaml"}
    assert load(None, environ).config.server.port == 1
    assert load(Path("flag.yaml"), environ).config.server.port == 2


def test_every_value_names_its_origin() -> None:
    loaded = read(MINIMAL, {"HERDR_GATEWAY_BUS__DEBOUNCE_MS": "1"}, {"server.port": 5, "server.host": None})
    expected = {
        "server.host": "herdr.yaml:2:9",
        "server.port": "command line",
        "bus.debounce_ms": "HERDR_GATEWAY_BUS__DEBOUNCE_MS",
        "bus.p2_per_s": "default",
        "bus.retention.max_age_s": "default",
        "routes[1].target": "herdr.yaml:14:13",
        "routes[1].name": "default",
    }
    assert {path: loaded.origins[path] for path in expected} == expected
    assert (loaded.config.server.port, loaded.config.server.host) == (5, "0.0.0.0")


def test_flags_win_over_environment_over_file() -> None:
    environ = {"HERDR_GATEWAY_SERVER__PORT": "2"}
    assert read("server: {port: 1}").config.server.port == 1
    assert read("server: {port: 1}", environ).config.server.port == 2
    assert read("server: {port: 1}", environ, {"server.port": 3}).config.server.port == 3
    assert problems("", flags={"server.port": 70000}) == [
        "command line: server.port: got the number 70000, expected a whole number from 0 to 65535"
    ]


def test_a_flag_may_add_to_a_list() -> None:
    flags: dict[str, object] = {"workspaces+": [{"path": "/b"}, {"path": "/c/d"}]}
    paths = [(w.name, w.path) for w in read("workspaces: [{path: /a}]", flags=flags).config.workspaces]
    assert paths == [("a", "/a"), ("b", "/b"), ("d", "/c/d")]
    assert load(None, {}, flags).config.workspaces[1] == Workspace(path="/c/d", name="d")


def test_everything_that_is_wrong_is_told_at_once_in_reading_order() -> None:
    text = """\
server: {host: 0.0.0.0, prt: 9000, max_connections: yes}
bus:
  retention:
    max_age: 3
    max_bytes: 8 MiB
  durability: ful
  max_age_s: 5
routes:
  - evnt: "*"
    target: x
    context: {session_tokens: 3}
    match: {clas: user, source: "a\\tb"}
  - {event: "*", target: y, name: file-1}
auth:
  tokens: [{name: a, token_env: NOPE}, {name: b, token: 5}]
  open: on
"""
    known = "HERDR_GATEWAY_SERVER__PROT: unknown variable; did you mean HERDR_GATEWAY_SERVER__PORT?"
    assert problems(text, {"HERDR_GATEWAY_SERVER__PROT": "1"}) == [
        known,
        "herdr.yaml:1:25: server.prt: unknown key; did you mean port?",
        "herdr.yaml:1:53: server.max_connections: got the text 'yes', "
        "expected a whole number from 1 to 100000",
        "herdr.yaml:4:5: bus.retention.max_age: unknown key; did you mean max_age_s?",
        "herdr.yaml:5:16: bus.retention.max_bytes: got the text '8 MiB', expected a whole number "
        "from 1 to 1000000000000000 (bytes; one MiB is 1048576)",
        "herdr.yaml:6:15: bus.durability: got the text 'ful', expected one of full, os; did you mean full?",
        "herdr.yaml:7:3: bus.max_age_s: unknown key; did you mean bus.retention.max_age_s?",
        "herdr.yaml:9:5: routes[0].evnt: unknown key; did you mean event?",
        "herdr.yaml:11:31: routes[0].context.session_tokens: got the number 3, "
        "expected a whole number from 64 to 1000000",
        "herdr.yaml:12:13: routes[0].match.clas: unknown field; did you mean class?",
        "herdr.yaml:12:33: routes[0].match.source: got the text 'a\\tb', "
        "expected a glob, a number, true or false, or a list of them",
        "herdr.yaml:13:35: routes[1].name: the text 'file-1' is already the name of routes[0]",
        "herdr.yaml:15:33: auth.tokens[0].token_env: the variable NOPE is not set",
        "herdr.yaml:15:57: auth.tokens[1].token: got a value, "
        "expected text of 1 to 512 visible ASCII characters; put it in quotes",
        "herdr.yaml:16:9: auth.open: got the text 'on', expected true or false",
    ]


def test_a_broken_file_does_not_hide_a_broken_variable() -> None:
    found = problems("server: [", {"HERDR_GATEWAY_SERVER__PORT": "x"})
    assert [line.split(":")[0] for line in found] == ["HERDR_GATEWAY_SERVER__PORT", "herdr.yaml"]


@pytest.mark.parametrize("text", ["- a", "just text", "42"])
def test_the_document_must_be_a_mapping(text: str) -> None:
    assert "expected a mapping with sections" in problems(text)[0]


def test_files_that_cannot_be_read(here: Path) -> None:
    (here / "folder").mkdir()
    for name, reason in (("absent.yaml", "there is no such file"), ("folder", "this is a folder")):
        with pytest.raises(ConfigError, match=reason):
            load(Path(name), {})


def test_a_file_that_fails_while_it_is_read() -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: Input/output error"):
        load(Path("/proc/self/mem"), {})


def test_it_is_a_startup_error() -> None:
    assert issubclass(ConfigError, StartupError)
    with pytest.raises(StartupError, match="the configuration cannot be used, 1 problem:\n"):
        read("x: 1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("server: {port: 1.5}", "server.port: got the number 1.5, expected a whole number from 0 to 65535"),
        ("server: {port: true}", "server.port: got true, expected a whole number from 0 to 65535"),
        ("server: {port: 0777}", "server.port: got the text '0777', expected a whole number from 0 to 65535"),
        ("server: {port:}", "server.port: got nothing, expected a whole number from 0 to 65535"),
        ("server: {host: 'http://x'}", "server.host: got the text 'http://x', expected a name or an address"),
        ("server: {allowed_hosts: [a:80]}", "server.allowed_hosts[0]: got the text 'a:80', expected a name"),
        ("server: {allowed_hosts: a}", "server.allowed_hosts: got the text 'a', expected a list"),
        (
            "server: {header_timeout_s: 0}",
            "server.header_timeout_s: got the number 0, expected a number above 0",
        ),
        ("server: [1]", "server: got a list, expected a mapping"),
        ("port: 1", "port: unknown key; did you mean server.port?"),
        ("server: {zzz: 1}", "server.zzz: unknown key; known here: host, port,"),
        (
            "bus: {persist_path: 5}",
            "bus.persist_path: got the number 5, expected text without control characters; put",
        ),
        ("bus: {debounce_ms: 9, debounce_max_ms: 8}", "bus.debounce_max_ms: it must be at least debounce_ms"),
        ("routes: {event: a}", "routes: got a mapping, expected a list (of a mapping)"),
        ("routes: [a]", "routes[0]: got the text 'a', expected a mapping"),
        ("routes: [{target: a}]", "routes[0]: the key event is missing; it must be given"),
        ("routes: [{event: '', target: a}]", "routes[0].event: got the text '', expected a glob"),
        ("routes: [{event: a, target: ''}]", "routes[0].target: got the text '', expected text of 1 to 128"),
        (
            "routes: [{event: a, target: b, timeout_ms: 86400001}]",
            "routes[0].timeout_ms: got the number 86400001",
        ),
        (
            "routes: [{event: a, target: b, priority: p0}]",
            "routes[0].priority: got the text 'p0', expected one of P0,",
        ),
        (
            "routes: [{event: a, target: b, format: refs}]",
            "routes[0].format: got the text 'refs', expected one of",
        ),
        (
            "routes: [{event: a, target: b, match: {data.: x}}]",
            "routes[0].match.data.: unknown field; did you mean",
        ),
        (
            "routes: [{event: a, target: b, match: {zzz: x}}]",
            "routes[0].match.zzz: unknown field; known here: type,",
        ),
        (
            "routes: [{event: a, target: b, match: {source: []}}]",
            "routes[0].match.source: got 0 entries, expected at",
        ),
        (
            "routes: [{event: a, target: b, match: {tags: [{}]}}]",
            "routes[0].match.tags[0]: got a mapping, expected",
        ),
        (
            "routes: [{event: a, target: b, match: {tags: {}}}]",
            "routes[0].match.tags: got a mapping, expected a glob,",
        ),
        ("workspaces: [{name: a}]", "workspaces[0]: the key path is missing"),
        (
            "workspaces: [{path: x/a}, {path: y/a}]",
            "workspaces[1].name: the text 'a' is already the name of workspaces[0]",
        ),
        ("auth: {tokens: [{name: a}]}", "auth.tokens[0]: the secret is missing"),
        (
            "auth: {tokens: [{name: a, token: s, token_env: X}]}",
            "auth.tokens[0].token: there is a token_env too",
        ),
        (
            "auth: {tokens: [{name: a, token: s}, {name: b, token: s}]}",
            "auth.tokens[1].token: this is the secret of",
        ),
        (
            "auth: {tokens: [{name: a, token: s, scopes: [event:follow]}]}",
            "auth.tokens[0].scopes[0]: got the text",
        ),
        ("auth: {open: yes}", "auth.open: got the text 'yes', expected true or false"),
        ("models: {names: {'*': x}}", "models.names.*: no backend is named 'x'; there is none"),
        ("models: {names: {'': x}}", "models.names: the key must be a glob"),
        ("models: {shares: {a: 0.7, b: 0.7}}", "models.shares: the shares add up to 1.4"),
        ("models: {shares: {a: 2}}", "models.shares.a: got the number 2, expected a number from 0 to 1"),
        (
            "models: {backends: [{name: a, kind: llamacpp, url: 'http://h', concurrency: 1}]}",
            "models.backends[0].concurrency: a llamacpp backend has slots",
        ),
        (
            "models: {backends: [{name: a, kind: openai, url: 'http://u:p@h'}]}",
            "models.backends[0].url: got the text '…h', expected an http:// or https:// address",
        ),
        (
            "context: {summariser: llm}",
            "context.summariser: got the text 'llm', expected one of model, rules",
        ),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    (only,) = problems(text)
    assert only.partition(": ")[2].startswith(problem), only


def test_long_lists_are_bounded() -> None:
    assert problems(f"routes: [{'{event: a, target: b},' * 1001}]") == [
        "herdr.yaml:1:9: routes: got 1001 entries, expected at most 1000"
    ]


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(problems(f"server: {{port: {'x' * 5000}}}")[0]) < 200


def test_match_takes_globs_scalars_and_lists() -> None:
    match = {
        "source": "claude-code/*",
        "data.level": ("error", 3, True),
        "attr.x": "y",
        "task": 7,
        "data.a.b": 0.5,
    }
    text = "{source: claude-code/*, data.level: [error, 3, true], attr.x: y, task: 7, data.a.b: 0.5}"
    rule = read(f"routes: [{{event: '*', target: t, match: {text}}}]").config.routes[0]
    assert rule.match == match


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("none", "none"),
        ("{graph: true}", RouteContext(graph=True)),
        ("{session_tokens: 64}", RouteContext(64)),
        ("{session_tokens: 1000000, graph: true}", RouteContext(1_000_000, True)),
    ],
)
def test_a_rule_says_what_comes_beside_its_events(text: str, context: object) -> None:
    loaded = read(f"routes: [{{event: '*', target: t, context: {text}}}]")
    assert loaded.config.routes[0].context == context
    again = read(render(loaded))
    assert again.config.routes == loaded.config.routes
    origins = read(f"routes:\n- event: '*'\n  target: t\n  context: {text}").origins
    assert origins["routes[0].context"] == "herdr.yaml:4:12"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "non",
            "routes[0].context: got the text 'non', expected none, or a mapping with session_tokens (64 to",
        ),
        ("{}", "routes[0].context: it asks for nothing; give session_tokens"),
        ("{graph: false}", "routes[0].context: it asks for nothing; give session_tokens"),
        ("{graf: true, graph: true}", "routes[0].context.graf: unknown key; did you mean graph?"),
        ("{graph: yes}", "routes[0].context.graph: got the text 'yes', expected true or false"),
        ("{session_tokens: 1000001}", "routes[0].context.session_tokens: got the number 1000001, expected a"),
        ("[graph]", "routes[0].context: got a list, expected none, or a mapping with"),
    ],
)
def test_a_context_that_is_none_is_told(text: str, said: str) -> None:
    (only,) = problems(f"routes: [{{event: '*', target: t, context: {text}}}]")
    assert only.partition(": ")[2].startswith(said), only


def test_tokens_come_with_their_secret() -> None:
    text = "auth: {tokens: [{name: a, token_env: A_TOKEN, scopes: [admin]}, {name: b, token: plain}]}"
    tokens = read(text, {"A_TOKEN": "hidden"}).config.auth.tokens
    assert [token.token for token in tokens] == ["hidden", "plain"]
    assert tokens[1].scopes == ("events:publish", "events:follow")


def test_secrets_are_in_no_message_and_no_repr() -> None:
    assert "hunter2" not in repr(Token(name="a", token="hunter2"))
    tokens = "{name: a, token: hunter2 x}, {name: b, token: [hunter2]}, {name: c, tokn: hunter2}"
    text = f"auth: {{tokens: [{tokens}]}}"
    assert "hunter2" not in "\n".join(problems(text))


def test_routes_can_be_read_again_while_the_gateway_runs(here: Path) -> None:
    file = here / "herdr.yaml"
    file.write_text("routes: [{event: a, target: b}]")
    assert [rule.event for rule in parse_routes(file)] == ["a"]
    file.write_text("routes: [{event: c, target: b}, {event: d, target: b}]")
    assert [rule.name for rule in parse_routes(file)] == ["file-1", "file-2"]
    file.write_text("routes: [{event: c}]")
    with pytest.raises(ConfigError, match="the key target is missing"):
        parse_routes(file)
    environ = {"HERDR_GATEWAY_ROUTES": "[{event: x, target: y}]"}
    assert [rule.event for rule in parse_routes(file, environ)] == ["x"]  # as at the start: the variable wins


def test_a_password_in_an_address_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    file.write_text("models: {backends: [{name: a, kind: openai, url: 'http://user:hunter2@host/v1'}]}")
    with pytest.raises(ConfigError) as refused:
        load(file, {})
    assert "models.backends[0].url" in str(refused.value) and "hunter2" not in str(refused.value)


def test_backends_have_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    one = "{name: a, kind: openai, url: 'http://host'}"
    file.write_text(f"models: {{backends: [{one}, {one}]}}")
    with pytest.raises(ConfigError, match="already the name of"):
        load(file, {})
