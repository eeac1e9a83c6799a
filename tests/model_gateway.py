"""A real gateway process in front of model servers, and what tests ask it about its pool."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fake_llama import Call, FakeLlama, Script
from gateway import GatewayProcess
from model_asking import Asking, Event
from model_clients import CHAT, MESSAGES, Client
from wire import Answer, all_events, call, wait_until

Json = dict[str, Any]
MISTAKES = ("Traceback", "never retrieved", "was destroyed")
Servers = Mapping[str, FakeLlama | Json]
"""Backends by name: a fake llama.cpp, or the configuration of another kind."""


@contextlib.contextmanager
def model_gateway(
    folder: Path,
    servers: Servers,
    *,
    env: Mapping[str, str] | None = None,
    more: Json | None = None,
    **models: Any,
) -> Iterator[GatewayProcess]:
    """Run a gateway with these backends and keys of the section `models`, ready to take calls."""
    process = configured(folder, servers, env=env, more=more, **models).start()
    try:
        wait_until(lambda: all(b["state"] != "starting" for b in pool(process)["backends"]), "the backends")
        yield process
    finally:
        if process.running():
            process.kill()


@contextlib.contextmanager
def plain_gateway(folder: Path, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """Run a gateway with one backend that answers to any name, whose records are held to no rate."""
    names = {"small": "local", "claude-*": "local", "*": "local"}
    with model_gateway(folder, {"local": fake}, names=names, more={"bus": {"p2_per_s": 1}}) as process:
        yield process


@contextlib.contextmanager
def at_rest(gateway: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """Have the backend say hello, and see that whatever is done leaves nothing behind."""
    fake.script(Script(["Hel", "lo", "!"]))
    yield gateway
    fake.release()
    wait_for_rest(gateway)
    assert fake.violations == []
    assert not [line for line in gateway.log if "Traceback" in line]


def configured(
    folder: Path,
    servers: Servers,
    *,
    env: Mapping[str, str] | None = None,
    more: Json | None = None,
    **models: Any,
) -> GatewayProcess:
    """Return a gateway that is not started yet; `more` are other sections of its configuration."""
    backends = [
        {"name": name, **({"kind": "llamacpp", "url": it.url} if isinstance(it, FakeLlama) else it)}
        for name, it in servers.items()
    ]
    models = {"names": {name: name for name in servers}, **models}
    file = folder / "herdr.yaml"
    file.write_text(json.dumps({"models": {"backends": backends, **models}, **(more or {})}))
    return GatewayProcess(folder / "data", ("--config", str(file)), env)


def pool(gateway: GatewayProcess, headers: Mapping[str, str] | None = None) -> Json:
    answer = call(gateway, "GET", "/v1/pool", headers=headers)
    assert answer.status == 200, answer
    return dict(answer.json())


def backend(gateway: GatewayProcess, name: str = "local") -> Json:
    """What `/v1/pool` says of one backend."""
    return next(dict(seen) for seen in pool(gateway)["backends"] if seen["name"] == name)


def waiting(gateway: GatewayProcess, name: str = "local") -> int:
    return int(backend(gateway, name)["queue"]["total"])


def slots(gateway: GatewayProcess, name: str = "local") -> list[Json]:
    return list(backend(gateway, name)["slots"])


def slot_of(gateway: GatewayProcess, agent: str, name: str = "local") -> list[int]:
    """The slots that an agent holds."""
    return [
        slot["slot"] for slot in slots(gateway, name) if slot["agent"] == agent and slot["state"] != "free"
    ]


def wait_for_queue(gateway: GatewayProcess, count: int, name: str = "local") -> None:
    wait_until(lambda: waiting(gateway, name) == count, f"{count} calls to wait")


def wait_for_rest(gateway: GatewayProcess, name: str = "local") -> None:
    """Wait until nothing runs and nothing waits."""

    def rests() -> bool:
        seen = backend(gateway, name)
        return (
            seen["running"] == 0
            and seen["queue"]["total"] == 0
            and not any(slot["state"] == "busy" for slot in seen["slots"])
        )

    wait_until(rests, "every slot to be free")


def calls(gateway: GatewayProcess, query: str = "") -> list[Json]:
    """The rows of `/v1/calls`, the newest first."""
    answer = call(gateway, "GET", f"/v1/calls?{query}")
    assert answer.status == 200, answer
    return list(answer.json()["calls"])


def row(gateway: GatewayProcess, id_: str | None) -> Json:
    """One call's row, once it is there."""
    found: list[Json] = []

    def is_there() -> bool:
        found[:] = [r for r in calls(gateway) if r["call"] == id_]
        return bool(found)

    wait_until(is_there, f"the record of call {id_}")
    return found[0]


def recorded(gateway: GatewayProcess, type_: str, id_: str | None = None) -> list[Json]:
    """The events of a type in the log, of one call or of all."""
    events = all_events(gateway, f"type={type_}")
    return [event for event in events if id_ is None or event["data"]["call"] == id_]


def last(fake: FakeLlama) -> Call:
    """The newest request that a fake got."""
    return fake.requests[-1]


def until_running(fake: FakeLlama, count: int) -> None:
    """Wait until so many requests are in their slots, held."""
    fake.until(lambda: sum(request.state == "held" for request in fake.requests) == count)


def asked(fake: FakeLlama, is_it: Callable[[Call], bool]) -> list[Call]:
    return [request for request in fake.requests if is_it(request)]


def told(gateway: GatewayProcess) -> str:
    """Everything that the gateway has written to its log."""
    return "\n".join(gateway.log)


def error_of(gateway: GatewayProcess, asking: Asking) -> object:
    """The code of a call's failure, as its row has it."""
    return row(gateway, asking.header("x-herdr-call"))["error"]


def until_heard(asking: Asking, client: Client, text: str = "") -> tuple[list[Event], Iterator[Event]]:
    """Read a stream until so much has been said, or anything; returns the events so far, and the rest."""
    stream = asking.events()
    seen = [next(stream)]
    while client.heard(seen) != text if text else not client.heard(seen):
        seen.append(next(stream))
    return seen, stream


def refused(
    gateway: GatewayProcess, client: Client, body: Any, headers: dict[str, str] | None = None
) -> Answer:
    """Send a body as it is; the answer must be an error in the protocol's own form."""
    with Asking(gateway, client.path, body, headers) as asking:
        answer = asking.answer()
    assert 400 <= answer.status < 600, answer
    client.refusal(answer)
    assert answer.headers["request-id"].startswith("req_"), answer
    if client is MESSAGES:
        assert answer.json()["request_id"] == answer.headers["request-id"]
    assert "Traceback" not in answer.body.decode() and ".py" not in answer.body.decode()
    assert len(answer.body) < 2000, "the error grows with what was sent"
    return answer


def assert_well(gateway: GatewayProcess, fake: FakeLlama, *names: str) -> None:
    """End whatever a fault left behind; then the gateway must come to rest, and serve as before."""
    fake.loading = False
    fake.release()
    fake.resume()
    fake.let_go()
    fake.linger_s = 0.0
    fake.script(Script(["Hel", "lo", "!"]))
    for name in names:
        wait_until(lambda name=name: backend(gateway, name)["state"] == "ready", "the backend to be ready")
        wait_for_rest(gateway, name)
    for _ in range(2):
        assert CHAT.text(CHAT.whole(gateway, "Are you well?", model=names[0])) == "Hello!"
    assert fake.violations == []
    assert_quiet(gateway)


def assert_quiet(gateway: GatewayProcess) -> None:
    """Whatever happened, the log tells of no mistake of the gateway's own."""
    assert not [line for line in gateway.log if any(w in line for w in MISTAKES)]
