"""PROTOCOL section 2: the routing table by API and file, kept across restarts, reloaded when the file changes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import accept, all_events, call, page, wait_until

RULE = {"event": "test.*", "target": "ann", "priority": "P0", "timeout_ms": 500, "format": "ref"}


def rules(gateway: GatewayProcess) -> dict[str, dict[str, Any]]:
    return {rule["name"]: rule for rule in call(gateway, "GET", "/v1/routes").json()["routes"]}


def test_a_rule_can_be_set_read_replaced_and_deleted(gateway: GatewayProcess) -> None:
    assert rules(gateway) == {}
    answer = call(gateway, "PUT", "/v1/routes/mine", RULE)
    assert answer.status == 201
    shown = answer.json()
    assert {key: shown[key] for key in RULE} == RULE and shown["name"] == "mine"
    assert call(gateway, "GET", "/v1/routes/mine").json() == shown == rules(gateway)["mine"]
    answer = call(gateway, "PUT", "/v1/routes/mine", {**RULE, "target": "bob"})
    assert (answer.status, answer.json()["target"]) == (200, "bob")
    assert call(gateway, "DELETE", "/v1/routes/mine").status == 204
    assert call(gateway, "DELETE", "/v1/routes/mine").status == 404
    assert rules(gateway) == {}


def test_a_rule_is_in_force_when_the_answer_comes(gateway: GatewayProcess) -> None:
    for number in range(10):
        call(gateway, "PUT", "/v1/routes/mine", {"event": "tool.*", "target": f"t{number}"})
        accept(gateway, type="tool.result")
        assert len(page(gateway, f"as=t{number}&after=0")["events"]) == 1
    call(gateway, "DELETE", "/v1/routes/mine")
    accept(gateway, type="tool.result")
    assert len(page(gateway, "as=t9&after=0")["events"]) == 1


@pytest.mark.parametrize("name", ["a/b", "with space", "\u00e4", "%"])
def test_names_may_hold_what_a_path_can(gateway: GatewayProcess, name: str) -> None:
    path = "/v1/routes/" + "".join(f"%{byte:02x}" for byte in name.encode())
    assert call(gateway, "PUT", path, RULE).status == 201
    assert list(rules(gateway)) == [name]
    assert call(gateway, "DELETE", path).status == 204


CONFIG = {
    "routes": [
        {"name": "one", "event": "tool.*", "target": "ann"},
        {"name": "two", "event": "test.*", "target": "ann"},
        {"event": "lint.*", "target": "ann"},
    ]
}


def write(path: Path, config: Any) -> None:
    """Save as an editor does: beside it, then in its place."""
    text = config if isinstance(config, str) else json.dumps(config)  # JSON is YAML
    path.with_suffix(".tmp").write_text(text)
    os.replace(path.with_suffix(".tmp"), path)


def test_the_table_survives_restarts_and_the_api_wins_over_the_file(tmp_path: Path) -> None:
    write(tmp_path / "herdr.yaml", CONFIG)
    start = (tmp_path / "data", "--config", str(tmp_path / "herdr.yaml"))
    with running_gateway(*start) as gateway:
        assert {name: rule["origin"] for name, rule in rules(gateway).items()} == {
            "one": "file", "two": "file", "file-3": "file",
        }  # fmt: skip
        call(gateway, "PUT", "/v1/routes/one", {"event": "other", "target": "bob"})
        call(gateway, "PUT", "/v1/routes/mine", RULE)
        assert call(gateway, "DELETE", "/v1/routes/two").status == 204
        before = rules(gateway)
        gateway.kill()
    with running_gateway(*start) as gateway:
        assert rules(gateway) == before
        assert set(before) == {"one", "file-3", "mine"}
        assert (before["one"]["target"], before["one"]["origin"]) == ("bob", "api")
        assert call(gateway, "DELETE", "/v1/routes/mine").status == 204
        assert gateway.stop() == 0
    with running_gateway(*start) as gateway:
        assert set(rules(gateway)) == {"one", "file-3"}


BROKEN = [
    "routes: [",
    "routes: {a: 1}",
    "routes:\n  - event: 'tool.*'\n",
    "routes:\n  - {event: '', target: ann}\n",
    "routes:\n  - {event: 'a', target: ann, colour: red}\n",
    "routes:\n  - {event: 'a', target: ann, match: {colour: red}}\n",
    "rotues: []\n",
]


def test_the_file_is_read_again_when_it_changes_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    write(file, CONFIG)
    with running_gateway(tmp_path / "data", "--config", str(file)) as gateway:
        for broken in BROKEN:
            refused = len(all_events(gateway, "type=herdr.routes_rejected"))
            write(file, broken)
            wait_until(
                lambda n=refused: len(all_events(gateway, "type=herdr.routes_rejected")) > n, "the refusal"
            )
            assert set(rules(gateway)) == {"one", "two", "file-3"}, broken
            assert any("herdr.yaml" in line and "old routes" in line for line in gateway.log)
        write(file, {"routes": [{"name": "new", "event": "tool.*", "target": "bob"}]})
        wait_until(lambda: set(rules(gateway)) == {"new"}, "the new table")
        accept(gateway, type="tool.result")
        assert len(page(gateway, "as=bob&after=0")["events"]) == 1
        file.unlink()
        wait_until(lambda: all_events(gateway, "type=herdr.routes_rejected")[len(BROKEN) :], "the refusal")
        assert set(rules(gateway)) == {"new"}
        write(file, {})
        wait_until(lambda: rules(gateway) == {}, "the empty table")
        assert not [line for line in gateway.log if "Traceback" in line]
