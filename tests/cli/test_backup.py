import json
import sqlite3
from pathlib import Path

import pytest
from command_line import Cli
from gateway import GatewayProcess, running_gateway


def test_a_running_gateway_is_backed_up_and_restored(gateway: GatewayProcess, herdr: Cli) -> None:
    for n in range(3):
        herdr("publish", "a.b", "--id", str(n), "--source", "me")
    epoch = herdr.events()[0]["epoch"]
    made = herdr("backup", "copy.db", "--data", str(gateway.data))
    assert (made.returncode, made.stderr) == (0, "")
    assert "holds     3 events, seq 1 to 3" in made.stdout
    assert "verified: every event is whole" in made.stdout
    herdr("publish", "a.b", "--id", "late")
    busy = herdr("restore", "copy.db", "--data", str(gateway.data), "--force")
    assert busy.returncode == 1
    assert "stop it first" in busy.stderr
    gateway.stop()
    held = herdr("restore", "copy.db", "--data", str(gateway.data))
    assert held.returncode == 1
    assert "holds events: move it away, or repeat with --force" in held.stderr
    restored = herdr("restore", "copy.db", "--data", str(gateway.data), "--force", "--json")
    summary = json.loads(restored.stdout)
    assert (restored.returncode, summary["head"], summary["problems"]) == (0, 3, [])
    with running_gateway(gateway.data) as process:
        events = Cli(process.url, herdr.cwd).events()
    assert [event["id"] for event in events] == ["0", "1", "2"]
    assert {event["epoch"] for event in events} == {summary["epoch"]} != {epoch}


def test_the_log_is_found_as_serve_finds_it(gateway: GatewayProcess, herdr: Cli) -> None:
    path = str(gateway.data / "events.db")
    (herdr.cwd / "herdr.yaml").write_text(f"bus: {{persist_path: {path}}}\n")
    herdr("publish", "a.b")
    by_file = herdr("backup", "1.db", "--config", "herdr.yaml", "--json")
    by_environment = herdr("backup", "2.db", "--json", HERDR_GATEWAY_BUS__PERSIST_PATH=path)
    assert [json.loads(done.stdout)["events"] for done in (by_file, by_environment)] == [1, 1]


def test_nothing_is_overwritten(gateway: GatewayProcess, herdr: Cli) -> None:
    (herdr.cwd / "mine").write_text("precious")
    done = herdr("backup", "mine", "--data", str(gateway.data))
    assert (done.returncode, done.stdout) == (1, "")
    assert "mine exists already" in done.stderr
    assert (herdr.cwd / "mine").read_text() == "precious"


def test_damage_is_told_and_not_restored_unasked(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as process:
        herdr = Cli(process.url, tmp_path)
        herdr("publish", "a.b", "--data", '"whole"')
        herdr("publish", "a.b", "--data", '"broken"')
        process.stop()
    with sqlite3.connect(tmp_path / "data/events.db") as db:
        spoil = "UPDATE events SET body = CAST(replace(body, 'broken', 'BROKEN') AS BLOB) WHERE seq = 2"
        assert db.execute(spoil).rowcount == 1
    db.close()
    made = herdr("backup", "copy.db", "--data", "data")
    assert made.returncode == 1
    assert "1 damaged events, the first at seq 2" in made.stdout
    assert "the log is damaged" in made.stderr
    refused = herdr("restore", "copy.db", "--data", "other")
    assert refused.returncode == 1
    assert "copy.db is damaged" in refused.stderr
    assert herdr("restore", "copy.db", "--data", "other", "--force").returncode == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("backup", "copy.db", "--data", "nosuch"), "there is no log at nosuch/events.db"),
        (("restore", "nosuch.db", "--data", "data"), "there is no file nosuch.db"),
        (("restore", "text.txt", "--data", "data"), "text.txt"),
    ],
)
def test_mistakes_are_explained(nowhere: Cli, args: tuple[str, ...], said: str) -> None:
    (nowhere.cwd / "text.txt").write_text("no database")
    done = nowhere(*args)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
