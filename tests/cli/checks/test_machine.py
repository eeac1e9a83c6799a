import stat
from pathlib import Path

import pytest

from herdr.cli.checks import machine
from herdr.cli.checks.finding import Finding


def test_python() -> None:
    assert machine.interpreter((3, 11, 0)).state == "ok"
    assert machine.interpreter((3, 10, 9)).state == "fail"


@pytest.mark.parametrize(
    ("version", "noted"), [((3, 6, 23), False), ((3, 7, 0), True), ((3, 51, 2), True), ((3, 51, 3), False)]
)
def test_the_bug_of_sqlite_is_noted_and_no_failure(version: tuple[int, ...], noted: bool) -> None:
    found = machine.sqlite(version)
    assert found.state == "ok" and ("one connection does all writing" in found.detail) == noted


def test_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "open_files_max", lambda pid: 512)
    assert machine.open_files(1, 256).state == "ok"
    low = machine.open_files(1, 257)
    assert low.state == "warn" and "ulimit -n 513" in low.fix
    monkeypatch.setattr(machine, "open_files_max", lambda pid: None)
    assert "started here" in machine.open_files(1, 1).detail


def limits(proc: Path, watches: str, instances: str) -> Path:
    (proc / "sys/fs/inotify").mkdir(parents=True, exist_ok=True)
    (proc / "sys/fs/inotify/max_user_watches").write_text(watches)
    (proc / "sys/fs/inotify/max_user_instances").write_text(instances)
    return proc


def test_inotify(tmp_path: Path) -> None:
    assert machine.inotify(1, tmp_path).state == "skip"
    assert machine.inotify(1, limits(tmp_path, "65536\n", "128\n")).state == "ok"
    low = machine.inotify(1, limits(tmp_path, "8192\n", "128\n"))
    assert (low.state, low.fix) == ("warn", "run `sysctl fs.inotify.max_user_watches=524288` as root")
    assert "max_user_instances=1024" in machine.inotify(1, limits(tmp_path, "65536\n", "12\n")).fix
    assert machine.inotify(0, limits(tmp_path, "8192\n", "12\n")).state == "ok"  # nothing is watched


@pytest.mark.parametrize(
    ("environ", "state", "lacks"),
    [
        ({}, "ok", ""),
        ({"http_proxy": ""}, "ok", ""),
        ({"HTTPS_PROXY": "http://p:1"}, "warn", "127.0.0.1, localhost"),
        ({"http_proxy": "http://p:1", "no_proxy": "localhost, .example.com"}, "warn", "127.0.0.1:"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "LOCALHOST,127.0.0.1"}, "ok", ""),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "ok", ""),
    ],
)
def test_proxies(environ: dict[str, str], state: str, lacks: str) -> None:
    found = machine.proxies(environ)
    assert found.state == state and lacks in found.detail
    assert "http://p" not in found.detail  # it may hold a password


def program(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "herdr").write_text(text)
    (folder / "herdr").chmod(0o755)
    return folder


def test_another_herdr_on_path(tmp_path: Path) -> None:
    ours = program(tmp_path / "ours", "#!python\nfrom herdr.cli.main import main\n")
    other = program(tmp_path / "other", "#!/bin/sh\n")
    plain = program(tmp_path / "plain", "no program")
    (plain / "herdr").chmod(stat.S_IRUSR)
    assert machine.commands(f"{plain}:{ours}::{tmp_path}") == Finding("command", "ok", f"{ours}/herdr")
    assert "no herdr is on PATH" in machine.commands(str(tmp_path)).detail
    after, first = machine.commands(f"{ours}:{other}"), machine.commands(f"{other}:{ours}:{other}")
    assert after.state == first.state == "warn" and "herdr-gateway" in first.fix
    assert (
        f"{other}/herdr (comes after ours" in after.detail and f"{other}/herdr (comes first" in first.detail
    )


def test_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.state for one in machine.container(False, ["local"])] == ["ok"]
    monkeypatch.setattr(machine, "_resolved", lambda name: None)
    plain, backend = machine.container(True, ["local"])
    assert "not known here" in plain.detail and "--add-host=host.docker.internal" in backend.fix
    monkeypatch.setattr(machine, "_resolved", lambda name: "172.17.0.1")
    plain, backend = machine.container(True, ["local"])
    assert "172.17.0.1" in plain.detail and "--add-host" not in backend.fix and backend.state == "warn"
    assert len(list(machine.container(True, []))) == 1
