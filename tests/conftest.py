"""Fixtures for all tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import `gateway` and other test parts

from gateway import GatewayProcess, running_gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A running gateway with an empty log and the default configuration."""
    with running_gateway(tmp_path / "data") as process:
        yield process
