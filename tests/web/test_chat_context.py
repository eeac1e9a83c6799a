"""The shared context in `/v1/chat`, over real HTTP before a model server that counts what it had in its cache."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_gateway import Folder, context_gateway
from fake_contexts import told
from fake_llama import FakeLlama, Script
from gateway import GatewayProcess
from model_clients import CHAT
from model_gateway import backend, last, recorded, refused, row
from wire import call, wait_until

Json = dict[str, Any]
MAP, WINDOW, OUTLINE = (
    "src/\n  cart.py: Cart",
    "Decided: the port stays 8787.",
    "class Cart:\n    def total(self)",
)
EVERYTHING: Json = {"session": True, "map_tokens": 1024, "files": ["src/cart.py"]}
CALL: Json = {
    "model": "local",
    "session": "s-1",
    "agent": "ann",
    "system": "You write programs. " + "word " * 200,
}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "texts")
    folder.put("maps", "default", MAP)
    folder.put("sessions", "s-1", WINDOW)
    folder.put("files", "src/cart.py", OUTLINE)
    return folder


@pytest.fixture
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=4) as server:
        server.script(Script(["Hel", "lo", "!"]))
        yield server
        assert server.violations == []


@pytest.fixture
def config(tmp_path: Path, fake: FakeLlama) -> Path:
    file = tmp_path / "herdr.yaml"
    backends = [{"name": "local", "kind": "llamacpp", "url": fake.url}]
    file.write_text(json.dumps({"models": {"backends": backends, "audit": "full"}, "bus": {"p2_per_s": 0}}))
    return file


@pytest.fixture
def gateway(tmp_path: Path, folder: Folder, config: Path) -> Iterator[GatewayProcess]:
    with context_gateway(tmp_path / "data", folder, "--config", str(config)) as process:
        until_ready(process)
        yield process
        assert not [line for line in process.log if "Traceback" in line]


def until_ready(gateway: GatewayProcess) -> None:
    wait_until(lambda: backend(gateway)["state"] == "ready", "the backend")


def prompt(fake: FakeLlama) -> str:
    """The text that the newest request was rendered to, up to where the model is asked to speak."""
    messages = last(fake).body["messages"]
    return json.dumps([[m["role"], m["content"]] for m in messages], ensure_ascii=False)[:-1]


def of_user(fake: FakeLlama) -> list[str]:
    return [str(m["content"]) for m in last(fake).body["messages"] if m["role"] == "user"]


def test_the_first_turn_has_it_in_front_of_the_users_words(gateway: GatewayProcess, fake: FakeLlama) -> None:
    answer = CHAT.whole(gateway, "Fix the total.", **CALL, context=EVERYTHING)
    assert answer["context"] == {
        "session": told(WINDOW),
        "map": told(MAP),
        "files": {"src/cart.py": told(OUTLINE)},
    }
    system, user = last(fake).body["messages"]
    assert system == {"role": "system", "content": CALL["system"]}
    assert all(text in user["content"] for text in (MAP, WINDOW, OUTLINE))
    assert user["content"].endswith("\n\nFix the total.")


def test_the_prompt_grows_and_what_was_cached_stays_so(
    gateway: GatewayProcess, fake: FakeLlama, folder: Folder
) -> None:
    turns = ["Fix the total."]
    before, held = "", 0
    for n, (kind, name) in enumerate(
        [("maps", "default"), ("sessions", "s-1"), ("files", "src/cart.py")] * 2
    ):
        answer = CHAT.whole(gateway, *turns, **CALL, context=EVERYTHING)
        call_ = row(gateway, answer["call"])
        assert prompt(fake).startswith(before)
        assert call_["changed"] is None
        assert last(fake).cached >= held, "everything up to the last answer was in the slot"
        held = last(fake).prompt_tokens
        assert answer["usage"]["input_tokens"] == call_["prompt_tokens"] == held, (
            "counted as the backend does"
        )
        before = prompt(fake)
        folder.put(kind, name, f"{kind} of turn {n}")
        turns += ["Hello!", f"Go on {n}."]
    users = of_user(fake)
    assert [n for n, text in enumerate(users) if "files of turn 2" in text] == [3]
    assert [n for n, text in enumerate(users) if "[begin " in text] == [0, 3]
    assert not any("maps of turn" in text or "sessions of turn" in text for text in users)


def test_a_file_that_changed_comes_with_the_newest_message(
    gateway: GatewayProcess, fake: FakeLlama, folder: Folder
) -> None:
    CHAT.streamed(gateway, "Fix it.", **CALL, context=EVERYTHING)
    before = prompt(fake)
    folder.put("files", "src/cart.py", "class Cart:\n    def total(self, tax)")
    answer = CHAT.streamed(gateway, "Fix it.", "Hello!", "And now?", **CALL, context=EVERYTHING)
    assert answer["context"]["files"] == {"src/cart.py": told("class Cart:\n    def total(self, tax)")}
    assert answer["context"]["map"] == told(MAP)
    assert prompt(fake).startswith(before)
    assert "def total(self, tax)" in of_user(fake)[1] and of_user(fake)[1].endswith("\n\nAnd now?")


def test_system_prompt_and_tools_are_the_same_for_all_agents(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    tools = CHAT.tools()
    CHAT.whole(gateway, "Hi", **{**CALL, "agent": "bob", **tools})
    plain = last(fake).body
    CHAT.whole(gateway, "Hi", **{**CALL, **tools}, context=EVERYTHING)
    asked = last(fake).body
    assert asked["messages"][0] == plain["messages"][0] and asked["tools"] == plain["tools"]


@pytest.mark.parametrize("stream", [True, False])
def test_what_is_missing_never_fails_a_call(gateway: GatewayProcess, fake: FakeLlama, stream: bool) -> None:
    wish = {"session": True, "map_tokens": 99, "files": ["no.py"], "workspace": "nowhere"}
    ask = CHAT.streamed if stream else CHAT.whole
    answer = ask(gateway, "Hi", **{**CALL, "session": "nobody"}, context=wish)
    assert answer["content"] == "Hello!"
    assert answer["context"] == {
        "session": {"unavailable": "unknown_session"},
        "map": {"unavailable": "unknown_workspace"},
        "files": {"no.py": {"unavailable": "unknown_file"}},
    }
    assert of_user(fake) == ["Hi"]
    assert "context" not in ask(gateway, "Hi", **CALL)


def test_the_records_of_a_session_hold_what_the_user_said(gateway: GatewayProcess) -> None:
    answer = CHAT.whole(gateway, "Fix the total.", **CALL, context=EVERYTHING)
    user, model = recorded(gateway, "session.message", answer["call"])
    assert (user["data"]["content"], model["data"]["content"]) == ("Fix the total.", "Hello!")
    (record,) = recorded(gateway, "model.call", answer["call"])
    assert MAP.split("\n")[1] in json.dumps(record["data"]["request"]), "a full audit has what the model got"


def test_after_a_restart_the_block_is_made_anew(
    tmp_path: Path, folder: Folder, config: Path, fake: FakeLlama
) -> None:
    turns = ("Fix it.", "Hello!", "And now?")
    with context_gateway(tmp_path / "data", folder, "--config", str(config)) as gateway:
        until_ready(gateway)
        CHAT.whole(gateway, turns[0], **CALL, context=EVERYTHING)
        before = prompt(fake)
        assert gateway.stop() == 0
    folder.put("maps", "default", "another map")
    with context_gateway(tmp_path / "data", folder, "--config", str(config)) as gateway:
        until_ready(gateway)
        answer = CHAT.whole(gateway, *turns, **CALL, context=EVERYTHING)
        assert answer["context"]["map"] == told("another map")
        assert "another map" in of_user(fake)[0] and of_user(fake)[1] == "And now?"
        assert not prompt(fake).startswith(before)
        before = prompt(fake)
        CHAT.whole(gateway, *turns, "Hello!", "More.", **CALL, context=EVERYTHING)
        assert prompt(fake).startswith(before)


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"sesion": True}, "sesion"),
        ({"map_tokens": 15}, "context.map_tokens"),
        ({"files": ["../x"]}, "context.files[0]"),
        (True, "context"),
    ],
)
def test_a_wrong_wish_is_a_problem(gateway: GatewayProcess, fake: FakeLlama, context: Any, said: str) -> None:
    body = {**CHAT.body("Hi"), "context": context}
    answer = refused(gateway, CHAT, body)
    assert answer.status == 400 and answer.json()["code"] == "invalid_request"
    assert said in answer.json()["detail"] and fake.requests == []


def test_other_protocols_know_no_context(gateway: GatewayProcess, fake: FakeLlama) -> None:
    body = {"model": "local", "messages": [{"role": "user", "content": "Hi"}], "context": EVERYTHING}
    answer = call(gateway, "POST", "/v1/chat/completions", body)
    assert answer.status == 200 and "context" not in answer.json()
    assert of_user(fake) == ["Hi"]
