"""Settings from environment variables."""

import re
from pathlib import Path

import pytest
from msgspec import inspect

from herdr.config import Config, ConfigError, load
from herdr.config.environment import variable_names


def config_of(**environ: str) -> Config:
    return load(None, {f"HERDR_GATEWAY_{name}": text for name, text in environ.items()}).config


def problem_of(**environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config_of(**environ)
    (problem,) = caught.value.problems
    return str(problem)


def test_scalars_are_read_by_the_type_of_their_key() -> None:
    assert config_of(SERVER__PORT="9000").server.port == 9000
    assert config_of(AUTH__OPEN="true").auth.open is True
    assert config_of(CONTEXT__PROJECT_GRAPH_TTL="0.5").context.project_graph_ttl == 0.5
    assert config_of(BUS__RETENTION__MAX_AGE_S="86400").bus.retention.max_age_s == 86400


@pytest.mark.parametrize("text", ["true", "123", "*x", "a: b", "null", "- x", "'q'"])
def test_text_is_taken_as_it_stands(text: str) -> None:
    assert config_of(BUS__PERSIST_PATH=text).bus.persist_path == text


def test_lists_and_mappings_are_yaml() -> None:
    rules = config_of(ROUTES='[{event: "*", target: x}, {event: a, target: y}]').routes
    assert [(rule.name, rule.event, rule.target) for rule in rules] == [
        ("file-1", "*", "x"),
        ("file-2", "a", "y"),
    ]
    assert config_of(SERVER__ALLOWED_HOSTS="[a, b]").server.allowed_hosts == ("a", "b")
    assert config_of(MODELS__SHARES="{a: 0.5}").models.shares == {"a": 0.5}
    assert config_of(SERVER="{port: 1, host: '::1'}").server.port == 1


def test_items_of_lists_and_mappings() -> None:
    config = config_of(
        ROUTES="[{event: a, target: b}]",
        ROUTES__0__PRIORITY="P0",
        ROUTES__0__MATCH__SOURCE="cursor",
        ROUTES__1__EVENT="c",
        ROUTES__1__TARGET="d",
        MODELS__SHARES__PRIMARY_AGENT="0.25",
        SERVER__ALLOWED_HOSTS__0="x",
    )
    assert [(r.event, r.priority, r.match) for r in config.routes] == [
        ("a", "P0", {"source": "cursor"}),
        ("c", None, {}),
    ]
    assert config.models.shares == {"primary_agent": 0.25}
    assert config.server.allowed_hosts == ("x",)


def test_items_are_counted_as_numbers() -> None:
    environ = {f"ROUTES__{n}__{key}": f"{key.lower()}{n}" for n in range(12) for key in ("EVENT", "TARGET")}
    assert [rule.event for rule in config_of(**environ).routes] == [f"event{n}" for n in range(12)]


def test_items_change_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    file.write_text("routes: [{event: a, target: b, priority: P1}]\nserver:\n")
    loaded = load(file, {"HERDR_GATEWAY_ROUTES__0__PRIORITY": "P0", "HERDR_GATEWAY_SERVER__PORT": "1"})
    assert (loaded.config.routes[0].target, loaded.config.routes[0].priority) == ("b", "P0")
    assert loaded.origins["routes[0].priority"] == "HERDR_GATEWAY_ROUTES__0__PRIORITY"
    assert loaded.origins["routes[0].target"] == f"{file}:1:29"


def test_a_variable_does_not_hide_what_is_wrong_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    file.write_text("server: 5\nroutes: {}\n")
    environ = {"HERDR_GATEWAY_SERVER__PORT": "1", "HERDR_GATEWAY_ROUTES__0__EVENT": "a"}
    with pytest.raises(ConfigError) as caught:
        load(file, environ)
    assert [problem.path for problem in caught.value.problems] == ["server", "routes"]


def test_an_item_that_leaves_a_hole() -> None:
    assert problem_of(ROUTES__2__EVENT="a") == (
        "HERDR_GATEWAY_ROUTES__2__EVENT: routes[2]: the list has 0 items; the next one is 0"
    )


def test_a_variable_set_to_nothing_is_not_set() -> None:
    assert config_of(SERVER__PORT="", ROUTES="", NONSENSE="") == Config()


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("SERVER__PROT", "HERDR_GATEWAY_SERVER__PORT"),
        ("SERVER_PORT", "HERDR_GATEWAY_SERVER__PORT"),
        ("server__port", "HERDR_GATEWAY_SERVER__PORT"),
        ("CONFIGS", "HERDR_GATEWAY_CONFIG"),
        ("ROUTES__0__PRIO", "HERDR_GATEWAY_ROUTES__0__PRIORITY"),
        ("ROUTES__10__TARGETS", "HERDR_GATEWAY_ROUTES__10__TARGET"),
        ("SERVER__PORT__X", "HERDR_GATEWAY_SERVER__PORT"),
        ("SERVER__PORT_FILE", "HERDR_GATEWAY_SERVER__PORT"),
    ],
)
def test_unknown_variables_are_refused_with_the_nearest_name(name: str, suggested: str) -> None:
    assert problem_of(**{name: "1"}) == f"HERDR_GATEWAY_{name}: unknown variable; did you mean {suggested}?"


def test_wrong_values_name_the_variable() -> None:
    assert problem_of(SERVER__PORT="high") == (
        "HERDR_GATEWAY_SERVER__PORT: server.port: got the text 'high', "
        "expected a whole number from 0 to 65535"
    )
    assert problem_of(ROUTES="[{event: a}]") == (
        "HERDR_GATEWAY_ROUTES: routes[0]: the key target is missing; it must be given"
    )
    assert problem_of(ROUTES="[").startswith("HERDR_GATEWAY_ROUTES: not YAML: while parsing a flow")
    assert problem_of(BUS__DURABILITY="ful").endswith("expected one of full, os; did you mean full?")


def test_variables_that_are_not_settings() -> None:
    foreign = {
        "URL": "http://127.0.0.1:8787",
        "TOKEN": "secret",
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "8787",
        "SERVICE_PORT_HTTP": "8787",
        "PORT": "tcp://10.0.0.1:8787",
        "PORT_8787_TCP": "tcp://10.0.0.1:8787",
        "PORT_8787_TCP_ADDR": "10.0.0.1",
    }
    assert config_of(**foreign) == Config()
    assert load(None, {"PATH": "/bin", "HERDR_OTHER": "x"}).config == Config()


def test_a_port_without_its_section_is_a_mistake() -> None:
    assert "unknown variable" in problem_of(PORT="9000")


def test_secrets_may_come_from_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden\n")
    config = config_of(AUTH__TOKENS__0__NAME="ci", AUTH__TOKENS__0__TOKEN_FILE=str(secret))
    assert config.auth.tokens[0].token == "hidden"
    absent = problem_of(
        AUTH__TOKENS="[{name: a, token: t}]", AUTH__TOKENS__0__TOKEN_FILE=str(tmp_path / "no")
    )
    assert absent.endswith("cannot read the file that it names: No such file or directory")


def test_every_key_has_a_variable() -> None:
    names = variable_names(inspect.type_info(Config))
    assert len(names) == len(set(names)) > 60
    for name in names:
        try:
            load(None, {re.sub(r"__N(?=__|$)", "__0", name): "[{}]"})  # wrong for all that is not text
        except ConfigError as error:
            assert "unknown variable" not in error.detail, name
