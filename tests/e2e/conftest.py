"""Fixtures of the end-to-end tests."""

from collections.abc import Iterator

import pytest
from gateway import GatewayProcess, running_gateway
from refusals import assert_serves
from wire import all_events, call

HEADER_S = BODY_S = "0.6"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all rows: each has to leave it as it was."""
    env = {
        "HERDR_GATEWAY_SERVER__HEADER_TIMEOUT_S": HEADER_S,
        "HERDR_GATEWAY_SERVER__BODY_TIMEOUT_S": BODY_S,
        "HERDR_GATEWAY_BUS__P2_PER_S": "0",
    }
    with running_gateway(tmp_path_factory.mktemp("bad") / "data", env=env) as process:
        yield process


@pytest.fixture
def unharmed(shared: GatewayProcess) -> Iterator[GatewayProcess]:
    """The shared gateway; afterwards nothing was stored and it serves as before."""
    before = all_events(shared)
    rules = call(shared, "GET", "/v1/routes").json()
    yield shared
    after = all_events(shared)
    assert after == before, "something of a refused request was stored"
    assert call(shared, "GET", "/v1/routes").json() == rules
    assert_serves(shared)
