"""Fixtures: the command line, with and without a gateway."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Cli
from gateway import GatewayProcess, running_gateway

NOWHERE = "http://127.0.0.1:1"  # port 1 needs root, and nothing listens there


@pytest.fixture
def herdr(gateway: GatewayProcess, tmp_path: Path) -> Cli:
    """The command line, and a gateway with an empty log."""
    return Cli(gateway.url, tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """The command line, and a gateway that the tests of a file share."""
    folder = tmp_path_factory.mktemp("shared")
    with running_gateway(folder / "data") as process:
        yield Cli(process.url, folder)


@pytest.fixture
def nowhere(tmp_path: Path) -> Cli:
    """The command line, and no gateway."""
    return Cli(NOWHERE, tmp_path)
