"""The gateway's own log: one line a record, whatever stands in it."""

import json
import logging
import sys

import pytest

from herdr.cli.logs import set_up_logging

HOSTILE = "one\r\ntwo\x1b[2Jthree\x9b4m sk-0123456789abcdef"


@pytest.fixture(autouse=True)
def restored() -> object:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(form: str, capsys: pytest.CaptureFixture[str]) -> str:
    set_up_logging(form)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logging.getLogger("herdr.test").exception("it failed: %s", HOSTILE)
    assert sys.stderr is not None
    return capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_record_is_one_line_without_control_characters(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = logged(form, capsys)
    assert said.count("\n") == 1 and said.endswith("\n")
    assert not [c for c in said[:-1] if ord(c) < 32 or 127 <= ord(c) < 160]
    assert said.count("[redacted]") == 2 and "sk-0" not in said
    assert "ValueError" in said and "it failed: one" in said


def test_json_keeps_what_the_text_was(capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.loads(logged("json", capsys))
    assert fields["event"].startswith("it failed: one\r\ntwo\x1b[2J")
    assert fields["level"] == "error"
