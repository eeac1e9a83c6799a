"""`herdr open` against a real gateway: the address, and with tokens a link that a browser is signed in by."""

import json
from pathlib import Path

import pytest
from command_line import Cli
from gateway import running_gateway
from wire import call

TOKENS = {"auth": {"tokens": [{"name": "boss", "token": "boss-secret", "scopes": ["admin"]}]}}


def test_without_tokens_it_is_the_address(tmp_path: Path, nowhere: Cli) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        done = nowhere("open", "--url", gateway.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{gateway.url}/\n", "")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_with_tokens_it_is_a_link_that_signs_in(
    tmp_path: Path, nowhere: Cli, options: tuple[str, ...]
) -> None:
    config = tmp_path / "herdr.yaml"
    config.write_text(json.dumps(TOKENS))
    with running_gateway(tmp_path / "data", "--config", str(config)) as gateway:
        refused = nowhere("open", "--url", gateway.url)
        assert refused.returncode == 4 and "HERDR_GATEWAY_TOKEN" in refused.stderr
        done = nowhere("open", "--url", gateway.url, "--token", "boss-secret", *options)
        assert done.returncode == 0, done.stderr
        link = json.loads(done.stdout)["url"] if options else done.stdout.strip()
        address, _, ticket = link.partition("/#login=")
        assert address == gateway.url
        assert call(gateway, "POST", "/v1/browser-sessions", {"ticket": ticket}).status == 204
        assert call(gateway, "POST", "/v1/browser-sessions", {"ticket": ticket}).status == 401
