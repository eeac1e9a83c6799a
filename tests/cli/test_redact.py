import json

from command_line import Cli

SECRET = "hunter2"


def publish_secret(herdr: Cli) -> str:
    data = json.dumps({"password": SECRET})
    done = herdr("publish", "user.message", "--source", "me", "--subject", "login", "--data", data, "--json")
    return str(json.loads(done.stdout)["seq"])


def holds_secret(herdr: Cli) -> bool:
    return SECRET in herdr("tail", "--after", "0", "--count", "1", "--json").stdout


def test_with_yes_it_blanks_the_payload(herdr: Cli) -> None:
    seq = publish_secret(herdr)
    assert holds_secret(herdr)
    done = herdr("redact", seq, "--yes")
    assert (done.returncode, done.stdout) == (0, f"event {seq} is blanked: user.message from me\n")
    assert "if it was a secret, change it" in done.stderr
    assert not holds_secret(herdr)
    assert any(event["type"] == "herdr.redacted" for event in herdr.events())


def test_json_is_what_is_left(shared: Cli) -> None:
    seq = publish_secret(shared)
    left = json.loads(shared("redact", seq, "--yes", "--json").stdout)
    assert (left["seq"], left["data"]) == (int(seq), {"redacted": True})


def test_without_a_terminal_it_needs_yes(herdr: Cli) -> None:
    done = herdr("redact", publish_secret(herdr), stdin="y\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "repeat with --yes" in done.stderr
    assert holds_secret(herdr)


def test_at_a_terminal_it_asks(herdr: Cli) -> None:
    seq = publish_secret(herdr)
    for answer in (b"\n", b"n\n"):
        code, shown = herdr.at_terminal("redact", seq, typed=answer)
        assert code == 1
        assert f"Blank event {seq} for good? user.message from me about login [y/N]" in shown
        assert holds_secret(herdr)
    assert herdr.at_terminal("redact", seq, typed=b"y\n")[0] == 0
    assert not holds_secret(herdr)


def test_mistakes_are_explained(shared: Cli) -> None:
    unknown = shared("redact", "4711", "--yes")
    assert unknown.returncode == 1
    assert "no event 4711 is retained" in unknown.stderr
    assert "is not the seq of an event, such as 4711" in shared("redact", "-", "--yes").stderr
