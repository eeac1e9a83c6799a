import json
import os
import threading
from pathlib import Path

import pytest
from command_line import Cli
from gateway import running_gateway

from herdr.cli.stdin_lines import BYTES_MAX, read_batches
from herdr.errors import HerdrError


def test_an_event_is_published_and_its_receipt_printed(herdr: Cli) -> None:
    done = herdr("publish", "user.message", "--data", '{"text": "hi"}')
    [event] = herdr.events()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"accepted seq {event['seq']} id {event['id']}\n"
    assert (event["type"], event["data"]) == ("user.message", {"text": "hi"})


def test_every_option_becomes_a_field(herdr: Cli) -> None:
    options = (
        "--source me --subject a/b.py --workspace w --session s --task t --priority P0 --tag x --tag y --id 7"
    )
    done = herdr("publish", "a.b", *options.split(), "--based-on", "0", "--if-stale", "notify", "--json")
    assert json.loads(done.stdout)["status"] == "accepted"
    [event] = herdr.events()
    wanted = {
        **{"source": "me", "subject": "a/b.py", "workspace": "w", "session": "s", "task": "t", "id": "7"},
        **{"priority": "P0", "tags": ["x", "y"], "based_on": 0, "if_stale": "notify", "data": None},
    }
    assert {name: event[name] for name in wanted} == wanted


@pytest.mark.parametrize("options", [("--data", "-"), ("--data-file", "-"), ("--data-file", "data.json")])
def test_the_payload_arrives_byte_for_byte(shared: Cli, options: tuple[str, ...]) -> None:
    payload = '{"big": 123456789012345678901234567890, "e": 1e3, "twice": 1, "twice": 2}'
    (shared.cwd / "data.json").write_text(payload)
    receipt = json.loads(shared("publish", "a.b", *options, "--json", stdin=payload).stdout)
    shown = shared("tail", "--after", str(receipt["seq"] - 1), "--count", "1", "--json").stdout
    assert shown.rstrip("\n").endswith(f'"data":{payload}}}')


@pytest.mark.parametrize(
    ("args", "stdin", "said"),
    [
        (("a.b", "--data", "hello"), "", "--data is not JSON"),
        (("a.b", "--data-file", "-"), '{"a":', "stdin is not JSON"),
        (("a.b", "--data-file", "-"), "[" * 100_000, "stdin is not JSON"),
        ((), "", "TYPE is missing"),
        (("a.b", "--ndjson"), "", "--ndjson takes whole events: put type into each line"),
        (("a.b", "--data", "1", "--data-file", "x"), "", "not allowed with argument"),
        (("a.b", "--token", "a\nb"), "", "holds characters no token has"),
        (("a.b", "--url", "127.0.0.1:8787"), "", "is not an address such as http://"),
    ],
)
def test_a_wrong_command_line_exits_with_2(
    nowhere: Cli, args: tuple[str, ...], stdin: str, said: str
) -> None:
    done = nowhere("publish", *args, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_refusal_says_what_was_expected(shared: Cli) -> None:
    done = shared("publish", "Not A Type")
    assert done.returncode == 1
    assert "type: expected dotted lower case" in done.stderr
    assert "source: expected" in shared("publish", "a.b", "--source", "a\x1b[31m").stderr
    assert "herdr.* is the gateway's own" in shared("publish", "herdr.x").stderr


def test_a_missing_file_is_one_line(shared: Cli) -> None:
    done = shared("publish", "a.b", "--data-file", "nosuch.json")
    assert (done.returncode, done.stderr) == (1, "herdr: nosuch.json: No such file or directory\n")


def test_duplicates_are_fine_and_stale_ones_are_not(shared: Cli) -> None:
    first = json.loads(
        shared("publish", "change.made", "--source", "a", "--id", "1", "--subject", "f", "--json").stdout
    )
    again = shared("publish", "change.made", "--source", "a", "--id", "1", "--subject", "f")
    assert (again.returncode, again.stdout) == (0, f"duplicate seq {first['seq']} id 1\n")
    stale = shared("publish", "change.made", "--source", "b", "--subject", "f", "--based-on", "0")
    assert stale.returncode == 1
    assert stale.stdout.startswith("stale ")
    assert f"conflict: seq {first['seq']} about f by a is newer" in stale.stdout


def test_without_a_gateway_the_exit_code_is_3(nowhere: Cli) -> None:
    for stdin, args in (("", ("a.b",)), ('{"type":"a.b"}\n', ("--ndjson",))):
        done = nowhere("publish", *args, stdin=stdin)
        assert (done.returncode, done.stdout) == (3, "")
        assert "nothing listens at http://127.0.0.1:1: start the gateway with `herdr serve`" in done.stderr
    assert "Line 1 and what follows were not published" in done.stderr


def test_tokens(tmp_path: Path) -> None:
    tokens = '[{name: dev, token: good, scopes: ["events:publish"]}]'
    with running_gateway(tmp_path / "data", env={"HERDR_GATEWAY_AUTH__TOKENS": tokens}) as process:
        herdr = Cli(process.url, tmp_path)
        assert herdr("publish", "a.b").returncode == 4
        assert "HERDR_GATEWAY_TOKEN" in herdr("publish", "a.b").stderr
        assert herdr("publish", "a.b", HERDR_GATEWAY_TOKEN="bad").returncode == 4
        assert herdr("publish", "a.b", HERDR_GATEWAY_TOKEN="good\n").returncode == 0
        assert herdr("publish", "a.b", "--token", "good", HERDR_GATEWAY_TOKEN="bad").returncode == 0
        refused = herdr("routes", "list", "--token", "good")
        assert refused.returncode == 4
        assert "lacks the scope 'routes'" in refused.stderr


def test_lines_are_answered_in_order(herdr: Cli) -> None:
    lines = "".join(f'{{"type":"a.b","id":"{n}"}}\n\n' for n in range(1201))
    done = herdr("publish", "--ndjson", stdin=lines.rstrip("\n"))
    receipts = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [r["id"] for r in receipts] == [str(n) for n in range(1201)]
    assert [r["seq"] for r in receipts] == list(range(1, 1202))


def test_a_slow_producer_is_answered_at_once(shared: Cli) -> None:
    with shared.start("publish", "--ndjson") as process:
        assert process.stdin is not None and process.stdout is not None
        for number in range(3):
            process.stdin.write(b'{"type":"a.b","source":"slow","id":"%d"}\n' % number)
            assert json.loads(process.stdout.readline())["id"] == str(number)
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_wrong_line_is_named_and_ends_it(shared: Cli) -> None:
    done = shared("publish", "--ndjson", stdin='{"type":"a.b"}\n\n{"type":"a.b","colour":1}\n')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("herdr: line 3: colour: unknown field")
    assert "nothing was published from line 1 on" in done.stderr


def test_lost_events_are_counted(herdr: Cli) -> None:
    done = herdr("publish", "--ndjson", stdin='{"type":"index.updated"}\n' * 100)
    statuses = [json.loads(line)["status"] for line in done.stdout.splitlines()]
    dropped = statuses.count("dropped")
    assert dropped > 0 and len(statuses) == 100
    assert done.returncode == 1
    assert done.stderr == f"herdr: {dropped} of 100 events were not stored: {dropped} rate_limited\n"


def batches_of(raw: bytes) -> list[tuple[list[bytes], list[int]]]:
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as pipe:
            pipe.write(raw)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return [(list(batch.lines), list(batch.numbers)) for batch in read_batches(reading)]
    finally:
        os.close(reading)
        writer.join()


def test_batches_hold_every_line_once_and_are_bounded() -> None:
    lines = [b"%d" % n for n in range(3000)]
    found = batches_of(b"\n".join(lines))
    assert [line for batch, _ in found for line in batch] == lines
    assert [n for _, numbers in found for n in numbers] == list(range(1, 3001))
    assert max(len(batch) for batch, _ in found) <= 500
    large = batches_of((b"x" * (BYTES_MAX // 2 - 10) + b"\n") * 5)
    assert sum(len(batch) for batch, _ in large) == 5
    assert all(sum(map(len, batch)) <= BYTES_MAX for batch, _ in large)


def test_blank_lines_count_but_are_not_sent() -> None:
    found = batches_of(b"a\n\n  \nb\n")
    assert [line for batch, _ in found for line in batch] == [b"a", b"b"]
    assert [n for _, numbers in found for n in numbers] == [1, 4]


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * (BYTES_MAX + 300_000))
    with open(tmp_path / "long", "rb") as file, pytest.raises(HerdrError, match="no event may have"):
        list(read_batches(file.fileno()))
