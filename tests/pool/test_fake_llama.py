"""The fake server behaves as llama.cpp's was measured to, and fails in the ways that tests need."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from fake_llama import (
    ERROR_INSIDE,
    HALF_CHARACTER,
    INVALID_JSON,
    LOADING,
    TOOLS_REFUSED,
    Die,
    FakeLlama,
    Flood,
    Pings,
    Refusal,
    Script,
    Stall,
    Think,
    Tool,
    rate_limited,
)

CHAT = "/v1/chat/completions"
PATIENCE_S = 20.0
HI = 13  # tokens of the prompt that `ask` makes by default
ECHO = 8  # tokens of the default answer to it


@pytest.fixture
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=2) as server:
        yield server


def ask(text: str = "Say hi", **more: Any) -> dict[str, Any]:
    """A body as the gateway sends it."""
    body = {"messages": [{"role": "user", "content": text}], "id_slot": 0, "cache_prompt": True}
    return {
        **body,
        "stream": True,
        "return_progress": True,
        "stream_options": {"include_usage": True},
        **more,
    }


def talk(*turns: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return ask(messages=[{"role": roles[n % 2], "content": turn} for n, turn in enumerate(turns)], **more)


class Stream:
    """One request on a socket of its own, read as it comes."""

    def __init__(self, fake: FakeLlama, body: dict[str, Any], path: str = CHAT) -> None:
        data = json.dumps(body).encode()
        self.socket = socket.create_connection(("127.0.0.1", fake.port), timeout=PATIENCE_S)
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
        self.socket.sendall(head.encode() + data)
        self._response: http.client.HTTPResponse | None = None

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.socket.close()
        if self._response is not None:
            self._response.close()  # until then the socket stays open

    def answer(self) -> http.client.HTTPResponse:
        """Wait for the headers."""
        self._response = http.client.HTTPResponse(self.socket)
        self._response.begin()
        return self._response

    def is_silent(self) -> bool:
        """Whether not a byte has come; of use only once the server is known to have done what it does."""
        self.socket.setblocking(False)
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(PATIENCE_S)


def get(fake: FakeLlama, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def post(fake: FakeLlama, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    with Stream(fake, body, path) as stream, stream.answer() as response:
        return response.status, json.loads(response.read())


def blocks(data: bytes) -> list[Any]:
    """The JSON of all `data:` lines but the last, which must be the end mark."""
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n\n")]
    assert lines[-2:] == ["[DONE]", ""]
    return [json.loads(line) for line in lines[:-2]]


def chat(fake: FakeLlama, body: dict[str, Any]) -> list[Any]:
    with Stream(fake, body) as stream, stream.answer() as response:
        assert response.status == 200
        return blocks(response.read())


def reused(chunks: list[Any]) -> tuple[int, int]:
    """Tokens prefilled and reused."""
    timings = chunks[-1]["timings"]
    assert timings["cache_n"] == chunks[-1]["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert timings["cache_n"] + timings["prompt_n"] == chunks[-1]["usage"]["prompt_tokens"]
    return timings["prompt_n"], timings["cache_n"]


def test_a_stream_has_the_shape_of_the_real_one(fake: FakeLlama) -> None:
    fake.script(Script(["I", "'m"]))
    with Stream(fake, ask()) as stream, stream.answer() as response:
        assert response.getheader("content-type") == "text/event-stream"
        assert response.getheader("transfer-encoding") == "chunked"
        chunks = blocks(response.read())
    first, second, third, one, two, finish, last = chunks
    opening = {"finish_reason": None, "index": 0, "delta": {"role": "assistant", "content": None}}
    assert [chunk["choices"] for chunk in (first, second, third)] == [[opening]] * 3
    assert first["prompt_progress"] == {"total": HI, "cache": 0, "processed": 0, "time_ms": 1}
    assert second["prompt_progress"]["processed"] == HI and "prompt_progress" not in third
    assert [chunk["choices"][0]["delta"] for chunk in (one, two)] == [{"content": "I"}, {"content": "'m"}]
    assert finish["choices"] == [{"finish_reason": "stop", "index": 0, "delta": {}}]
    assert "timings" not in finish and last["choices"] == []
    assert last["usage"] == {
        "completion_tokens": 2,
        "prompt_tokens": HI,
        "total_tokens": HI + 2,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert {"cache_n", "prompt_n", "prompt_ms", "predicted_n", "predicted_ms"} <= set(last["timings"])
    for chunk in chunks:
        assert chunk["object"] == "chat.completion.chunk" and {"id", "created", "model"} <= set(chunk)


def test_what_is_not_asked_for_does_not_come(fake: FakeLlama) -> None:
    chunks = chat(fake, {"messages": [{"role": "user", "content": "Say hi"}], "stream": True})
    assert not any("prompt_progress" in chunk or "usage" in chunk for chunk in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop" and chunks[-1]["timings"]["prompt_n"] == HI


def test_without_stream_the_answer_is_one_object(fake: FakeLlama) -> None:
    fake.script(Script([Think("hm"), "Hi", "!"]))
    status, answer = post(fake, CHAT, ask(stream=False))
    message = {"role": "assistant", "content": "Hi!", "reasoning_content": "hm"}
    assert status == 200 and answer["choices"] == [{"index": 0, "finish_reason": "stop", "message": message}]
    assert answer["usage"]["completion_tokens"] == 3 and answer["timings"]["cache_n"] == 0


def test_the_default_answer_is_about_the_last_user_message(fake: FakeLlama) -> None:
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chat(fake, ask())[:-1])
    assert text == "You said: Say hi"


def test_a_conversation_finds_all_but_what_is_new(fake: FakeLlama) -> None:
    fake.script(Script(["Hello", " there"]))
    assert reused(chat(fake, talk("one"))) == (11, 0)
    new, cached = reused(chat(fake, talk("one", "Hello there", "two")))
    assert (new, cached) == (13, 11 + 5)  # "Hello there" are 5 tokens; 13 end it and bring the next turn


def test_a_prompt_that_is_all_there_still_costs_one_token(fake: FakeLlama) -> None:
    chat(fake, ask())
    assert reused(chat(fake, ask())) == (1, HI - 1)


def test_another_agent_in_the_slot_takes_its_content(fake: FakeLlama) -> None:
    ours, theirs = ask("a " * 100), ask("b " * 100)
    assert reused(chat(fake, ours))[1] == 0
    assert reused(chat(fake, theirs))[1] == 3
    assert reused(chat(fake, ours))[1] == 3
    assert reused(chat(fake, ours | {"id_slot": 1}))[1] == 0


def test_the_ram_cache_brings_an_agent_back() -> None:
    with FakeLlama(slots=1, ram_cache=True) as fake:
        ours, theirs = ask("a " * 100), ask("b " * 100)
        chat(fake, ours)
        assert reused(chat(fake, theirs))[1] == 3
        assert reused(chat(fake, ours))[0] == 1


def test_a_slot_that_does_not_exist_wraps_round(fake: FakeLlama) -> None:
    for asked in (5, 4):
        chat(fake, ask(id_slot=asked))
    assert [call.slot for call in fake.requests] == [1, 0]
    assert fake.violations == ["slot 5 of 2", "slot 4 of 2"]


def test_without_a_slot_the_most_alike_is_taken_else_the_oldest() -> None:
    with FakeLlama(slots=3) as fake:
        for text, slot in (
            ("a " * 100, 2),
            ("b " * 100, 1),
            ("a " * 90, 2),
            ("c " * 100, 0),
            ("d " * 100, 1),
        ):
            chat(fake, ask(text, id_slot=-1))
            assert fake.requests[-1].slot == slot, text


def test_a_prompt_beyond_the_slot_is_a_plain_400(fake: FakeLlama) -> None:
    fake.n_ctx = 100
    status, answer = post(fake, CHAT, ask("a " * 200))
    error = answer["error"]
    assert status == 400 and error["type"] == "exceed_context_size_error" and error["code"] == 400
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (410, 100)
    assert error["message"].startswith("request (410 tokens) exceeds the available context size (100 tokens)")
    assert not fake.slots.all[0].busy


def test_a_context_that_is_full_ends_the_answer(fake: FakeLlama) -> None:
    fake.n_ctx = HI + 3
    fake.script(Script(["x"] * 50))
    chunks = chat(fake, ask())
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(("asked", "given"), [(0, 1), (1, 1), (3, 3), (-1, 5), (None, 5)])
def test_the_answer_is_cut_but_has_a_token(fake: FakeLlama, asked: int | None, given: int) -> None:
    fake.script(Script(list("abcde")))
    chunks = chat(fake, ask(max_tokens=asked))
    assert chunks[-1]["usage"]["completion_tokens"] == given
    assert chunks[-2]["choices"][0]["finish_reason"] == ("stop" if given == 5 else "length")


def test_a_busy_slot_defers_without_a_byte(fake: FakeLlama) -> None:
    fake.hold(after=0)
    with Stream(fake, ask()) as first, Stream(fake, ask()) as second:
        fake.until(lambda: fake.slots.deferred == 1)
        fake.until(lambda: fake.requests[0].state == "held")
        assert first.answer().status == 200  # this one has its headers
        assert fake.requests[1].state == "deferred" and second.is_silent()
        fake.release()
        assert second.answer().status == 200
    assert fake.violations == ["two requests at once in slot 0"]


def test_who_waits_for_the_slot_comes_before_who_takes_any() -> None:
    with FakeLlama(slots=1) as fake:
        fake.hold()
        with Stream(fake, ask("first")), Stream(fake, ask("any", id_slot=-1)):
            fake.until(lambda: fake.slots.deferred == 1)
            with Stream(fake, ask("pinned")):
                fake.until(lambda: fake.slots.deferred == 2)
                fake.release(fake.requests[0])
                fake.until(lambda: fake.requests[2].state == "held")
                assert fake.requests[1].state == "deferred"


def test_one_who_waits_and_leaves_disturbs_nobody(fake: FakeLlama) -> None:
    fake.hold(after=1)
    with Stream(fake, ask()) as first:
        fake.until(lambda: fake.requests and fake.requests[0].state == "held")
        with Stream(fake, ask()):
            fake.until(lambda: fake.slots.deferred == 1)
        fake.until(lambda: fake.requests[1].state == "cancelled")
        assert fake.slots.deferred == 0 and fake.requests[1].slot is None
        fake.release()
        assert blocks(first.answer().read())


def test_a_client_that_leaves_frees_the_slot(fake: FakeLlama) -> None:
    fake.script(Script(["some", "thing", Stall()]))
    with Stream(fake, ask()):
        fake.until(lambda: fake.requests and len(fake.requests[0].sent) == 2)
        assert fake.slots.all[0].busy
    fake.until(lambda: fake.requests[0].state == "cancelled")
    assert not fake.slots.all[0].busy
    fake.script(Script(["more"]))
    assert reused(chat(fake, talk("Say hi", "something", "go on")))[1] == HI + 3  # what it wrote is there


def test_a_slot_can_stay_busy_after_its_client_has_left(fake: FakeLlama) -> None:
    fake.linger_s = None
    fake.hold()
    with Stream(fake, ask()):
        fake.until(lambda: fake.requests and fake.requests[0].state == "held")
    fake.until(lambda: fake.requests[0].state == "cancelled")
    assert get(fake, "/slots")[1][0]["is_processing"] is True
    fake.release()
    with Stream(fake, ask()) as second:
        fake.until(lambda: fake.slots.deferred == 1)
        assert second.is_silent()
        fake.let_go()
        assert blocks(second.answer().read())
    assert fake.violations == ["two requests at once in slot 0"]


def test_the_slots_say_what_they_do(fake: FakeLlama) -> None:
    idle = {"id": 1, "n_ctx": 8192, "speculative": False, "is_processing": False}
    assert get(fake, "/slots") == (200, [idle | {"id": 0}, idle])
    fake.hold(after=1)
    with Stream(fake, ask()) as stream:
        fake.until(lambda: fake.requests and fake.requests[0].state == "held")
        busy, other = get(fake, "/slots")[1]
        assert busy["is_processing"] is True and busy["id_task"] == 1 and other == idle
        assert busy["next_token"][0]["n_decoded"] == 1 and busy["n_prompt_tokens_processed"] == HI
        fake.release()
        stream.answer().read()
    assert get(fake, "/slots")[1][0]["is_processing"] is False


def test_slots_are_saved_erased_and_restored(fake: FakeLlama) -> None:
    chat(fake, ask())
    held = len(fake.slots.all[0].tokens)
    assert held == HI + ECHO
    name = {"filename": "a.bin"}
    status, saved = post(fake, "/slots/0?action=save", name)
    assert status == 200 and saved["n_saved"] == held and saved["n_written"] and saved["timings"]["save_ms"]
    assert post(fake, "/slots/0?action=erase", {})[1] == {"id_slot": 0, "n_erased": held}
    assert reused(chat(fake, ask()))[1] == 0
    assert post(fake, "/slots/1?action=restore", name)[1]["n_restored"] == held
    assert reused(chat(fake, ask(id_slot=1))) == (1, HI - 1)
    status, unknown = post(fake, "/slots/1?action=restore", {"filename": "b.bin"})
    assert status == 400 and "Unable to restore slot" in unknown["error"]["message"]
    assert post(fake, "/slots/1?action=dance", name)[0] == 400
    assert [action for action, _, _ in fake.actions] == ["save", "erase", "restore", "restore"]


def test_an_action_on_a_busy_slot_waits_and_then_happens(fake: FakeLlama) -> None:
    fake.hold(after=1)
    with Stream(fake, ask()) as stream, Stream(fake, {}, "/slots/0?action=erase") as erasing:
        fake.until(lambda: fake.slots.deferred == 1 and fake.requests and fake.requests[0].state == "held")
        assert erasing.is_silent()
        fake.release()
        stream.answer().read()
        assert json.loads(erasing.answer().read())["n_erased"] > HI
    assert fake.violations == ["erase of slot 0, which is busy"]


def test_what_is_switched_off_is_a_501() -> None:
    with FakeLlama(slot_files=False, slots_endpoint=False) as fake:
        assert post(fake, "/slots/0?action=save", {"filename": "a.bin"})[0] == 501
        assert get(fake, "/slots")[0] == 501


def test_a_restore_can_lie() -> None:
    with FakeLlama(restores=False) as fake:
        chat(fake, ask())
        post(fake, "/slots/0?action=save", {"filename": "a.bin"})
        assert post(fake, "/slots/0?action=restore", {"filename": "a.bin"})[1]["n_restored"] > 0
        assert reused(chat(fake, ask()))[1] == 0


def test_props_health_and_models(fake: FakeLlama) -> None:
    props = get(fake, "/props")[1]
    assert props["total_slots"] == 2 and props["default_generation_settings"]["n_ctx"] == 8192
    assert props["modalities"]["vision"] is False and props["build_info"] == "b0-unknown"
    assert props["model_path"] == get(fake, "/v1/models")[1]["data"][0]["id"]
    assert get(fake, "/health") == (200, {"status": "ok"})
    assert get(fake, "/nowhere")[0] == 404
    fake.loading = True
    status, answer = get(fake, "/health")
    assert status == 503 and answer["error"]["message"] == "Loading model"


def test_template_tokens_and_count_agree(fake: FakeLlama) -> None:
    prompt = post(fake, "/apply-template", ask())[1]["prompt"]
    assert prompt == "<|im_start|>user\nSay hi<|im_end|>\n<|im_start|>assistant\n"
    tokens = post(fake, "/tokenize", {"content": prompt})[1]["tokens"]
    count = post(fake, f"{CHAT}/input_tokens", ask())[1]
    assert count == {"object": "response.input_tokens", "input_tokens": len(tokens)}
    assert reused(chat(fake, ask()))[0] == len(tokens)


def test_thinking_and_tool_calls_come_as_fragments_and_are_history(fake: FakeLlama) -> None:
    calls = [Tool(0, "c1", "read", '{"pa'), Tool(1, "c2", "list", "{}"), Tool(0, arguments='th":"a"}')]
    fake.script(Script([Think("hm"), "Well", *calls]))
    chunks = chat(fake, ask(tools=[{"type": "function", "function": {"name": "read"}}]))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[3:-2]]
    assert deltas[:2] == [{"reasoning_content": "hm"}, {"content": "Well"}]
    assert [delta["tool_calls"] for delta in deltas[2:]] == [
        [{"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"pa'}}],
        [{"index": 1, "id": "c2", "type": "function", "function": {"name": "list", "arguments": "{}"}}],
        [{"index": 0, "function": {"arguments": 'th":"a"}'}}],
    ]
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    held = fake.slots.all[0].tokens
    functions = [("c1", "read", '{"path":"a"}'), ("c2", "list", "{}")]
    turn = {
        "role": "assistant",
        "content": "Well",
        "reasoning_content": "hm",
        "tool_calls": [{"id": i, "function": {"name": n, "arguments": a}} for i, n, a in functions],
    }
    result = {"role": "tool", "tool_call_id": "c1", "content": "text"}
    history = fake.requests[0].body | {"messages": [*ask()["messages"], turn, result]}
    assert reused(chat(fake, history))[1] == len(held)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 400, "'messages' is required"),
        (ask(messages=[{"role": "user", "content": [{"type": "image_url"}]}]), 500, "image input"),
        (
            talk("a") | {"messages": [{"role": r, "content": ""} for r in ("user", "system")]},
            500,
            "System message",
        ),
    ],
)
def test_bodies_that_are_refused(body: dict[str, Any], status: int, says: str) -> None:
    with FakeLlama(system_anywhere=False) as fake:
        answer = post(fake, CHAT, body)
        assert answer[0] == status and says in answer[1]["error"]["message"]


def test_invalid_json_is_refused(fake: FakeLlama) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("POST", CHAT, b"{nope")
        response = connection.getresponse()
        assert response.status == 400 and b"parse error" in response.read()


def test_a_server_with_eyes_takes_images() -> None:
    with FakeLlama(vision=True) as fake:
        parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:"}}]
        chat(fake, ask(messages=[{"role": "user", "content": parts}]))
        assert "see<|image|>" in fake.requests[0].prompt


def test_a_restart_loses_connections_and_content_but_no_files(fake: FakeLlama) -> None:
    chat(fake, ask())
    post(fake, "/slots/0?action=save", {"filename": "a.bin"})
    port = fake.port
    fake.hold(after=1)
    with Stream(fake, ask()) as stream:
        response = stream.answer()
        fake.until(lambda: fake.requests[1].state == "held")
        fake.restart(slots=3)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            response.read()
    assert fake.requests[1].state == "cancelled" and fake.port == port
    fake.release()
    assert get(fake, "/props")[1]["total_slots"] == 3
    assert [slot.get("id_task") for slot in get(fake, "/slots")[1]] == [None, None, None]
    assert reused(chat(fake, ask()))[1] == 0
    assert post(fake, "/slots/2?action=restore", {"filename": "a.bin"})[1]["n_restored"] > 0


def test_a_server_that_is_stopped_refuses_connections(fake: FakeLlama) -> None:
    fake.stop()
    with pytest.raises(ConnectionRefusedError):
        get(fake, "/health")
    fake.start()
    assert get(fake, "/health")[0] == 200


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("reset", [True, False])
def test_it_dies_when_told(fake: FakeLlama, before: bool, reset: bool) -> None:
    fake.script(Script(before=Die(reset)) if before else Script(["one", Die(reset), "two"]))
    with Stream(fake, ask()) as stream, pytest.raises((ConnectionError, http.client.HTTPException)):
        assert b"one" in stream.answer().read()
    fake.until(lambda: fake.requests[0].over)
    assert fake.requests[0].state == "broken" and not fake.slots.all[0].busy


@pytest.mark.parametrize("before", [True, False])
def test_it_stalls_until_it_is_resumed(fake: FakeLlama, before: bool) -> None:
    fake.script(Script(["one"], before=Stall()) if before else Script(["one", Stall()]))
    with Stream(fake, ask()) as stream:
        fake.until(lambda: fake.requests and fake.requests[0].state == "running")
        if not before:
            fake.until(lambda: len(fake.requests[0].sent) == 1)
        assert fake.slots.all[0].busy and stream.is_silent() is before
        fake.resume()
        assert blocks(stream.answer().read())


@pytest.mark.parametrize(
    ("piece", "sent"),
    [
        (HALF_CHARACTER, b'{"content":"\xe6\xb8'),
        (INVALID_JSON, b'"content":}}]}\n\n'),
        (ERROR_INSIDE, b'"type":"server_error"}}\n\n'),
    ],
)
def test_rubbish_comes_as_scripted(fake: FakeLlama, piece: Any, sent: bytes) -> None:
    fake.script(Script(["one", piece], finish=False, usage=False, done=False))
    with Stream(fake, ask()) as stream:
        assert stream.answer().read().endswith(sent)


@pytest.mark.parametrize(
    ("missing", "mark"),
    [("finish", b'"stop"'), ("usage", b'"usage"'), ("done", b"[DONE]"), ("progress", b"prompt_p")],
)
def test_what_is_left_out_is_missing(fake: FakeLlama, missing: str, mark: bytes) -> None:
    with Stream(fake, ask()) as stream:
        assert mark in stream.answer().read()
    left_out: dict[str, Any] = {missing: False}
    fake.script(Script(["one"], **left_out))
    with Stream(fake, ask()) as stream:
        assert mark not in stream.answer().read()


def test_the_content_type_can_be_wrong(fake: FakeLlama) -> None:
    fake.script(Script(["one"], content_type="text/html"))
    with Stream(fake, ask()) as stream:
        assert stream.answer().getheader("content-type") == "text/html"


@pytest.mark.parametrize(
    ("refusal", "status", "retry_after"),
    [(LOADING, 503, None), (TOOLS_REFUSED, 400, None), (rate_limited("7"), 429, "7")],
)
def test_refusals_come_as_scripted(
    fake: FakeLlama, refusal: Refusal, status: int, retry_after: str | None
) -> None:
    fake.script(lambda body: Script(refuse=refusal))
    with Stream(fake, ask()) as stream:
        answer = stream.answer()
        assert (answer.status, answer.getheader("retry-after")) == (status, retry_after)
        assert json.loads(answer.read()) == refusal.body
    assert fake.requests[0].state == "refused" and fake.requests[0].slot is None


def test_pings_come_and_nothing_else(fake: FakeLlama) -> None:
    fake.script(Script([Pings()]))
    with Stream(fake, ask()) as stream:
        response = stream.answer()
        lines = [response.readline() for _ in range(6 + 40)]
        assert set(lines[6:]) == {b":\n", b"\n"}  # after three blocks of two lines
        fake.resume()
        assert response.read().endswith(b"data: [DONE]\n\n")


def test_a_line_without_an_end(fake: FakeLlama) -> None:
    fake.script(Script([Flood()]))
    with Stream(fake, ask()) as stream:
        response = stream.answer()
        data = b"".join(response.read(65536) for _ in range(40))
        assert data.rpartition(b"\n\n")[2].endswith(b"x" * 2_000_000)
    fake.until(lambda: fake.requests[0].state == "cancelled")


def test_a_trickle_brings_all_of_it(fake: FakeLlama) -> None:
    fake.script(Script(["渐"], trickle_s=0))
    assert chat(fake, ask())[3]["choices"][0]["delta"] == {"content": "渐"}


def test_requests_say_who_asked(fake: FakeLlama) -> None:
    with Stream(fake, ask()) as stream:
        stream.answer().read()
        assert fake.requests[0].connection == stream.socket.getsockname()[1]
    assert fake.requests[0].headers["host"] == "x" and fake.requests[0].body == ask()
    assert fake.asked[CHAT] == 1
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", fake.port)) as connection:
        connection.request("POST", CHAT, json.dumps(ask()), {"X-Conversation-Id": "1"})
        connection.getresponse().read()
    assert fake.violations == ["x-conversation-id was passed on"]


def test_a_request_can_be_held_at_its_end(fake: FakeLlama) -> None:
    fake.script(Script(["one", "two"]))
    fake.hold(after=99)
    with Stream(fake, ask()) as stream:
        fake.until(lambda: fake.requests and fake.requests[0].state == "held")
        assert fake.requests[0].sent == ["one", "two"] and fake.slots.all[0].busy
        fake.release(fake.requests[0])
        assert blocks(stream.answer().read())


async def test_asynchronous_tests_can_wait_too(fake: FakeLlama) -> None:
    fake.hold()
    with Stream(fake, ask()) as stream:
        await fake.when(lambda: fake.requests and fake.requests[0].state == "held")
        fake.release()
        assert blocks(stream.answer().read())


def test_what_does_not_happen_is_said(fake: FakeLlama) -> None:
    chat(fake, ask())
    with pytest.raises(AssertionError, match=r"\(0, 'done'\)"):
        fake.until(lambda: False, timeout_s=0)
