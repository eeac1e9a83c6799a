import json

import pytest
from command_line import Cli


def test_rules_are_set_shown_and_deleted(herdr: Cli) -> None:
    empty = herdr("routes", "list")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "there are no rules" in empty.stderr
    put = herdr(
        "routes", "set", "a/b c", "--event", "test.*", "--target", "debugger", "--priority", "P0", "--json"
    )
    rule = json.loads(put.stdout)
    assert rule["name"] == "a/b c"
    assert json.loads(herdr("routes", "show", "a/b c", "--json").stdout) == rule
    assert json.loads(herdr("routes", "list", "--json").stdout) == rule
    assert herdr("routes", "list").stdout.splitlines() == [
        "name   event   target    match  priority  timeout_ms  format  context  origin",
        "a/b c  test.*  debugger  -      P0        -           full    -        api",
    ]
    assert "priority    P0" in herdr("routes", "show", "a/b c").stdout.splitlines()
    assert herdr("routes", "delete", "a/b c").returncode == 0
    gone = herdr("routes", "show", "a/b c")
    assert gone.returncode == 1
    assert "no route is called 'a/b c'" in gone.stderr


def test_every_option_becomes_a_field(shared: Cli) -> None:
    options = ["--event", "*", "--target", "t", "--timeout-ms", "200", "--format", "ref"]
    options += ["--session-tokens", "64", "--graph"]
    matches = [
        "data.n=3",
        "data.n=4.5",
        'data.n="3"',
        "data.ok=true",
        "subject=src/**",
        "data.name=NaN",
        "source=null",
    ]
    done = shared("routes", "set", "r", *options, *(x for m in matches for x in ("--match", m)), "--json")
    rule = json.loads(done.stdout)
    assert rule["match"] == {
        "data.n": [3, 4.5, "3"],
        "data.ok": True,
        "subject": "src/**",
        "data.name": "NaN",
        "source": "null",
    }
    assert (rule["timeout_ms"], rule["format"]) == (200, "ref")
    assert rule["context"] == {"session_tokens": 64, "graph": True}
    shown = shared("routes", "show", "r").stdout
    assert "context     session_tokens=64 graph=true\n" in shown
    assert f"match       {' '.join(matches)}\n" in shown


def test_a_rule_decides_who_gets_an_event(shared: Cli) -> None:
    shared("routes", "set", "r", "--event", "a.b", "--target", "t", "--match", "data.n=3")
    for n in (3, 4):
        shared("publish", "a.b", "--data", f'{{"n": {n}}}')
    shared("publish", "a.b", "--data", '{"n": 3, "last": true}')
    done = shared("tail", "--as", "t", "--count", "2", "--json")
    assert [json.loads(line)["data"] for line in done.stdout.splitlines()] == [
        {"n": 3},
        {"n": 3, "last": True},
    ]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("set", "r", "--target", "t"), 2, "required: --event"),
        (("set", "r", "--event", "a", "--target", "t", "--match", "x"), 2, "is not FIELD=VALUE"),
        (("set", "r", "--event", "a", "--target", "t", "--match", "colour=1"), 1, "cannot match on 'colour'"),
        (("set", "r", "--event", "a", "--target", "t", "--timeout-ms", "0"), 1, "timeout_ms"),
        (("delete", "nosuch"), 1, "no route is called 'nosuch'"),
        ((), 2, "required: PART"),
    ],
)
def test_mistakes_are_explained(shared: Cli, args: tuple[str, ...], code: int, said: str) -> None:
    done = shared("routes", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
