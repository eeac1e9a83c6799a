"""What is shared comes where it is used: beside events, and in the prompts of `/v1/chat`, from the real graph."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_llama import FakeLlama, Script
from gateway import GatewayProcess
from model_clients import CHAT
from model_gateway import last, model_gateway, recorded, row
from wire import accept, call, page, put_route, wait_until

Json = dict[str, Any]
CART = "class Cart:\n    def total(self) -> int:\n        return 0\n"
TAXED = "class Cart:\n    def total(self, tax: float) -> float:\n        return 0 * tax\n"
SHOP = "from cart import Cart\n\n\ndef pay(cart: Cart) -> int:\n    return cart.total()\n"
SAID = "Decision: the port stays 8787, because the firewall knows it."
WISH: Json = {"session": True, "map_tokens": 1024, "files": ["src/cart.py"], "workspace": "shop"}
CALL: Json = {"session": "s-1", "agent": "ann", "system": "You write programs."}
TEXT = ("text", "tokens", "tokenizer", "ref")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src/cart.py").write_text(CART)
    (folder / "src/shop.py").write_text(SHOP)
    return folder


@pytest.fixture
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=2) as server:
        server.script(Script(["Hel", "lo", "!"]))
        yield server


@pytest.fixture
def gateway(tmp_path: Path, project: Path, fake: FakeLlama) -> Iterator[GatewayProcess]:
    more = {"workspaces": [{"path": str(project), "name": "shop"}], "bus": {"p2_per_s": 0}}
    with model_gateway(tmp_path, {"local": fake}, more=more) as process:
        wait_until(lambda: asked(process, "/v1/context/shop")["graph"]["state"] == "ready", "the graph")
        answer = call(process, "POST", "/v1/sessions/s-1/messages", {"role": "user", "content": SAID})
        assert answer.status == 201, answer
        yield process
        assert not [line for line in process.log if "Traceback" in line]


def asked(gateway: GatewayProcess, path: str) -> Json:
    answer = call(gateway, "GET", path)
    assert answer.status == 200, answer
    return dict(answer.json())


def text_of(gateway: GatewayProcess, path: str) -> Json:
    answer = asked(gateway, path)
    return {name: answer[name] for name in TEXT}


def outline(gateway: GatewayProcess) -> Json:
    return text_of(gateway, "/v1/context/shop/graph/files/src/cart.py")


def told(text: Json) -> Json:
    return {"ref": text["ref"], "tokens": text["tokens"]}


def change(gateway: GatewayProcess, project: Path) -> None:
    """Change the file, and wait until the graph knows it."""
    (project / "src/cart.py").write_text(TAXED)
    wait_until(lambda: "tax" in outline(gateway)["text"], "the new outline")


def prompt(fake: FakeLlama) -> str:
    """The newest prompt, up to where the model is asked to speak."""
    messages = last(fake).body["messages"]
    return json.dumps([[m["role"], m["content"]] for m in messages], ensure_ascii=False)[:-1]


def test_an_event_brings_its_session_and_its_file(gateway: GatewayProcess, project: Path) -> None:
    put_route(
        gateway,
        "failures",
        event="test.failed",
        target="debugger",
        context={"session_tokens": 2048, "graph": True},
    )
    accept(gateway, type="test.failed", session="s-1", subject="src/cart.py", workspace="shop")
    (event,) = page(gateway, "as=debugger&after=0")["events"]
    assert event["context"]["graph"] == outline(gateway)
    assert "total(self) -> int" in event["context"]["graph"]["text"]
    assert event["context"]["session"] == text_of(gateway, "/v1/sessions/s-1?tokens=2048")
    assert "8787" in event["context"]["session"]["text"]
    change(gateway, project)
    (event,) = page(gateway, "as=debugger&after=0")["events"]
    assert "tax: float" in event["context"]["graph"]["text"], "as of the delivery"


def test_what_is_not_there_says_why(gateway: GatewayProcess) -> None:
    put_route(gateway, "all", event="a.*", target="t", context={"session_tokens": 64, "graph": True})
    accept(gateway, type="a.b", session="nobody", subject="src/none.py", workspace="shop")
    accept(gateway, type="a.b", session="nobody", subject="src/cart.py", workspace="nowhere")
    first, second = (event["context"] for event in page(gateway, "as=t&after=0")["events"])
    assert first == {"session": {"unavailable": "unknown_session"}, "graph": {"unavailable": "unknown_file"}}
    assert second["graph"] == {"unavailable": "unknown_workspace"}


def test_a_conversation_begins_with_the_map_and_hears_of_changes(
    gateway: GatewayProcess, fake: FakeLlama, project: Path
) -> None:
    window = text_of(gateway, "/v1/sessions/s-1?tokens=2048")
    first = CHAT.whole(gateway, "Fix the total.", **CALL, context=WISH)
    map_ = text_of(gateway, "/v1/context/shop/graph/map?tokens=1024&focus=src/cart.py")
    before = outline(gateway)
    assert first["context"] == {
        "session": told(window),
        "map": told(map_),
        "files": {"src/cart.py": told(before)},
    }
    user = last(fake).body["messages"][1]["content"]
    assert all(part["text"] in user for part in (window, map_, before))
    assert user.endswith("\n\nFix the total.")
    rendered, held = prompt(fake), last(fake).prompt_tokens
    change(gateway, project)
    second = CHAT.whole(gateway, "Fix the total.", "Hello!", "And now?", **CALL, context=WISH)
    assert second["context"] == {**first["context"], "files": {"src/cart.py": told(outline(gateway))}}
    assert prompt(fake).startswith(rendered) and last(fake).cached >= held
    assert "tax: float" in last(fake).body["messages"][3]["content"]
    assert row(gateway, second["call"])["changed"] is None
    records = [event["data"] for event in recorded(gateway, "session.message")]
    said = [record["content"] for record in records if record.get("call") == first["call"]]
    assert said == ["Fix the total.", "Hello!"]
