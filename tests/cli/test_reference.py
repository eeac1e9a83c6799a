"""The reference names every command and every option, and every --help has an example."""

import argparse
from pathlib import Path

import pytest

from herdr.cli.main import GROUPS, build_parser

REFERENCE = (Path(__file__).parent.parent.parent / "docs/reference/cli.md").read_text()


def parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parser's own parts by name; none for a command without parts."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


COMMANDS = parsers(build_parser())


def section(name: str) -> str:
    _, heading, rest = REFERENCE.partition(f"\n## {name}\n")
    assert heading, f"no section for {name}"
    return rest.partition("\n## ")[0]


def test_there_is_a_section_for_each_command() -> None:
    assert set(COMMANDS) == set(GROUPS)
    for name in GROUPS:
        assert section(name)


@pytest.mark.parametrize("name", GROUPS)
def test_every_option_is_described(name: str) -> None:
    shared = section("What all commands share")
    for parser in (COMMANDS[name], *parsers(COMMANDS[name]).values()):
        for action in parser._actions:
            for option in action.option_strings:
                if option not in ("-h", "--help"):
                    assert f"{option}" in section(name) + shared, f"{name} {option}"


@pytest.mark.parametrize("name", sorted(set(GROUPS) - {"serve"}))
def test_every_help_has_an_example(name: str) -> None:
    for parser in (COMMANDS[name], *parsers(COMMANDS[name]).values()):
        assert f"herdr {name}" in parser.format_help().partition("example")[2], parser.prog
