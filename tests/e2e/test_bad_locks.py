"""What bad input gets where locks are asked for: the right error, and a lock table that stays right."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from refusals import assert_problem
from wire import Socket, all_events, call

Locks = dict[str, Any]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with a watched folder in which links lead astray."""
    base = tmp_path_factory.mktemp("bad-locks")
    folder = base / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.js").write_text("1\n")
    (folder / "out").symlink_to(base)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "alias.js").symlink_to("src/a.js")
    os.link(folder / "src/a.js", folder / "twin.js")
    config = base / "herdr.yaml"
    config.write_text(f"workspaces: [{{name: shop, path: {folder}}}]\nlocks: {{expiry_delay_s: 0.2}}\n")
    with running_gateway(base / "data", "--config", str(config)) as gateway:
        yield gateway
        assert not [line for line in gateway.log if "Traceback" in line]


def post(gateway: GatewayProcess, **fields: Any) -> Any:
    return call(gateway, "POST", "/v1/locks", {"owner": "b", "workspace": "shop", **fields})


def held(gateway: GatewayProcess) -> list[Locks]:
    return list(call(gateway, "GET", "/v1/locks").json()["locks"])


@pytest.fixture
def unharmed(shop: GatewayProcess) -> Iterator[GatewayProcess]:
    """Afterwards nothing was granted or logged, and a good request is served."""
    events = all_events(shop, "type=lock.*")
    yield shop
    assert held(shop) == [] and all_events(shop, "type=lock.*") == events
    lease = post(shop, paths=["src/a.js"]).json()
    path = f"/v1/locks/{lease['lock']}?token={lease['token']}"
    assert call(shop, "DELETE", path).status == 204


BAD_PATHS = {
    "leads out": "../x",
    "leads out in the middle": "a/../../x",
    "absolute": "/etc/passwd",
    "home": "~/x",
    "NUL": "a\0b",
    "newline": "a\nb",
    "backslash": "src\\a.js",
    "drive letter": "C:/x",
    "too long": "d/" * 2500,
    "long name": "x" * 256,
    "empty": "",
    "half a character": "\ud800",
    "unknown resource": "git:stash",
    "link out of the workspace": "out/secret",
    "link to itself": "loop",
    "too many wildcards": "*a" * 40,
}


@pytest.mark.parametrize("path", BAD_PATHS.values(), ids=BAD_PATHS)
def test_bad_paths(unharmed: GatewayProcess, path: str) -> None:
    problem = assert_problem(
        post(unharmed, paths=["src/b.js", path]), 400, "bad_path", "invalid_request", "invalid_json"
    )
    assert str(unharmed.data.parent) not in problem["detail"]


BAD_FIELDS: dict[str, Locks] = {
    "no paths": {"paths": []},
    "too many paths": {"paths": [f"{n}.js" for n in range(10_000)]},
    "zero lease": {"ttl_s": 0},
    "negative lease": {"ttl_s": -5},
    "huge lease": {"ttl_s": 3601},
    "lease beyond all numbers": {"ttl_s": 1e308},
    "lease as text": {"ttl_s": "60"},
    "lease as truth": {"ttl_s": True},
    "long wait": {"wait_s": 601},
    "negative wait": {"wait_s": -1},
    "unknown mode": {"mode": "read"},
    "unknown field": {"force": True},
    "empty owner": {"owner": ""},
    "long purpose": {"purpose": "x" * 1025},
    "path as number": {"paths": [7]},
}


@pytest.mark.parametrize("fields", BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_bad_fields(unharmed: GatewayProcess, fields: Locks) -> None:
    problem = assert_problem(post(unharmed, **{"paths": ["src/a.js"], **fields}), 400, "invalid_request")
    (name,) = fields
    assert problem["errors"][0]["field"].startswith(name), problem


def test_an_unknown_workspace(unharmed: GatewayProcess) -> None:
    assert_problem(post(unharmed, paths=["a"], workspace="nope"), 404, "unknown_workspace")
    assert_problem(call(unharmed, "GET", "/v1/locks?workspace=nope"), 404, "unknown_workspace")
    assert_problem(call(unharmed, "GET", "/v1/locks?workspace=nope&path=a"), 404, "unknown_workspace")


def test_bad_frames_of_the_websocket(shop: GatewayProcess) -> None:
    good = {"paths": ["src/a.js"], "owner": "b", "workspace": "shop"}
    rows: list[tuple[str, Locks, str]] = [
        ("lock", {**good, "paths": ["../x"]}, "bad_path"),
        ("lock", {**good, "ttl_s": 0}, "invalid_request"),
        ("lock", {**good, "workspace": "nope"}, "unknown_workspace"),
        ("renew", {"lock": "L", "token": 1}, "unknown_lock"),
        ("unlock", {"lock": "L", "token": 1}, "unknown_lock"),
        ("unlock", {"cancel": 99}, "unknown_ref"),
        ("unwait", {"wait": "W"}, "unknown_wait"),
        ("wait", {"owner": "a", "on": "a"}, "deadlock"),
    ]
    with Socket(shop) as socket:
        for ref, (op, fields, code) in enumerate(rows, 1):
            answer = socket.ask(op, ref=ref, **fields)
            assert (answer["op"], answer["code"]) == ("error", code), (op, answer)
    assert held(shop) == []


def test_releasing_and_renewing_what_is_not_ones_own(shop: GatewayProcess) -> None:
    lease = post(shop, paths=["src/a.js"], ttl_s=0.5).json()
    path = f"/v1/locks/{lease['lock']}"
    for method in ("PUT", "DELETE"):
        assert_problem(call(shop, method, path), 400, "invalid_request")  # no token
        assert_problem(call(shop, method, f"{path}?token={lease['token'] + 1}"), 409, "fenced")
        assert_problem(call(shop, method, f"/v1/locks/nope?token={lease['token']}"), 404, "unknown_lock")
    assert len(held(shop)) == 1
    assert call(shop, "DELETE", f"{path}?token={lease['token']}").status == 204
    assert_problem(call(shop, "DELETE", f"{path}?token={lease['token']}"), 404, "unknown_lock")  # twice
    brief = post(shop, paths=["src/a.js"], ttl_s=0.2).json()
    after = call(
        shop, "POST", "/v1/locks", {"paths": ["src/a.js"], "workspace": "shop", "owner": "c", "wait_s": 30}
    )
    assert after.status == 201 and after.json()["token"] > brief["token"]  # it has run out
    assert_problem(
        call(shop, "PUT", f"/v1/locks/{brief['lock']}?token={brief['token']}"), 404, "unknown_lock"
    )
    assert (
        call(shop, "DELETE", f"/v1/locks/{after.json()['lock']}?token={after.json()['token']}").status == 204
    )


@pytest.mark.parametrize(
    "other",
    ["src/./a.js", "src//a.js", "src/x/../a.js", "alias.js", "twin.js", "src", "src/", "**/*.js", "."],
)
def test_two_names_for_one_file(shop: GatewayProcess, other: str) -> None:
    lease = post(shop, paths=["src/a.js"], owner="a").json()
    refused = post(shop, paths=[other])
    assert call(shop, "DELETE", f"/v1/locks/{lease['lock']}?token={lease['token']}").status == 204
    assert (refused.status, refused.json()["code"]) == (409, "locked")
    assert refused.json()["conflicts"][0]["owner"] == "a"
