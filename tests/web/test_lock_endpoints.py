"""Locks and waits of a real gateway, over HTTP and WebSockets, from handshake to restart."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gateway import GatewayProcess, running_gateway
from refusals import assert_problem
from wire import PATIENCE_S, Answer, Socket, all_events, call, wait_until

from herdr.locks.views import Leased
from herdr.web.lock_answers import Checked, HeldLock, LockList, WaitDeclared, WaitList


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all that leave it running; each test has paths of its own."""
    with running_gateway(tmp_path_factory.mktemp("locks") / "data") as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]


def lock(gateway: GatewayProcess, path: str, owner: str, **fields: Any) -> dict[str, Any]:
    answer = call(gateway, "POST", "/v1/locks", {"paths": [path], "owner": owner, **fields})
    assert answer.status == 201, answer
    return dict(answer.json())


def release(gateway: GatewayProcess, held: dict[str, Any]) -> None:
    assert call(gateway, "DELETE", f"/v1/locks/{held['lock']}?token={held['token']}").status == 204


def released(gateway: GatewayProcess, lock_id: str) -> list[str]:
    """Return the reasons for which a lock was released."""
    events = [event["data"] for event in all_events(gateway, "type=lock.released")]
    return [data["reason"] for data in events if data["lock"] == lock_id]


def waiting(gateway: GatewayProcess, owner: str) -> list[dict[str, Any]]:
    return list(call(gateway, "GET", f"/v1/locks?owner={owner}").json()["waiting"])


def as_described(answer: Any, type_: Any) -> Any:
    """Return what of an answer the description knows of; raises when something else is there than it says."""
    return json.loads(msgspec.json.encode(msgspec.convert(answer, type_)))


def begin(gateway: GatewayProcess, path: str, owner: str) -> socket.socket:
    """Ask for a lock that somebody holds, and do not wait for the answer."""
    body = json.dumps({"paths": [path], "owner": owner, "wait_s": 600}).encode()
    asking = socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE_S)
    head = b"POST /v1/locks HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
    asking.sendall(head + body)
    wait_until(lambda: waiting(gateway, owner), "its place in the line")
    return asking


def test_answers_have_the_form_that_is_described(shared: GatewayProcess) -> None:
    held = lock(shared, "form/a", "f1", mode="intent", purpose="look", session="s", ttl_s=30)
    assert as_described(held, Leased) == held
    one = call(shared, "GET", f"/v1/locks/{held['lock']}").json()
    assert as_described(one, HeldLock) == one and {**one, "expires": held["expires"]} == {
        **held,
        "waiters": [],
    }
    with begin(shared, "form/a", "f2"):
        listed = call(shared, "GET", "/v1/locks?path=form/").json()
        assert as_described(listed, LockList) == listed
        assert listed["locks"][0]["waiters"] == ["f2"]
        assert [row["blockers"] for row in listed["waiting"] if row["owner"] == "f2"] == [["f1"]]
    checked = call(shared, "POST", "/v1/locks/check", {"paths": ["form/"], "owner": "f3"}).json()
    assert as_described(checked, Checked) == checked
    assert checked["conflicts"][0]["lock"] == held["lock"]
    wait = call(shared, "POST", "/v1/waits", {"owner": "f4", "on": "f5"}).json()
    assert as_described(wait, WaitDeclared) == wait
    waits = call(shared, "GET", "/v1/waits").json()
    assert as_described(waits, WaitList) == waits and waits["waits"][0]["wait"] == wait["wait"]
    assert call(shared, "DELETE", "/v1/waits?owner=f4&on=f5").status == 204
    release(shared, held)


def test_a_lock_and_its_end(shared: GatewayProcess) -> None:
    held = lock(shared, "src/a.js", "cursor", purpose="rename it")
    again = lock(shared, "src/a.js", "cursor", ttl_s=90)
    assert (again["lock"], again["token"], again["ttl_s"]) == (held["lock"], held["token"], 90)
    refused = call(shared, "POST", "/v1/locks", {"paths": ["src/"], "owner": "codex"})
    problem = assert_problem(refused, 409, "locked")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    (conflict,) = problem["conflicts"]
    assert (conflict["path"], conflict["asked"], conflict["owner"]) == ("src/a.js", "src/", "cursor")
    assert (conflict["purpose"], conflict["state"]) == ("rename it", "held")
    path = f"/v1/locks/{held['lock']}"
    for method in ("PUT", "DELETE"):
        assert_problem(call(shared, method, f"{path}?token={held['token'] + 1}"), 409, "fenced")
    renewed = call(shared, "PUT", path, {"token": held["token"], "ttl_s": 5})
    assert (renewed.status, renewed.json()["token"], renewed.json()["ttl_s"]) == (200, held["token"], 5)
    release(shared, held)
    for method in ("PUT", "DELETE"):
        assert_problem(call(shared, method, f"{path}?token={held['token']}"), 404, "unknown_lock")
    release(shared, lock(shared, "src/", "codex"))


def test_who_waits_gets_it(shared: GatewayProcess) -> None:
    held = lock(shared, "line", "first")
    answers: list[Answer] = []
    body = {"paths": ["line"], "owner": "second", "wait_s": 60}
    asking = threading.Thread(target=lambda: answers.append(call(shared, "POST", "/v1/locks", body)))
    asking.start()
    wait_until(lambda: waiting(shared, "second"), "its place in the line")
    release(shared, held)
    asking.join(PATIENCE_S)
    assert answers[0].status == 201 and answers[0].json()["token"] > held["token"]
    release(shared, answers[0].json())


def test_who_has_waited_in_vain_is_told_who_holds_it(shared: GatewayProcess) -> None:
    held = lock(shared, "vain", "first")
    refused = call(shared, "POST", "/v1/locks", {"paths": ["vain"], "owner": "second", "wait_s": 0.05})
    assert assert_problem(refused, 409, "locked")["conflicts"][0]["owner"] == "first"
    assert waiting(shared, "second") == []
    release(shared, held)


def test_who_hangs_up_leaves_the_line(shared: GatewayProcess) -> None:
    held = lock(shared, "gone", "first")
    begin(shared, "gone", "second").close()
    wait_until(lambda: not waiting(shared, "second"), "the end of the line")
    release(shared, held)
    release(shared, lock(shared, "gone", "third"))


def test_a_cycle_is_named_to_whoever_closes_it(shared: GatewayProcess) -> None:
    held = lock(shared, "cycle", "a")
    with begin(shared, "cycle", "b"), Socket(shared) as connection:
        refused = call(shared, "POST", "/v1/waits", {"owner": "a", "on": "b"})
        assert assert_problem(refused, 409, "deadlock")["cycle"] == ["a", "b", "a"]
        said = connection.ask("wait", ref=1, owner="a", on="b")
        assert (said["code"], said["cycle"]) == ("deadlock", ["a", "b", "a"])
    release(shared, held)


def test_any_call_renews_what_it_carries_the_token_of(shared: GatewayProcess) -> None:
    held = lock(shared, "carried", "a")
    token = {"x-herdr-lock-token": str(held["token"])}
    for method, path, body in (("GET", "/healthz", None), ("POST", "/v1/events", {"type": "tool.result"})):
        assert call(shared, method, path, body, token).status == 200
    release(shared, held)
    head = call(shared, "GET", "/healthz").json()["head"]
    for method, path, body in (("GET", "/healthz", None), ("POST", "/v1/events", {"type": "tool.result"})):
        assert_problem(call(shared, method, path, body, token), 409, "fenced")
    assert call(shared, "GET", "/healthz").json()["head"] == head, "nothing of the call was done"


def test_over_the_websocket_one_waits_and_goes_on_talking(shared: GatewayProcess) -> None:
    with Socket(shared) as one, Socket(shared) as two:
        held = one.ask("lock", ref=1, paths=["ws"], owner="a")
        two.send("lock", ref="w", paths=["ws"], owner="b", wait_s=60)
        wait_until(lambda: waiting(shared, "b"), "its place in the line")
        assert two.ask("publish", ref=2, events=[{"type": "tool.result"}])["op"] == "receipts"
        assert one.ask("unlock", ref=3, lock=held["lock"], token=held["token"]) == {"op": "unlock", "ref": 3}
        got = two.recv()
        assert (got["op"], got["ref"], got["owner"], got["paths"]) == ("lock", "w", "b", ["ws"])
        assert two.ask("renew", ref=4, lock=got["lock"], token=got["token"])["token"] == got["token"]
        assert two.ask("unlock", ref=5, cancel="w") == {"op": "unlock", "ref": 5}
        assert one.ask("lock", ref=6, paths=["ws"], owner="a", bound=True)["op"] == "lock"


def test_giving_up_leaves_the_line(shared: GatewayProcess) -> None:
    held = lock(shared, "given-up", "a")
    with Socket(shared) as connection:
        connection.send("lock", ref=1, paths=["given-up"], owner="b", wait_s=60)
        wait_until(lambda: waiting(shared, "b"), "its place in the line")
        assert connection.ask("unlock", ref=2, cancel=1) == {"op": "unlock", "ref": 2}
        wait_until(lambda: not waiting(shared, "b"), "the end of the line")
    release(shared, held)


def test_what_is_bound_ends_with_its_connection(shared: GatewayProcess) -> None:
    with Socket(shared) as connection:
        bound = connection.ask("lock", ref=1, paths=["bound/a"], owner="a", bound=True)
        kept = connection.ask("lock", ref=2, paths=["bound/b"], owner="a")
        assert connection.ask("wait", ref=3, owner="a", on="nobody", bound=True)["op"] == "wait"
        connection.send("lock", ref=4, paths=["bound/c"], owner="a", bound=True)  # its answer is not read
    wait_until(lambda: released(shared, bound["lock"]) == ["connection_closed"], "the release")
    wait_until(lambda: len(call(shared, "GET", "/v1/locks?path=bound/").json()["locks"]) == 1, "the others")
    assert call(shared, "GET", f"/v1/locks/{kept['lock']}").status == 200
    wait_until(lambda: not call(shared, "GET", "/v1/waits").json()["waits"], "the end of the wait")
    release(shared, kept)


def test_a_stop_and_what_it_leaves(tmp_path: Path) -> None:
    """What is bound stays for a client that comes back; who stands in line is told to come back."""
    with running_gateway(tmp_path / "data") as gateway:
        with Socket(gateway) as connection, contextlib.ExitStack() as closing:
            held = connection.ask("lock", ref=1, paths=["a"], owner="a", bound=True)
            asking = closing.enter_context(begin(gateway, "a", "b"))
            connection.send("lock", ref=2, paths=["b", "a"], owner="c", wait_s=60)
            wait_until(lambda: waiting(gateway, "c"), "its place in the line")
            assert gateway.stop() == 0
            assert connection.recv()["op"] == "bye"
            answer = asking.recv(65536)
            assert answer.startswith(b"HTTP/1.1 503 ") and b"retry-after: 2" in answer
        again = GatewayProcess(tmp_path / "data").start()
        try:
            assert_problem(call(again, "POST", "/v1/locks", {"paths": ["a"], "owner": "b"}), 409, "locked")
            with Socket(again) as connection:
                back = connection.ask("lock", ref=1, paths=["a"], owner="a", bound=True)
                assert (back["lock"], back["token"]) == (held["lock"], held["token"])
            wait_until(
                lambda: call(again, "POST", "/v1/locks", {"paths": ["a"], "owner": "b"}).status == 201,
                "the release",
            )
        finally:
            again.kill()
