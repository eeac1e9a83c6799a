"""The container's entry point: which configuration is used."""

import sys
from pathlib import Path

import pytest

from herdr.cli import entrypoint
from herdr.cli.main import build_parser


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ([], "mounted"),
        (["serve", "--port", "1"], "mounted"),
        (["--port", "1"], "mounted"),
        (["serve", "--config", "/x"], "/x"),
        (["serve", "--config=/x"], "/x"),
        (["--config=/x"], "/x"),
    ],
)
def test_a_given_configuration_wins_over_the_mounted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], used: str
) -> None:
    mounted = tmp_path / "config.yaml"
    mounted.write_text("{}")
    called: list[list[str]] = []
    monkeypatch.setattr(entrypoint, "CONFIG", mounted)
    monkeypatch.setattr(entrypoint, "main", lambda arguments: called.append(arguments) or 0)
    monkeypatch.setattr(entrypoint.os, "geteuid", lambda: 10001)
    monkeypatch.setattr(entrypoint.os, "environ", {})
    monkeypatch.setattr(sys, "argv", ["entrypoint", *given])
    entrypoint.run()
    (arguments,) = called
    assert str(build_parser().parse_args(arguments).config) == (str(mounted) if used == "mounted" else used)
