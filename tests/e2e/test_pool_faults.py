"""What goes wrong on either side of a call: clients that leave, servers that fail, a gateway that stops."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

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
    Raw,
    Refusal,
    Script,
    Stall,
    Tool,
    error,
)
from fake_llama.script import Piece
from gateway import GatewayProcess, refused_start
from model_clients import CHAT, CLIENTS, MESSAGES, Asking, Client, Event
from model_gateway import (
    backend,
    configured,
    last,
    model_gateway,
    pool,
    recorded,
    row,
    slots,
    told,
    until_running,
    wait_for_queue,
    wait_for_rest,
)
from wire import all_events, call, health, wait_until

SECRET = "a9Zq-4711-topsecret"
HELLO = Script(["Hel", "lo", "!"])
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=2) as server:
        yield server


@pytest.fixture(scope="module")
def shared(fake: FakeLlama, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("faults")
    impatient = {"between_chunks_s": 0.3, "first_byte_s": 0.5}
    servers = {
        "local": fake,
        "hasty": {"kind": "llamacpp", "url": fake.url, "timeouts": impatient},
        "brief": {"kind": "llamacpp", "url": fake.url, "timeouts": {"total_s": 0.5}},
        "away": {"kind": "openai", "url": "http://127.0.0.1:9"},
        "cloud": {"kind": "openai", "url": fake.url, "api_key_env": "CLOUD_KEY"},
    }
    with model_gateway(folder, servers, env={"CLOUD_KEY": SECRET}) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """The shared gateway, which every fault has to leave at rest and able to answer."""
    fake.script(HELLO)
    yield shared
    fake.loading = False
    fake.release()
    fake.resume()
    fake.let_go()
    fake.linger_s = 0.0
    fake.script(HELLO)
    for name in ("local", "hasty", "brief"):
        wait_until(lambda name=name: backend(shared, name)["state"] == "ready", "the backend to be ready")
        wait_for_rest(shared, name)
    for _ in range(2):
        assert CHAT.text(CHAT.whole(shared, "Are you well?")) == "Hello!"
    assert fake.violations == []
    assert not [line for line in shared.log if "Traceback" in line or "never retrieved" in line]


def until_heard(
    asking: Asking, client: Client = CHAT, text: str = "Hel"
) -> tuple[list[Event], Iterator[Event]]:
    """Read a stream until so much has been said."""
    stream = asking.events()
    seen = [next(stream)]
    while client.heard(seen) != text:
        seen.append(next(stream))
    return seen, stream


def error_of(gateway: GatewayProcess, asking: Asking) -> object:
    return row(gateway, asking.header("x-herdr-call"))["error"]


# -- the client leaves --------------------------------------------------------------------------------------


@each
def test_a_client_that_leaves_the_queue(gateway: GatewayProcess, fake: FakeLlama, client: Client) -> None:
    fake.hold(after=0)
    with ExitStack() as stack:
        for number in range(2):
            stack.enter_context(CHAT.ask(gateway, f"running {number}"))
        until_running(fake, 2)
        asking = stack.enter_context(client.ask(gateway, "waiting", stream=True))
        whole = stack.enter_context(client.ask(gateway, "waiting too", stream=False))
        wait_for_queue(gateway, 2)
        asked = len(fake.requests)
        asking.leave()
        whole.leave()
        wait_for_queue(gateway, 0)
        fake.release()
    wait_for_rest(gateway)
    assert len(fake.requests) == asked, "it was generated for nobody"


@each
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_client_that_leaves_during_the_prefill(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    fake.hold()  # no header has come
    asking = client.ask(gateway, "prefill", stream=stream)
    until_running(fake, 1)
    request = last(fake)
    asking.leave()
    fake.until(lambda: request.state == "cancelled")
    wait_for_rest(gateway)


@each
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_client_that_leaves_during_the_answer(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    fake.hold(after=1)
    asking = client.ask(gateway, "answer", stream=stream)
    if stream:
        until_heard(asking, client)
    until_running(fake, 1)
    request = last(fake)
    asking.leave()
    fake.until(lambda: request.state == "cancelled")
    wait_for_rest(gateway)
    if stream:
        assert error_of(gateway, asking) == "client_gone"


def test_a_slot_whose_generation_was_cut_is_free_only_when_the_server_says_so(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    fake.linger_s = None
    fake.hold(after=1)
    asking = CHAT.ask(gateway, "cut")
    until_heard(asking)
    request = last(fake)
    asking.leave()
    fake.until(lambda: request.state == "cancelled")
    fake.release()
    (busy,) = [seen for seen in slots(gateway) if seen["state"] == "busy"]
    assert busy["slot"] == request.slot
    with ExitStack() as stack:
        fake.hold(after=0)
        other = stack.enter_context(CHAT.ask(gateway, "other"))
        until_running(fake, 1)
        assert last(fake).slot != request.slot
        third = stack.enter_context(CHAT.ask(gateway, "third"))
        wait_for_queue(gateway, 1)
        fake.let_go()
        until_running(fake, 2)
        assert last(fake).slot == request.slot
        fake.release()
        assert CHAT.assembled(list(other.events())) and CHAT.assembled(list(third.events()))


def test_what_a_cut_generation_leaves_in_its_slot_is_used_again(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    agent = {"x-agent-id": "interrupted"}
    fake.hold(after=1)
    asking = CHAT.ask(gateway, "A long question " * 20, headers=agent)
    until_heard(asking)
    cut = last(fake)
    asking.leave()
    fake.until(lambda: cut.state == "cancelled")
    fake.release()
    wait_for_rest(gateway)
    whole = CHAT.whole(gateway, "A long question " * 20, "Hel", "Go on", headers=agent)
    assert last(fake).slot == cut.slot
    assert CHAT.tokens(whole)[1] >= cut.prompt_tokens


def test_who_waits_for_a_shared_answer_is_told_of_its_failure_too(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    fake.script(Script(["Hel", Die()]))
    fake.hold(after=1)
    with ExitStack() as stack:
        asking = [
            stack.enter_context(c.ask(gateway, "Hi", temperature=0, max_tokens=50, stream=True))
            for c in CLIENTS
        ]
        seen = [until_heard(one, client) for one, client in zip(asking, CLIENTS, strict=True)]
        assert len({one.header("x-herdr-call") for one in asking}) == 1
        fake.release()
        for client, (events, stream) in zip(CLIENTS, seen, strict=True):
            assert client.failure([*events, *stream])


# -- the server fails before an answer ----------------------------------------------------------------------

LONG = error(400, "exceed_context_size_error", "request exceeds", n_prompt_tokens=9000, n_ctx=8192)
REDIRECT = Refusal(302, b"", {"location": "http://127.0.0.1:9/elsewhere"})
HTML = Refusal(500, b"<!DOCTYPE html><html><body>nginx</body></html>", {"content-type": "text/html"})
REFUSALS = {
    "tools": (TOOLS_REFUSED, 400, "invalid_request_error", "parse grammar"),
    "loading": (LOADING, 503, "api_error", "loading"),
    "too long": (LONG, 400, "invalid_request_error", "prompt is too long: 9000 tokens > 8192 maximum"),
    "redirect": (REDIRECT, 502, "api_error", "302"),
    "html": (HTML, 502, "api_error", "HTML"),
    "empty": (Refusal(500, b""), 502, "api_error", "500"),
    "no json": (Refusal(400, b'{"error":'), 400, "invalid_request_error", "400"),
    "deep": (Refusal(500, b"[" * 60_000), 502, "api_error", "500"),
    "unknown": (error(404, "not_found_error", "model not found"), 404, "not_found_error", "does not know"),
    "no key": (error(401, "authentication_error", "Invalid API Key"), 502, "api_error", "api_key_env"),
}


@each
@pytest.mark.parametrize("case", REFUSALS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_server_that_refuses(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, case: str, stream: bool
) -> None:
    refusal, status, kind, says = REFUSALS[case]
    fake.script(Script(refuse=refusal))
    with client.ask(gateway, "Hi", stream=stream) as asking:
        answer = asking.answer()
        assert answer.status == status, answer
        given, message = client.refusal(answer)
        assert says in message
        if client is MESSAGES:
            assert given == kind and "overloaded_error" not in answer.body.decode()
        assert answer.headers["request-id"] == f"req_{answer.headers['x-herdr-call']}"
        assert ("retry-after" in answer.headers) == (status == 503)
        assert error_of(gateway, asking) not in (None, "internal")
    assert says in told(gateway)


@each
def test_a_server_that_is_not_there(gateway: GatewayProcess, client: Client) -> None:
    with client.ask(gateway, "Hi", model="away", stream=True) as asking:
        answer = asking.answer()
    assert answer.status == 502
    _, message = client.refusal(answer)
    assert "away" in message and "127.0.0.1:9" in message and "models.backends" in message


def test_tokens_are_estimated_while_the_server_is_away(gateway: GatewayProcess) -> None:
    body = MESSAGES.body("word " * 100, model="away")
    answer = call(gateway, "POST", "/v1/messages/count_tokens", body)
    assert answer.status == 200 and 50 <= answer.json()["input_tokens"] <= 300


def test_a_server_that_still_loads_is_waited_for(tmp_path: Path) -> None:
    with FakeLlama(1) as fake:
        fake.loading = True
        fake.script(HELLO)
        gateway = configured(tmp_path, {"local": fake}).start()
        try:
            wait_until(lambda: fake.asked["/props"], "the first look")
            with CHAT.ask(gateway, "Hi") as asking:
                wait_for_queue(gateway, 1)
                assert backend(gateway)["state"] == "starting"
                fake.loading = False
                assert CHAT.text(CHAT.assembled(list(asking.events()))) == "Hello!"
        finally:
            gateway.kill()


# -- the server fails before the first word: still a status -------------------------------------------------

EARLY: dict[str, tuple[list[Piece], int, str]] = {
    "dies": ([Die()], 502, "broke off"),
    "resets": ([Die(reset=True)], 502, "broke off"),
    "half a character": ([HALF_CHARACTER, Die()], 502, ""),
    "invalid JSON": ([INVALID_JSON], 502, "cannot be read"),
    "error": ([ERROR_INSIDE], 502, "context shift failed"),
    "too long": (
        [
            Raw(
                b'data: {"error":{"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}\n\n'
            )
        ],
        400,
        "prompt is too long: 9000 tokens > 8192 maximum",
    ),
    "busy": ([Raw(b'data: {"error":{"code":503,"message":"no slot"}}\n\n')], 503, "too busy"),
}


@each
@pytest.mark.parametrize("case", EARLY)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_server_that_fails_before_its_first_word(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, case: str, stream: bool
) -> None:
    pieces, status, says = EARLY[case]
    fake.script(Script(pieces, progress=False))
    with client.ask(gateway, "Hi", stream=stream) as asking:
        answer = asking.answer()
        assert answer.status == status, answer
        assert says in client.refusal(answer)[1]
        assert error_of(gateway, asking) not in (None, "internal")


@pytest.mark.parametrize("how", [Die(), Die(reset=True)], ids=["closes", "resets"])
def test_a_server_that_dies_before_its_headers(gateway: GatewayProcess, fake: FakeLlama, how: Die) -> None:
    fake.script(Script(before=how))
    for client in CLIENTS:
        with client.ask(gateway, "Hi", stream=True) as asking:
            answer = asking.answer()
        assert answer.status == 502 and "broke off" in client.refusal(answer)[1]


@pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
def test_a_server_that_answers_nothing(gateway: GatewayProcess, fake: FakeLlama, done: bool) -> None:
    fake.script(Script([], finish=False, usage=False, progress=False, done=done))
    for client in CLIENTS:
        with client.ask(gateway, "Hi", stream=True) as asking:
            answer = asking.answer()
        assert answer.status == 502, answer
        client.refusal(answer)


def test_a_server_that_answers_with_a_page(gateway: GatewayProcess, fake: FakeLlama) -> None:
    page = Raw(b"<!DOCTYPE html>\n<html>\n<body>Log in first</body>\n</html>\n")
    fake.script(
        Script([page], content_type="text/html", finish=False, usage=False, progress=False, done=False)
    )
    for client in CLIENTS:
        with client.ask(gateway, "Hi", stream=True) as asking:
            answer = asking.answer()
        assert answer.status == 502, answer
        client.refusal(answer)


# -- the server fails in mid-stream: an error event, never a clean end --------------------------------------

LATE: dict[str, tuple[list[Piece], str]] = {
    "dies": ([Die()], "broke off"),
    "resets": ([Die(reset=True)], "broke off"),
    "half a character": ([HALF_CHARACTER, Die()], ""),
    "invalid UTF-8": (
        [Raw(b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"}}]}\n\n')],
        "cannot be read",
    ),
    "invalid JSON": ([INVALID_JSON], "cannot be read"),
    "error": ([ERROR_INSIDE], "context shift failed"),
    "endless line": ([Flood()], "more than"),
    "half a call": ([Tool(0, "c", "weather", '{"city":')], "weather"),
}


@each
@pytest.mark.parametrize("case", LATE)
def test_a_server_that_fails_in_mid_stream(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, case: str
) -> None:
    pieces, says = LATE[case]
    fake.script(Script(["Hel", *pieces]))
    fake.hold(after=1)
    with client.ask(gateway, "Hi", stream=True, **client.tools()) as asking:
        seen, stream = until_heard(asking, client)
        fake.release()
        seen += stream
        assert not asking.broken
        failure = client.failure(seen)
        assert failure is not None and says in failure, seen[-1]
        assert error_of(gateway, asking) == "backend_failed"
    fake.until(lambda: last(fake).over)


@each
def test_a_whole_answer_that_fails_half_way_is_an_error(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    fake.script(Script(["Hel", Die()]))
    with client.ask(gateway, "Hi", stream=False) as asking:
        answer = asking.answer()
    assert answer.status == 502
    client.refusal(answer)


@each
def test_a_stream_without_an_end_is_no_answer(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    fake.script(Script(["Hel", "lo"], finish=False, usage=False, done=False))
    with client.ask(gateway, "Hi", stream=True) as asking:
        assert client.failure(list(asking.events()))


def test_characters_split_anywhere_arrive_whole(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script(["渐", "変 🦀"], trickle_s=0.0))
    for client in CLIENTS:
        assert client.text(client.streamed(gateway, "Hi")) == "渐変 🦀"


# -- the server is slow -------------------------------------------------------------------------------------


@each
def test_a_generation_that_is_stuck_is_cut_and_the_others_go_on(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    fake.linger_s = None  # as a stuck one: it does not end when its client leaves
    stuck = Script(["Hel", Stall()])
    fake.script(lambda body: stuck if "stuck" in str(body["messages"]) else HELLO)
    with ExitStack() as stack:
        asking = stack.enter_context(client.ask(gateway, "stuck", model="hasty", stream=True))
        failure = client.failure(list(asking.events()))
        assert failure and "too long" in failure
        request = last(fake)
        assert error_of(gateway, asking) == "backend_timeout"
        fake.until(lambda: request.state == "cancelled")
        assert slots(gateway, "hasty")[request.slot or 0]["state"] == "busy"
        assert backend(gateway, "hasty")["running"] == 1
        for number in range(2):
            whole = CHAT.whole(gateway, f"going on {number}", model="hasty")
            assert CHAT.text(whole) == "Hello!" and whole["slot"] != request.slot
        fake.let_go()
        wait_for_rest(gateway, "hasty")
        assert CHAT.text(CHAT.whole(gateway, "going on", model="hasty")) == "Hello!"


def test_pings_are_no_sign_of_life(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script(["Hel", Pings()]))
    with CHAT.ask(gateway, "Hi", model="hasty") as asking:
        assert "too long" in str(CHAT.failure(list(asking.events())))


@each
def test_a_server_that_says_nothing_at_all(gateway: GatewayProcess, fake: FakeLlama, client: Client) -> None:
    fake.script(Script(before=Stall()))
    with client.ask(gateway, "Hi", model="hasty", stream=True) as asking:
        answer = asking.answer()
        assert answer.status == 504
        assert "too long" in client.refusal(answer)[1]
        assert error_of(gateway, asking) == "backend_timeout"


def test_a_whole_answer_has_its_time(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script(["x"] * 100_000, pace_s=0.01))
    with CHAT.ask(gateway, "Hi", model="brief", max_tokens=8000) as asking:
        assert "too long" in str(CHAT.failure(list(asking.events())))
    fake.until(lambda: last(fake).over)


def test_a_long_prefill_opens_the_stream_before_its_first_word(tmp_path: Path) -> None:
    with FakeLlama(8) as fake, ExitStack() as stack:
        fake.script(lambda body: Script([Die()]) if "die" in str(body["messages"]) else HELLO)
        fake.hold()  # no header comes
        gateway = stack.enter_context(model_gateway(tmp_path, {"local": fake}, shares={}))
        good = [stack.enter_context(client.ask(gateway, "Hi", stream=True)) for client in CLIENTS]
        bad = [stack.enter_context(client.ask(gateway, "die", stream=True)) for client in CLIENTS]
        until_running(fake, 8)
        streams = []
        for client, asking in zip(CLIENTS * 2, (*good, *bad), strict=True):
            assert asking.status == 200 and asking.header("x-herdr-slot") != "none"
            stream = asking.events()
            streams.append((client, [next(stream)], stream))
        assert all(request.state == "held" for request in fake.requests)
        fake.release()
        for client, seen, stream in streams[:4]:
            assert client.text(client.assembled([*seen, *stream])) == "Hello!"
        for client, seen, stream in streams[4:]:
            assert client.failure([*seen, *stream])


# -- the gateway stops --------------------------------------------------------------------------------------


def test_a_gateway_that_stops_in_mid_stream(tmp_path: Path) -> None:
    with FakeLlama(5) as fake, ExitStack() as stack:
        fake.script(HELLO)
        fake.hold(after=1)
        gateway = stack.enter_context(model_gateway(tmp_path, {"local": fake}, shares={}))
        streams = []
        for client in CLIENTS:
            asking = stack.enter_context(client.ask(gateway, f"for {client.name}", stream=True))
            streams.append((client, asking, *until_heard(asking, client)))
        whole = stack.enter_context(CHAT.ask(gateway, "whole", stream=False))
        until_running(fake, 5)
        waiting = [
            (client, stack.enter_context(client.ask(gateway, "waiting", stream=True))) for client in CLIENTS
        ]
        wait_for_queue(gateway, len(waiting))
        assert gateway.stop() == 0
        for client, asking, seen, stream in streams:
            seen += stream
            assert not asking.broken and "stopping" in str(client.failure(seen)), seen[-1]
        for client, asking in (*waiting, (CHAT, whole)):
            answer = asking.answer()
            assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
            assert "stopping" in client.refusal(answer)[1]
        fake.until(lambda: all(request.state == "cancelled" for request in fake.requests))
        assert not [
            line
            for line in gateway.log
            if any(w in line for w in ("Traceback", "never retrieved", "destroyed"))
        ]
        gateway.start()
        records = [event["data"] for event in recorded(gateway, "model.call")]
        assert len(records) == 9 and all(record["error"] for record in records)


def test_a_gateway_that_stops_while_a_slot_does_not_get_free(tmp_path: Path) -> None:
    with FakeLlama(2, linger_s=None) as fake:
        fake.script(HELLO)
        fake.hold(after=1)
        with model_gateway(tmp_path, {"local": fake}) as gateway:
            asking = CHAT.ask(gateway, "Hi")
            until_heard(asking)
            asking.leave()
            fake.until(lambda: last(fake).state == "cancelled")
            assert gateway.stop() == 0
            assert not [
                line
                for line in gateway.log
                if any(w in line for w in ("Traceback", "never retrieved", "destroyed", '"error"'))
            ]


# -- secrets ------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 500, 503])
def test_a_key_that_the_server_repeats_goes_nowhere(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, status: int
) -> None:
    said = error(status, "server_error", f"Incorrect API key provided: {SECRET}. It is {SECRET}!")
    fake.script(Script(refuse=said))
    before = len(gateway.log)
    with client.ask(gateway, "Hi", model="cloud", stream=True) as asking:
        answer = asking.answer()
        row(gateway, asking.header("x-herdr-call"))
    assert last(fake).headers["authorization"] == f"Bearer {SECRET}"
    assert answer.status >= 400
    assert SECRET not in answer.body.decode()
    assert SECRET not in str(gateway.log[before:])


def test_a_key_inside_a_stream_goes_nowhere(gateway: GatewayProcess, fake: FakeLlama) -> None:
    before = len(gateway.log)
    data = json.dumps({"error": {"code": 500, "message": f"key {SECRET} is used up"}}).encode()
    for pieces in ([Raw(b"data: " + data + b"\n\n")], [Raw(b"data: {" + SECRET.encode() + b"}\n\n")]):
        fake.script(Script(["Hel", *pieces]))
        for client in CLIENTS:
            with client.ask(gateway, "Hi", model="cloud", stream=True) as asking:
                assert SECRET not in asking.answer().body.decode()
    assert SECRET not in str(gateway.log[before:])


def test_nothing_that_can_be_asked_holds_a_key(gateway: GatewayProcess, fake: FakeLlama) -> None:
    CHAT.whole(gateway, "Hi", model="cloud")
    assert last(fake).headers["authorization"] == f"Bearer {SECRET}"
    seen = [str(pool(gateway)), str(health(gateway)), str(all_events(gateway))]
    for path in ("/metrics", "/v1/models", "/v1/calls", "/openapi.json"):
        seen.append(call(gateway, "GET", path).body.decode())
    assert not [text for text in seen if SECRET in text]


def test_a_clients_own_credentials_are_not_passed_on(gateway: GatewayProcess, fake: FakeLlama) -> None:
    headers = {"authorization": "Bearer the-clients-own", "x-api-key": "the-clients-own", "cookie": "a=b"}
    for model in ("local", "cloud"):
        CHAT.whole(gateway, "Hi", model=model, headers=headers)
        assert "the-clients-own" not in str(last(fake).headers) and "cookie" not in last(fake).headers


def test_a_missing_key_is_said_before_anything_starts(tmp_path: Path) -> None:
    servers = {"cloud": {"kind": "openai", "url": "http://127.0.0.1:9", "api_key_env": "NO_SUCH_KEY"}}
    gateway = configured(tmp_path, servers)
    said = refused_start(gateway.data, *gateway.args)
    assert "cloud" in said and "NO_SUCH_KEY" in said
