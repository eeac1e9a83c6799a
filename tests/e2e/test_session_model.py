"""What a backend adds to sessions: its own tokenizer, and summaries written in the background."""

from pathlib import Path
from typing import Any

from fake_llama import FakeLlama, Script
from model_gateway import model_gateway
from wire import call, wait_until

SUMMARY = ("They ", "add ", "CSV ", "export; ", "the ", "header ", "is ", "next.")


def say(gateway: Any, session: str, count: int) -> None:
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"Message {n}: keep the header in English."}
        for n in range(count)
    ]
    answer = call(gateway, "POST", f"/v1/sessions/{session}/messages", {"messages": messages})
    assert answer.status == 201, answer


def window(gateway: Any, session: str, tokens: int = 2048) -> dict[str, Any]:
    answer = call(gateway, "GET", f"/v1/sessions/{session}?tokens={tokens}")
    assert answer.status == 200, answer
    return dict(answer.json())


def test_the_backend_counts_and_what_it_counts_holds(tmp_path: Path) -> None:
    with FakeLlama() as llama, model_gateway(tmp_path, {"local": llama}) as gateway:
        say(gateway, "s", 60)
        found = window(gateway, "s", 300)
        assert found["tokenizer"] == "backend:local"
        counted = call(llama, "POST", "/tokenize", {"content": found["text"]}).json()["tokens"]
        assert found["tokens"] == len(counted) <= 300


def test_a_backend_that_goes_away_is_replaced_by_another_counter(tmp_path: Path) -> None:
    with FakeLlama() as llama, model_gateway(tmp_path, {"local": llama}) as gateway:
        say(gateway, "s", 30)
        assert window(gateway, "s")["tokenizer"] == "backend:local"
        llama.stop()
        found = window(gateway, "s", 200)
        assert found["tokenizer"] in ("o200k_base", "bytes/2.7")
        assert 0 < found["tokens"] <= 200


def test_a_model_writes_the_summary_and_nobody_waits_for_it(tmp_path: Path) -> None:
    more = {"context": {"summariser": "model"}}
    with FakeLlama() as llama, model_gateway(tmp_path, {"local": llama}, more=more) as gateway:
        llama.script(Script(SUMMARY))
        say(gateway, "s", 40)
        assert window(gateway, "s")["summariser"] == "rules", "the first answer does not wait"
        wait_until(lambda: window(gateway, "s")["summariser"] == "model", "the model's summary")
        found = window(gateway, "s")
        assert "".join(SUMMARY) in found["text"]
        assert found["tokens"] <= 2048
        assert found["summary"]["decisions"] is not None
        (asked,) = call(gateway, "GET", "/v1/calls").json()["calls"]
        assert (asked["agent"], asked["route"], asked["priority"]) == ("summariser", "background", 9)
        sessions = call(gateway, "GET", "/v1/sessions").json()["sessions"]
        assert [session["session"] for session in sessions] == ["s"], "its own call is nobody's session"


def test_without_a_backend_the_rules_go_on_alone(tmp_path: Path) -> None:
    more = {"context": {"summariser": "model"}}
    with model_gateway(tmp_path, {}, more=more) as gateway:
        say(gateway, "s", 40)
        for _ in range(3):
            assert window(gateway, "s")["summariser"] == "rules"
