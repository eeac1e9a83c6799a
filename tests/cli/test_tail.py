import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Cli
from gateway import GatewayProcess, running_gateway

from herdr.cli.stream import Block, SseReader

ESCAPES = "\x1b]0;owned\x07\x1b[31mred\u202e\u009b2J"


def publish(herdr: Cli, *types: str, **fields: str) -> None:
    lines = "".join(json.dumps({"type": type_, **fields}) + "\n" for type_ in types)
    assert herdr("publish", "--ndjson", stdin=lines).returncode == 0


def types_of(done: "subprocess.CompletedProcess[str]") -> list[str]:
    return [json.loads(line)["type"] for line in done.stdout.splitlines()]


def test_one_line_an_event(herdr: Cli) -> None:
    herdr("publish", "test.failed", "--source", "ci", "--subject", "a.py", "--data", '{"n": 1}')
    done = herdr("tail", "--after", "0", "--count", "1")
    [event] = herdr.events()
    time_of_day = event["accepted"].partition("T")[2].rstrip("Z")
    assert done.stdout == f'     1  {time_of_day}  P1  test.failed  ci  a.py  {{"n": 1}}\n'
    assert (done.returncode, done.stderr) == (0, "")


def test_json_is_the_envelope_as_sent(herdr: Cli) -> None:
    publish(herdr, "a.b", "c.d", source="me")
    done = herdr("tail", "--after", "0", "--count", "2", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == herdr.events()


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A gateway with one event for each filter."""
    stock: list[dict[str, str]] = [
        {"type": "a.b", "source": "me"},
        {"type": "c.d"},
        {"type": "test.failed"},
        {"type": "user.message"},
        {"type": "w.w", "workspace": "w"},
        {"type": "s.s", "session": "s"},
        {"type": "sub.ject", "subject": "src/a/b.py"},
        {"type": "x.y", "source": "me"},
    ]
    folder = tmp_path_factory.mktemp("stocked")
    with running_gateway(folder / "data") as process:
        herdr = Cli(process.url, folder)
        herdr("publish", "--ndjson", stdin="".join(json.dumps(event) + "\n" for event in stock))
        yield herdr


@pytest.mark.parametrize(
    ("filters", "types"),
    [
        (("--type", "a.*", "--type", "c.d"), ["a.b", "c.d"]),
        (("--source", "me"), ["a.b", "x.y"]),
        (("--class", "environment"), ["test.failed"]),
        (("--priority", "P0"), ["user.message"]),
        (("--workspace", "w"), ["w.w"]),
        (("--session", "s"), ["s.s"]),
        (("--subject", "src/**"), ["sub.ject"]),
        (("--source", "me", "--type", "x.y"), ["x.y"]),
    ],
)
def test_filters(stocked: Cli, filters: tuple[str, ...], types: list[str]) -> None:
    done = stocked("tail", "--after", "0", *filters, "--count", str(len(types)), "--json")
    assert sorted(types_of(done)) == sorted(types)


def test_wrong_arguments_are_explained(shared: Cli, nowhere: Cli) -> None:
    assert "is not NAME=VALUE" in shared("tail", "--attr", "x").stderr
    assert shared("tail", "--count", "0").returncode == 2
    cursor = shared("tail", "--after", "yesterday")
    assert cursor.returncode == 1
    assert "'yesterday' is not a cursor" in cursor.stderr
    away = nowhere("tail")
    assert (away.returncode, away.stdout) == (3, "")
    assert "herdr serve" in away.stderr


def test_a_gap_is_told(herdr: Cli) -> None:
    publish(herdr, "a.b")
    done = herdr("tail", "--after", "999999", "--count", "1", "--json")
    assert done.stderr == (
        "herdr: gap: the log ends at 1, before your cursor: it was reset or restored; "
        "going on from the oldest retained\n"
    )
    assert json.loads(done.stdout.splitlines()[0])["seq"] == 1


def test_a_cursor_of_another_log_is_told(herdr: Cli) -> None:
    publish(herdr, "a.b")
    done = herdr("tail", "--after", "00000000:1-1-1", "--count", "1", "--json")
    assert done.stderr.startswith("herdr: gap: this is another log than your cursor's")
    assert json.loads(done.stdout.splitlines()[0])["seq"] == 1


def test_a_target_goes_on_after_what_was_printed(herdr: Cli) -> None:
    herdr("routes", "set", "r", "--event", "a.*", "--target", "t t")
    publish(herdr, "a.1", "a.2", "b.1", "a.3", "a.4")
    assert types_of(herdr("tail", "--as", "t t", "--count", "2", "--json")) == ["a.1", "a.2"]
    assert types_of(herdr("tail", "--as", "t t", "--count", "1", "--json")) == ["a.3"]
    assert types_of(herdr("tail", "--as", "t t", "--after", "0", "--count", "4", "--json"))[0] == "a.1"


def test_what_nobody_read_is_not_acknowledged(herdr: Cli) -> None:
    herdr("routes", "set", "r", "--event", "a.*", "--target", "t")
    publish(herdr, "a.1")
    reading, writing = os.pipe()
    os.close(reading)
    with herdr.start("tail", "--as", "t", "--json", stdout=writing) as process:
        os.close(writing)
        assert process.stderr is not None
        assert (process.wait(30), process.stderr.read()) == (141, b"")
    assert types_of(herdr("tail", "--as", "t", "--count", "1", "--json")) == ["a.1"]


def test_attributes_decide_what_a_target_gets(herdr: Cli) -> None:
    herdr("routes", "set", "r", "--event", "a.*", "--target", "t", "--match", "attr.activity=debugging")
    herdr("routes", "set", "all", "--event", "b.*", "--target", "t")
    publish(herdr, "a.1", "b.1")
    tail = ("tail", "--as", "t", "--after", "0", "--json", "--count")
    assert types_of(herdr(*tail, "1")) == ["b.1"]
    assert types_of(herdr(*tail, "2", "--attr", "activity=debugging")) == ["a.1", "b.1"]


def test_it_survives_a_restart_of_the_gateway(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as first:
        herdr = Cli(first.url, tmp_path)
        publish(herdr, "a.1")
        with herdr.start("tail", "--after", "0", "--json", "--count", "3") as process:
            assert process.stdout is not None and process.stderr is not None
            assert json.loads(process.stdout.readline())["type"] == "a.1"
            first.stop()
            again = GatewayProcess(tmp_path / "data", ("--port", str(first.port))).start()
            try:
                publish(herdr, "a.2", "a.3")
                assert json.loads(process.stdout.readline())["type"] == "a.2"
                assert json.loads(process.stdout.readline())["type"] == "a.3"
                assert process.wait(30) == 0
            finally:
                again.kill()
            said = process.stderr.read().decode()
    assert said.startswith("herdr: the gateway is stopping\n")
    assert said.endswith("herdr: connected again\n")


def test_one_interrupt_ends_it(shared: Cli) -> None:
    publish(shared, "a.b")
    with shared.start("tail", "--after", "0") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert (process.wait(30), process.stderr.read()) == (130, b"")


def test_a_payload_cannot_drive_the_terminal(herdr: Cli) -> None:
    data = json.dumps({"text": ESCAPES}, ensure_ascii=False)
    herdr("publish", "a.b", "--subject", "\u202e\u009b31m", "--data", data)
    for options in ((), ("--json",)):
        _, shown = herdr.at_terminal(
            "tail", "--after", "0", "--count", "1", *options, NO_COLOR="1", COLUMNS="500"
        )
        assert shown.rstrip("\r\n").isprintable()
        assert "\\u202e\\u009b31m" in shown
    piped = herdr("tail", "--after", "0", "--count", "1")
    assert piped.stdout.rstrip("\n").isprintable()
    assert json.loads(herdr("tail", "--after", "0", "--count", "1", "--json").stdout)["data"] == {
        "text": ESCAPES
    }


def test_lanes_have_colours_at_a_terminal_only(shared: Cli) -> None:
    publish(shared, "user.message", source="colours")
    tail = ("tail", "--after", "0", "--count", "1", "--source", "colours")
    _, shown = shared.at_terminal(*tail)
    assert shown.startswith("\x1b[1;33m") and shown.rstrip().endswith("\x1b[0m")
    _, shown = shared.at_terminal(*tail, NO_COLOR="1")
    assert "\x1b" not in shown
    assert "\x1b" not in shared(*tail).stdout


def test_lines_fit_the_terminal(shared: Cli) -> None:
    shared("publish", "a.b", "--source", "wide", "--data", json.dumps("x" * 500))
    _, shown = shared.at_terminal("tail", "--after", "0", "--count", "1", "--source", "wide", COLUMNS="60")
    assert len(shown.rstrip("\r\n")) == 60
    assert shown.rstrip("\r\n").endswith("…")


def test_a_latin_terminal_gets_escapes_and_not_a_traceback(shared: Cli) -> None:
    shared("publish", "a.b", "--source", "emoji", "--data", '"🎉"')
    done = shared("tail", "--after", "0", "--count", "1", "--source", "emoji", PYTHONIOENCODING="latin-1")
    assert '"\\U0001f389"' in done.stdout


STREAM = (
    b'retry: 2500\nid: e:0-0-0\n\nid: e:1-0-0\nevent: a.b\ndata: {"n":1}\n\n'
    b": keep-alive\nid: e:2-0-0\n\nevent: herdr.bye\ndata: {}\n\n"
)


@pytest.mark.parametrize("size", [1, 2, 7, len(STREAM)])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_the_stream_may_come_in_any_pieces(size: int, line_end: bytes) -> None:
    raw = STREAM.replace(b"\n", line_end)
    reader = SseReader("")
    found = [block for at in range(0, len(raw), size) for block in reader.feed(raw[at : at + size])]
    assert found == [Block("a.b", '{"n":1}', "e:1-0-0"), Block("herdr.bye", "{}", "e:2-0-0")]
    assert (reader.cursor, reader.retry_ms) == ("e:2-0-0", 2500)
