from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from herdr.cli.checks import bundle, gateway, settings
from herdr.config import Backend, load

TOKEN = "0123456789abcdef-token"
FILE = f"auth:\n  tokens:\n    - {{name: cli, token: {TOKEN}}}\n    - {{name: ci, token_env: CI}}\n"


def write(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "herdr.yaml"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_configuration_with_advice(tmp_path: Path) -> None:
    loaded, found = settings.configuration(write(tmp_path, FILE.replace(TOKEN, "short")), {"CI": "x" * 20})
    assert loaded is not None and [one.state for one in found] == ["ok", "warn"]
    loaded, found = settings.configuration(write(tmp_path, "bus: 1\n"), {})
    assert loaded is None and [one.state for one in found] == ["fail"]


@pytest.mark.parametrize(("mode", "state"), [(0o600, "ok"), (0o640, "warn"), (0o604, "warn")])
def test_files_with_tokens(tmp_path: Path, mode: int, state: str) -> None:
    loaded = load(write(tmp_path, FILE, mode), {"CI": "x" * 20})
    found = settings.secret_files(loaded)
    assert found.state == state and TOKEN not in found.detail
    assert ("chmod 600" in found.fix) == (state == "warn")
    other = load(write(tmp_path, "auth: {tokens: [{name: ci, token_env: CI}]}", mode), {"CI": "x" * 20})
    assert settings.secret_files(other).state == "ok"


def test_exposure(tmp_path: Path) -> None:
    def state(text: str) -> str:
        return settings.exposure(load(write(tmp_path, text), {"CI": "x" * 20})).state

    assert state("auth: {open: true}") == "ok"
    assert state("auth: {open: true}\nserver: {host: 0.0.0.0}") == "warn"
    assert state(f"{FILE}\nserver: {{host: 0.0.0.0}}") == "ok"


def test_allowed_hosts() -> None:
    assert settings.allowed_host(("localhost", "[::1]"), "http://[::1]:8787").state == "ok"
    found = settings.allowed_host(("localhost",), "http://Box.lan:8787")
    assert found.state == "fail" and "add box.lan to server.allowed_hosts" in found.fix


def test_backends_at_loopback() -> None:
    urls = {
        "a": "http://localhost:1",
        "b": "http://[::1]:1/v1",
        "c": "https://example.com",
        "d": "http://127.0.0.1",
    }
    found = settings.at_loopback(Backend(name, "openai", url) for name, url in urls.items())
    assert found == ["a", "b", "d"]


def test_the_secrets_that_are_known(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, FILE), {"CI": "of-the-variable"})
    environ = {"SOME_API_KEY": "key-of-another", "MONKEY": "keys-too", "PATH": "/bin", "X_TOKEN": "abc"}
    found = settings.known_secrets(loaded, environ, "given")
    assert found == [TOKEN, "of-the-variable", "key-of-another", "keys-too", "given"]


def test_a_secret_is_found_however_it_is_written() -> None:
    secret = 'a"b/c d+é'
    forms = [
        secret,
        "a%22b%2Fc%20d%2B%C3%A9",
        "a%22b%2Fc+d%2B%C3%A9",
        'a\\"b/c d+\\u00e9',
        "YSJiL2MgZCvDqQ==",
    ]
    assert bundle.without("|".join(forms), [secret]) == "|".join([bundle.GONE] * 5)


@pytest.mark.parametrize(("seconds", "state"), [(0, "ok"), (-2, "ok"), (-3, "warn"), (7200, "warn")])
def test_clocks(seconds: int, state: str) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    found = gateway.clock(gateway.Heard({}, at + timedelta(seconds=seconds), at))
    assert found.state == state
    assert gateway.clock(gateway.Heard({}, None, at)).state == "skip"
    if seconds == 7200:
        assert "2 h ahead of this one" in found.detail
