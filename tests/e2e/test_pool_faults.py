"""Model servers that refuse, fail, break off or are slow: what each client is told, and that the rest goes on."""

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
from gateway import GatewayProcess
from model_clients import CHAT, CLIENTS, MESSAGES, Client
from model_gateway import (
    assert_well,
    backend,
    configured,
    error_of,
    last,
    model_gateway,
    slots,
    told,
    until_heard,
    until_running,
    wait_for_queue,
    wait_for_rest,
)
from wire import call, wait_until

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
    }
    with model_gateway(folder, servers) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """The shared gateway, which every fault has to leave at rest and able to answer."""
    fake.script(HELLO)
    yield shared
    assert_well(shared, fake, "local", "hasty", "brief")


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
    wait_until(lambda: says in told(gateway), "the log to say why")


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


def test_who_waits_for_a_server_that_goes_away_is_told_at_once(tmp_path: Path) -> None:
    with FakeLlama(1) as fake, ExitStack() as stack:
        fake.hold(after=1)
        gateway = stack.enter_context(model_gateway(tmp_path, {"local": fake}, queue_timeout_s=300))
        running = stack.enter_context(CHAT.ask(gateway, "running"))
        until_running(fake, 1)
        waiting = [
            (client, stack.enter_context(client.ask(gateway, "Hi", stream=True))) for client in CLIENTS
        ]
        wait_for_queue(gateway, len(waiting))
        fake.stop()
        for client, asking in waiting:
            answer = asking.answer()
            assert answer.status == 502 and "cannot be reached" in client.refusal(answer)[1]
        assert CHAT.failure(list(running.events()))


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
        seen, stream = until_heard(asking, client, "Hel")
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
        assert failure and "timeouts.between_chunks_s" in failure
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
        assert "timeouts.between_chunks_s" in str(CHAT.failure(list(asking.events())))


@each
def test_a_server_that_says_nothing_at_all(gateway: GatewayProcess, fake: FakeLlama, client: Client) -> None:
    fake.script(Script(before=Stall()))
    with client.ask(gateway, "Hi", model="hasty", stream=True) as asking:
        answer = asking.answer()
        assert answer.status == 504
        assert "timeouts.first_byte_s" in client.refusal(answer)[1]
        assert error_of(gateway, asking) == "backend_timeout"


def test_a_whole_answer_has_its_time(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script(["x"] * 100_000, pace_s=0.01))
    with CHAT.ask(gateway, "Hi", model="brief", max_tokens=8000) as asking:
        assert "timeouts.total_s" in str(CHAT.failure(list(asking.events())))
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
