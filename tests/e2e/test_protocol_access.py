"""Who may call: tokens and scopes on every endpoint, the Host and Origin guard, open and closed starts."""

import contextlib
import http.client
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, refused_start, running_gateway
from refusals import assert_problem
from websockets.exceptions import InvalidStatus
from wire import Answer, Socket, call, health, send_raw

from herdr.cli.container import in_container
from herdr.web.surface import Endpoint

TOKENS = {
    "publisher": ["events:publish"],
    "follower": ["events:follow"],
    "loud": ["events:publish", "events:p0"],
    "router": ["routes"],
    "boss": ["admin"],
    "asker": ["models"],
    "locker": ["locks"],
    "sharer": ["context"],
    "tasker": ["tasks"],
}
SECRETS = {name: f"hrd_{name}_0123456789abcdef" for name in TOKENS}

# The whole surface, written down once more: an endpoint that is added without a decision fails here.
SURFACE: dict[tuple[str, str], str | None] = {
    ("POST", "/v1/events"): "events:publish",
    ("GET", "/v1/events"): "events:follow",
    ("GET", "/v1/events/{seq}"): "events:follow",
    ("POST", "/v1/events/{seq}/redact"): "admin",
    ("POST", "/v1/targets/{name}/ack"): "events:follow",
    ("GET", "/v1/routes"): "routes",
    ("GET", "/v1/routes/{name}"): "routes",
    ("PUT", "/v1/routes/{name}"): "routes",
    ("DELETE", "/v1/routes/{name}"): "routes",
    ("GET", "/v1/workspaces"): "events:follow",
    ("POST", "/v1/workspaces"): "admin",
    ("DELETE", "/v1/workspaces/{name}"): "admin",
    ("POST", "/v1/locks"): "locks",
    ("GET", "/v1/locks"): "locks",
    ("POST", "/v1/locks/check"): "locks",
    ("GET", "/v1/locks/{lock}"): "locks",
    ("PUT", "/v1/locks/{lock}"): "locks",
    ("DELETE", "/v1/locks/{lock}"): "locks",
    ("POST", "/v1/waits"): "locks",
    ("GET", "/v1/waits"): "locks",
    ("DELETE", "/v1/waits"): "locks",
    ("DELETE", "/v1/waits/{wait}"): "locks",
    ("POST", "/v1/tasks"): "tasks",
    ("GET", "/v1/tasks"): "tasks",
    ("POST", "/v1/tasks/claim"): "tasks",
    ("GET", "/v1/tasks/{task}"): "tasks",
    **{
        ("POST", f"/v1/tasks/{{task}}/{verb}"): "tasks"
        for verb in (
            *(
                "claim",
                "renew",
                "hand-over",
                "ask",
                "answer",
                "release",
                "finish",
                "fail",
                "reject",
                "cancel",
            ),
        )
    },
    ("POST", "/v1/chat"): "models",
    ("GET", "/v1/pool"): "models",
    ("GET", "/v1/calls"): "models",
    ("GET", "/v1/context/{workspace}"): "context",
    ("POST", "/v1/context/{workspace}/index"): "context",
    **{
        ("GET", f"/v1/context/{{workspace}}/graph/{question}"): "context"
        for question in ("map", "files/{path}", "symbols", "callers", "callees", "dependents", "skipped")
    },
    ("GET", "/v1/blobs/{sha256}"): "context",
    ("GET", "/v1/sessions"): "context",
    ("GET", "/v1/sessions/{session}"): "context",
    ("DELETE", "/v1/sessions/{session}"): "context",
    ("GET", "/v1/sessions/{session}/messages"): "context",
    ("POST", "/v1/sessions/{session}/messages"): "context",
    ("GET", "/v1/artifacts"): "context",
    ("GET", "/v1/artifacts/{name}"): "context",
    ("PUT", "/v1/artifacts/{name}"): "context",
    ("DELETE", "/v1/artifacts/{name}"): "context",
    ("GET", "/v1/snapshots/{workspace}"): "context",
    ("POST", "/v1/snapshots/{workspace}"): "admin",
    **dict.fromkeys((("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp")), "any"),
    ("POST", "/hooks/{client}"): "any",
    ("GET", "/v1/me"): "any",
    ("POST", "/v1/browser-links"): "any",
    ("GET", "/v1/clients"): "events:follow",
    ("POST", "/v1/routes/try"): "routes",
    ("GET", "/"): None,
    ("GET", "/healthz"): None,
    ("GET", "/livez"): None,
    ("GET", "/readyz"): None,
    ("GET", "/metrics"): None,
    ("GET", "/openapi.json"): None,
}
OTHERS = {  # their errors have their protocols' forms, see tests/web/test_model_access.py
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/models"),
}
OF_THE_DASHBOARD = {  # a stream, files and a ticket: see test_dashboard_api.py
    ("GET", "/v1/live"),
    ("GET", "/dashboard/{file}"),
    ("POST", "/v1/browser-sessions"),
    ("DELETE", "/v1/browser-sessions"),
}
NAMES = {
    **dict.fromkeys(("name", "lock", "wait", "workspace", "session", "path", "task", "client"), "mine"),
    **{"seq": 1, "sha256": "0" * 64},
}
HOLDER = {
    "models": "asker",
    "events:publish": "publisher",
    "events:follow": "follower",
    "routes": "router",
    "locks": "locker",
    "context": "sharer",
    "tasks": "tasker",
    "admin": "boss",
    "any": "router",
}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with tokens."""
    folder = tmp_path_factory.mktemp("closed")
    tokens = [{"name": name, "token": SECRETS[name], "scopes": scopes} for name, scopes in TOKENS.items()]
    (folder / "herdr.yaml").write_text(json.dumps({"auth": {"tokens": tokens}}))
    with running_gateway(folder / "data", "--config", str(folder / "herdr.yaml")) as process:
        yield process
        assert not [line for line in process.log if any(secret in line for secret in SECRETS.values())]


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS[name]}"}


def ask(gateway: GatewayProcess, method: str, path: str, headers: dict[str, str]) -> Answer:
    body: Any = None
    if method == "POST":
        body = {"type": "tool.result"} if path == "/v1/events" else {"cursor": "0"}
    if method == "PUT":
        body = {"event": "a", "target": "a"}
    return call(gateway, method, path.format(**NAMES), body, headers)


def described(gateway: GatewayProcess) -> set[tuple[str, str]]:
    paths = call(gateway, "GET", "/openapi.json").json()["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def test_the_surface_is_what_is_described(closed: GatewayProcess) -> None:
    over_http = {(method, path) for method, path in described(closed) if path != "/v1/connect"}
    assert over_http | {("GET", "/openapi.json")} == set(SURFACE) | OTHERS | OF_THE_DASHBOARD


@pytest.mark.parametrize(("method", "path"), SURFACE, ids=[" ".join(key) for key in SURFACE])
def test_every_endpoint_asks_for_its_scope(closed: GatewayProcess, method: str, path: str) -> None:
    scope = SURFACE[method, path]
    if scope is None:
        assert ask(closed, method, path, {}).status == 200
        return
    nobody = ask(closed, method, path, {})
    assert "HERDR_GATEWAY_TOKEN" in assert_problem(nobody, 401, "unauthorized")["detail"]
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    for wrong in ("Bearer nonsense", "Bearer ", "Basic eDp5", f"Bearer {SECRETS['boss']}x", ""):
        assert_problem(ask(closed, method, path, {"authorization": wrong}), 401, "unauthorized")
    for name in TOKENS:
        answer = ask(closed, method, path, bearer(name))
        if name == "boss" or scope == "any" or scope in TOKENS[name]:
            assert answer.status not in (401, 403), (name, answer)
        else:
            assert scope in assert_problem(answer, 403, "missing_scope")["detail"]
    assert ask(closed, method, path, {"x-api-key": SECRETS[HOLDER[scope]]}).status not in (401, 403)
    assert_problem(ask(closed, method, path, {"x-api-key": "nonsense"}), 401, "unauthorized")
    query = urllib.parse.urlencode({"token": SECRETS["boss"]})
    assert call(closed, method, f"{path.format(**NAMES)}?{query}").status == 401, "never in an address"


def test_a_wrong_token_is_refused_before_the_body_is_read(closed: GatewayProcess) -> None:
    head = b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000000\r\n\r\n"
    assert_problem(send_raw(closed, head), 401, "unauthorized")


def test_p0_needs_its_own_scope(closed: GatewayProcess) -> None:
    event = {"type": "tool.result", "priority": "P0"}
    answer = call(closed, "POST", "/v1/events", [{"type": "tool.result"}, event], bearer("publisher"))
    assert "events:p0" in assert_problem(answer, 403, "missing_scope")["detail"]
    assert call(closed, "POST", "/v1/events", event, bearer("loud")).status == 200
    assert call(closed, "POST", "/v1/events", event, bearer("boss")).status == 200
    # a user's words are P0 by their type, without anybody's wish
    assert call(closed, "POST", "/v1/events", {"type": "user.message"}, bearer("publisher")).status == 200
    cloud = {"specversion": "1.0", "id": "1", "source": "s", "type": "tool.result", "priority": "P0"}
    kind = {"content-type": "application/cloudevents+json"}
    answer = call(closed, "POST", "/v1/events", cloud, {**bearer("publisher"), **kind})
    assert_problem(answer, 403, "missing_scope")
    with Socket(closed, bearer("publisher")) as connection:
        assert connection.ask("publish", ref=1, events=[event])["code"] == "missing_scope"


def test_the_source_is_the_token_s_name_where_none_is_given(closed: GatewayProcess) -> None:
    answer = call(closed, "POST", "/v1/events", {"type": "tool.result"}, bearer("loud"))
    seq = answer.json()["seq"]
    event = call(closed, "GET", f"/v1/events/{seq}", headers=bearer("follower")).json()
    assert event["source"] == "loud"


def test_a_websocket_is_judged_at_the_door_and_at_every_op(closed: GatewayProcess) -> None:
    for headers in ({}, {"authorization": "Bearer nonsense"}):
        with pytest.raises(InvalidStatus) as refused, Socket(closed, headers):
            pass
        response = refused.value.response
        assert response.status_code == 401 and response.body is not None
        assert json.loads(response.body)["code"] == "unauthorized"
    with pytest.raises(InvalidStatus) as refused, Socket(closed, bearer("router")):
        pass
    assert refused.value.response.status_code == 403
    with Socket(closed, bearer("follower")) as connection:
        said = connection.ask("publish", ref=1, events=[{"type": "tool.result"}])
        assert (said["op"], said["code"], said["ref"]) == ("error", "missing_scope", 1)
        assert connection.ask("follow", ref=2)["op"] == "events"
    with Socket(closed, {"x-api-key": SECRETS["publisher"]}) as connection:
        assert connection.ask("follow", ref=1)["code"] == "missing_scope"
        assert connection.ask("publish", ref=2, events=[])["op"] == "receipts"


def test_a_lock_s_token_is_for_who_may_lock(closed: GatewayProcess) -> None:
    carried = {"x-herdr-lock-token": "1"}
    for path in ("/v1/events", "/healthz"):
        assert_problem(call(closed, "GET", path, headers=carried), 401, "unauthorized")
        answer = call(closed, "GET", path, headers={**bearer("follower"), **carried})
        assert "locks" in assert_problem(answer, 403, "missing_scope")["detail"]
        assert_problem(call(closed, "GET", path, headers={**bearer("boss"), **carried}), 409, "fenced")
    with Socket(closed, bearer("publisher")) as connection:
        assert connection.ask("lock", ref=1, paths=["a"])["code"] == "missing_scope"
        assert connection.ask("publish", ref=2, events=[], tokens=[1])["code"] == "missing_scope"
    with Socket(closed, bearer("locker")) as connection:
        assert connection.ask("publish", ref=1, events=[])["code"] == "missing_scope"
        assert connection.ask("lock", ref=2, paths=["mine/alone"], ttl_s=1)["owner"] == "locker"


def test_only_an_admin_takes_a_lock_by_force(closed: GatewayProcess) -> None:
    lock = call(closed, "POST", "/v1/locks", {"paths": ["forced"]}, bearer("locker")).json()["lock"]
    path = f"/v1/locks/{lock}?force=true&reason=it+hangs"
    assert (
        "admin"
        in assert_problem(call(closed, "DELETE", path, headers=bearer("locker")), 403, "missing_scope")[
            "detail"
        ]
    )
    assert call(closed, "GET", f"/v1/locks/{lock}", headers=bearer("locker")).status == 200
    assert call(closed, "DELETE", path, headers=bearer("boss")).status == 204
    assert_problem(call(closed, "GET", f"/v1/locks/{lock}", headers=bearer("locker")), 404, "unknown_lock")


HOSTS = {"localhost": True, "127.0.0.1:8787": True, "[::1]:1": True, "LOCALHOST": True, "evil.example": False,
         "127.0.0.1.evil.example": False, "localhost.evil.example:8787": False, "": False}  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/v1/events", "/healthz", "/openapi.json", "/nothing"])
def test_only_known_hosts_are_answered(shared: GatewayProcess, path: str, host: str) -> None:
    answer = call(shared, "GET", path, headers={"host": host})
    if HOSTS[host]:
        assert answer.status in (200, 404)
    else:
        problem = assert_problem(answer, 421, "foreign_host")
        assert "allowed_hosts" in problem["detail"]


def test_exactly_one_host(shared: GatewayProcess) -> None:
    for hosts in (
        b"",
        b"host: localhost\r\nhost: localhost\r\n",
        b"host: localhost\r\nhost: evil.example\r\n",
    ):
        answer = send_raw(shared, b"GET /healthz HTTP/1.1\r\n" + hosts + b"\r\n")
        assert answer.status in (400, 421)
        assert answer.json()["code"] in ("foreign_host", "bad_request")


ORIGINS = {"http://localhost:3000": True, "https://127.0.0.1": True, "http://[::1]:8787": True,
           "http://evil.example": False, "null": False, "file://": False,
           "http://localhost.evil.example": False}  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
def test_only_own_pages_may_call(shared: GatewayProcess, origin: str) -> None:
    head = health(shared)["head"]
    answer = call(shared, "POST", "/v1/events", {"type": "tool.result"}, {"origin": origin})
    if ORIGINS[origin]:
        assert answer.status == 200
    else:
        assert "allowed_hosts" in assert_problem(answer, 403, "foreign_origin")["detail"]
        assert health(shared)["head"] == head


def test_the_guard_stands_before_the_websocket_too(shared: GatewayProcess) -> None:
    for headers, status in (({"origin": "http://evil.example"}, 403), ({"host": "evil.example"}, 421)):
        with pytest.raises(InvalidStatus) as refused, Socket(shared, headers):
            pass
        assert refused.value.response.status_code == status
        assert refused.value.response.body
        assert "allowed_hosts" in json.loads(refused.value.response.body)["detail"]


def test_hosts_can_be_allowed_by_one_variable(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_SERVER__ALLOWED_HOSTS": '["127.0.0.1", "hub.example"]'}
    with running_gateway(tmp_path / "data", env=env) as gateway:
        assert call(gateway, "GET", "/healthz", headers={"host": "hub.example:80"}).status == 200
        assert call(gateway, "GET", "/healthz", headers={"origin": "https://hub.example"}).status == 200
        assert call(gateway, "GET", "/healthz", headers={"host": "evil.example"}).status == 421


def test_without_tokens_it_does_not_start_where_others_can_reach_it(tmp_path: Path) -> None:
    if in_container():
        pytest.skip(
            "in a container the gateway starts and answers its own host only, which scripts/check-container looks at"
        )
    said = refused_start(tmp_path / "data", "--host", "0.0.0.0")
    assert "auth.tokens" in said and "auth.open" in said


def test_in_a_container_without_tokens_only_its_own_host_is_answered(tmp_path: Path) -> None:
    """127.0.0.3 stands for anybody: an address that is neither this machine's usual one nor the gateway's."""
    with running_gateway(
        tmp_path / "data", "--host", "127.0.0.2", env={"HERDR_IN_CONTAINER": "1"}
    ) as gateway:
        assert any(
            "tokens" in warning for warning in get(gateway, "127.0.0.1", "/healthz").json()["warnings"]
        )
        assert get(gateway, "127.0.0.1", "/v1/events").status == 200
        assert get(gateway, "127.0.0.3", "/healthz").status == 200
        refused = assert_problem(get(gateway, "127.0.0.3", "/v1/events"), 401, "unauthorized")
        assert "auth.tokens" in refused["detail"] and "auth.open" in refused["detail"]


def get(gateway: GatewayProcess, source: str, path: str) -> Answer:
    """Ask a gateway on 127.0.0.2 from another address of the loopback network."""
    connection = http.client.HTTPConnection("127.0.0.2", gateway.port, 20, source_address=(source, 0))
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"host": "localhost"})
        response = connection.getresponse()
        return Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )


def test_an_endpoint_cannot_be_built_without_a_scope() -> None:
    with pytest.raises(TypeError, match="scope"):
        Endpoint("GET", "/v1/new")  # type: ignore[call-arg]


def test_open_to_everyone_is_said_at_start_and_in_health(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_AUTH__OPEN": "true"}
    with running_gateway(tmp_path / "data", "--host", "0.0.0.0", env=env) as gateway:
        assert any("auth.open" in warning for warning in health(gateway)["warnings"])
        assert any("auth.open" in line for line in gateway.log)
        assert call(gateway, "POST", "/v1/events", {"type": "tool.result"}).status == 200
