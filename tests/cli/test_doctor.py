import json
import os
import re
import socket
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from gateway import running_gateway
from holding_proxy import holding_proxy
from json_server import Call, json_server

WELL = {"status": "ok", "version": "9", "uptime_s": 60, "workspaces": {}, "backends": []}
NOWHERE = "http://127.0.0.1:1"
CANARIES = {
    "token": "canary-token/with+odd=characters",
    "key": "canary-key-of-a-backend",
    "other": "hrd_" + "canary1234567890abcdefghijklmnopqr",
    "in text": "sk-ant-api03-" + "canary" * 8,
}


def checks(herdr: Cli, *args: str, code: int = 0, **environ: str) -> dict[str, list[dict[str, str]]]:
    """Run it for JSON, and return the findings by check."""
    done = herdr("doctor", "--json", *args, HOME=str(herdr.cwd), **environ)
    assert (done.returncode, done.stderr) == (code, ""), done
    report = json.loads(done.stdout)
    assert report["ok"] == (code == 0) and report["url"]
    found: dict[str, list[dict[str, str]]] = {}
    for one in report["checks"]:
        assert (one["fix"] == "") == (one["state"] in ("ok", "skip")), one
        found.setdefault(one.pop("check"), []).append(one)
    counted = [one["state"] for ones in found.values() for one in ones]
    assert report["counts"] == {state: counted.count(state) for state in ("ok", "warn", "fail", "skip")}
    return found


def states(found: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check: ones[0]["state"] for check, ones in found.items()}


def test_all_is_well(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/cart.py").write_text("def total(): ...\n")
    with running_gateway(tmp_path / "data", "--workspace", str(tmp_path / "shop")) as gateway:
        found = checks(Cli(gateway.url, tmp_path))
    assert not {check for check, state in states(found).items() if state == "fail"}
    details = {check: ones[0]["detail"] for check, ones in found.items()}
    assert str(gateway.pid) in details["port"] and str(gateway.pid) in details["lock"]
    assert str(tmp_path / "data") in details["data folder"]  # found without being told
    assert re.match(r"an event came back in \d+ ms", details["stream"])
    assert details["workspaces"].startswith("shop: ") and details["index"].startswith("shop: ")
    assert details["clock"] == "within 2 s of the gateway's"
    assert re.match(r"median [\d.]+ ms", details["fsync"])
    assert {
        "python",
        "sqlite",
        "open files",
        "inotify",
        "disk space",
        "file system",
        "privacy",
    } <= details.keys()


def test_the_probe_is_one_event(herdr: Cli) -> None:
    checks(herdr)
    assert [(event["type"], event["source"]) for event in herdr.events()] == [
        ("doctor.probe", "herdr-doctor")
    ]


def test_without_a_gateway_the_other_checks_run(nowhere: Cli) -> None:
    found = checks(nowhere, "--data", str(nowhere.cwd), code=1)
    seen = states(found)
    assert seen["gateway"] == "fail" and "herdr serve" in found["gateway"][0]["fix"]
    assert {seen[check] for check in ("clock", "token", "stream", "workspaces")} == {"skip"}
    assert found["port"][0]["detail"] == "1 is free"
    assert found["lock"][0]["detail"].startswith("no gateway uses the folder")
    assert seen["fsync"] == seen["configuration"] == seen["backends"] == "ok"


def test_for_people(nowhere: Cli) -> None:
    done = nowhere("doctor")
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and "\x1b" not in done.stdout
    at = next(n for n, line in enumerate(lines) if line.startswith("fail  gateway       nothing listens at"))
    assert lines[at + 1].startswith(" " * 20 + "→ start the gateway with `herdr serve`")
    assert re.fullmatch(r"\d+ well(, \d+ to look at)?, 1 failed, 4 not checked", lines[-1])
    code, shown = nowhere.at_terminal("doctor")
    assert code == 1 and "\x1b[31mfail  gateway" in shown


def test_a_port_that_something_else_holds(tmp_path: Path) -> None:
    with json_server(lambda call: (200, {"hello": "world"})) as url:
        found = checks(Cli(url, tmp_path), code=1)
    assert found["port"][0]["state"] == found["gateway"][0]["state"] == "fail"
    assert f"is held by pid {os.getpid()} (" in found["port"][0]["detail"]
    assert "not a Herdr gateway" in found["gateway"][0]["detail"]


@pytest.mark.parametrize(
    ("until", "said"), [(b"", "no byte of a stream"), (b"retry:", "did not come within 3 s")]
)
def test_a_proxy_that_collects_a_stream(tmp_path: Path, until: bytes, said: str) -> None:
    with running_gateway(tmp_path / "data") as gateway, holding_proxy(gateway.port, until) as url:
        found = checks(Cli(url, tmp_path), "--data", str(tmp_path / "data"), code=1)
    assert found["stream"][0]["state"] == "fail" and said in found["stream"][0]["detail"]
    assert "proxy_buffering off" in found["stream"][0]["fix"]
    assert found["gateway"][0]["state"] == "ok"


def test_a_name_that_the_gateway_does_not_answer_to(tmp_path: Path) -> None:
    environ = {"HERDR_GATEWAY_SERVER__ALLOWED_HOSTS": "[herdr.example]"}
    with running_gateway(tmp_path / "data", env=environ) as gateway:
        found = checks(Cli(gateway.url, tmp_path), code=1, **environ)
    assert found["host"][0]["state"] == found["gateway"][0]["state"] == "fail"
    assert "server.allowed_hosts" in found["gateway"][0]["detail"] + found["gateway"][0]["fix"]


def test_a_gateway_elsewhere(tmp_path: Path) -> None:
    found = checks(Cli("http://127.9.9.9:1", tmp_path), code=1)
    assert found["data folder"][0]["state"] == "skip" and "port" not in found


def test_the_configuration_is_wrong(nowhere: Cli) -> None:
    (nowhere.cwd / "herdr.yaml").write_text("server: {prot: 1}\n")
    found = checks(nowhere, "--config", "herdr.yaml", code=1)
    assert found["configuration"][0]["state"] == "fail" and "prot" in found["configuration"][0]["detail"]


def secretive(folder: Path) -> tuple[Path, dict[str, str]]:
    """Write a configuration with every kind of secret; returns it, and the environment that it needs."""
    config = folder / "herdr.yaml"
    config.write_text(
        "auth:\n  tokens:\n"
        f"    - {{name: cli, token: {json.dumps(CANARIES['token'])}, scopes: [events:publish, events:follow]}}\n"
        "    - {name: ci, token_env: CI_SECRET}\n"
        "models:\n  backends:\n"
        "    - {name: cloud, kind: openai, url: 'http://127.0.0.1:1', api_key_env: CLOUD_KEY}\n"
        f"workspaces:\n  - {{name: {CANARIES['in text']}, path: {folder}}}\n"
    )
    config.chmod(0o600)
    return config, {"CI_SECRET": CANARIES["other"], "CLOUD_KEY": CANARIES["key"]}


def test_a_bundle_holds_no_secret(tmp_path: Path) -> None:
    config, environ = secretive(tmp_path)
    file = tmp_path / "report.zip"
    with running_gateway(tmp_path / "data", "--config", str(config), env=environ) as gateway:
        herdr = Cli(gateway.url, tmp_path)
        herdr("publish", "tool.result", HERDR_GATEWAY_TOKEN=CANARIES["token"])
        args = ("doctor", "--config", str(config), "--bundle", str(file))
        environ |= {"HERDR_GATEWAY_TOKEN": CANARIES["token"], "HERDR_OWNER": CANARIES["key"]}
        done = herdr(*args, **environ)
        again = herdr(*args, **environ)
    assert done.returncode == 1, done  # the backend is away
    assert "read it before you send it" in done.stderr
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert texts.keys() == {
        *(
            "doctor.json",
            "versions.json",
            "environment.json",
            "configuration.yaml",
            "healthz.json",
            "metrics.txt",
        )
    }
    wrong = tmp_path / "wrong.zip"
    Cli(NOWHERE, tmp_path)(
        "doctor", "--config", str(config), "--bundle", str(wrong), **environ, HERDR_GATEWAY_X="1"
    )
    with zipfile.ZipFile(wrong) as bundle:  # of a configuration that cannot be used
        texts |= {f"wrong {name}": bundle.read(name).decode() for name in bundle.namelist()}
    for name, text in texts.items():
        assert "canary" not in text, (name, re.findall(".*canary.*", text))
        assert not name.endswith(".json") or json.loads(text)
    assert "cloud" in texts["configuration.yaml"] and "herdr_" in texts["metrics.txt"]
    assert json.loads(texts["versions.json"])["packages"]["msgspec"]
    assert json.loads(texts["environment.json"])["HERDR_GATEWAY_TOKEN"] == "(set)"
    assert json.loads(texts["doctor.json"])["ok"] is False


def test_a_backend_that_is_away_is_named(tmp_path: Path) -> None:
    config, environ = secretive(tmp_path)
    found = checks(Cli(NOWHERE, tmp_path), "--config", str(config), code=1, **environ)
    assert (
        found["backends"][0]["state"] == "fail"
        and "cloud takes no connection" in found["backends"][0]["detail"]
    )
    del environ["CLOUD_KEY"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config.write_text(
            config.read_text().replace("127.0.0.1:1'", f"127.0.0.1:{listener.getsockname()[1]}'")
        )
        found = checks(Cli(NOWHERE, tmp_path), "--config", str(config), code=1, **environ)
    assert [one["state"] for one in found["backends"]] == ["warn", "ok"]
    assert "CLOUD_KEY is not set here" in found["backends"][0]["detail"]


def heard(
    tmp_path: Path, health: Any, *args: str, code: int = 0, **answers: Any
) -> dict[str, list[dict[str, str]]]:
    """What is found about a gateway that says this of itself."""

    def answer(call: Call) -> tuple[int, Any]:
        known = {
            "/healthz": (200, {**WELL, **health}),
            **{f"/v1/{path}": said for path, said in answers.items()},
        }
        return known.get(call.path, (404, {"code": "not_found", "detail": "no such path"}))

    with json_server(answer) as url:
        return checks(Cli(url, tmp_path), *args, code=code)


def test_what_the_gateway_says_of_itself(tmp_path: Path) -> None:
    backends = [{"name": name, "state": name} for name in ("ready", "unreachable", "paused")]
    workspaces = {
        "shop": {"status": "watching", "files": 1},
        "lib": {"status": "lost", "files": 0, "note": "gone"},
    }
    said = {"backends": backends, "workspaces": workspaces, "warnings": ["everyone may come in"]}
    graph = {"graph": {"state": "failed", "detail": "a crash"}}
    found = heard(tmp_path, said, code=1, **{"context/shop": (200, graph)})
    assert [one["state"] for one in found["backends"]] == ["ok", "fail", "warn"]
    assert [one["state"] for one in found["workspaces"]] == ["ok", "warn"]
    assert [one["state"] for one in found["index"]] == ["warn", "skip"]
    assert found["index"][0]["detail"] == "shop: failed (a crash)"
    assert [one["state"] for one in found["gateway"]] == ["ok", "warn"]
    assert heard(tmp_path, {"status": "degraded", "reasons": ["x"]})["gateway"][0]["state"] == "warn"
    failing = heard(tmp_path, {"status": "failing", "reasons": ["the disk is full"]}, code=1)
    assert failing["gateway"][0]["state"] == "fail" and "the disk is full" in failing["gateway"][0]["detail"]


def test_what_the_token_allows(tmp_path: Path) -> None:
    def said(me: Any, *args: str, code: int = 0) -> dict[str, str]:
        return heard(tmp_path, {}, *args, code=code, me=me)["token"][-1]

    assert said((200, {"name": "anonymous", "open": True}))["detail"] == "the gateway asks for none"
    assert (
        said((200, {"name": "me", "scopes": None, "open": False}))["detail"] == "me, which may do everything"
    )
    assert (
        said((200, {"name": "me", "scopes": ["locks", "tasks"], "open": False}))["detail"]
        == "me: locks, tasks"
    )
    refused = said((401, {"code": "unauthorized", "detail": "this gateway asks for a token"}), code=1)
    assert refused["state"] == "fail" and "HERDR_GATEWAY_TOKEN" in refused["fix"]
    assert said((404, {"code": "not_found", "detail": "nothing is there"}))["state"] == "skip"
    visible = heard(tmp_path, {}, "--token", "x" * 20, me=(200, {"name": "me", "scopes": None}))["token"]
    assert [one["state"] for one in visible] == ["warn", "ok"]


def test_the_settings_of_tools(nowhere: Cli) -> None:
    (nowhere.cwd / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"herdr": {"url": f"{nowhere.url}/mcp"}}})
    )
    (nowhere.cwd / ".claude").mkdir()
    (nowhere.cwd / ".claude/settings.json").write_text('{"url": "http://elsewhere:9/hooks/claude-code"}')
    (nowhere.cwd / ".codex").mkdir()
    (nowhere.cwd / ".codex/config.toml").write_text('[mcp_servers.herdr]\nurl = "http://there:9/mcp"\n')
    (nowhere.cwd / "opencode.json").write_text('{"mcp": {"another": {"url": "http://other:9/mcp"}}}')
    found = checks(nowhere, code=1)["clients"]
    assert sorted((one["state"], one["detail"].split()[0].rpartition("/")[2]) for one in found) == [
        ("ok", ".mcp.json"),
        ("warn", "config.toml"),
        ("warn", "settings.json"),
    ]
    assert "http://elsewhere:9" in "".join(one["detail"] for one in found)
