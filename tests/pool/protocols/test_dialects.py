"""What all four protocols do alike with a body, each in its own fields."""

import json
from typing import Any, NamedTuple

import pytest

from herdr.errors import InvalidInput
from herdr.pool.protocols import anthropic, herdr, openai, responses
from herdr.pool.protocols.dialect import Dialect
from herdr.pool.protocols.reading import SHOWN_MAX, InvalidJson


class Case(NamedTuple):
    dialect: Dialect
    messages: str
    """The field that holds the conversation."""
    max_tokens: str


CASES = {
    "messages": Case(anthropic, "messages", "max_tokens"),
    "completions": Case(openai, "messages", "max_tokens"),
    "responses": Case(responses, "input", "max_output_tokens"),
    "chat": Case(herdr, "messages", "max_tokens"),
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
DEEP = b"[" * 100_000 + b"]" * 100_000


def body(case: Case, messages: Any, **fields: Any) -> bytes:
    return json.dumps({"model": "m", case.messages: messages, **fields}).encode()


def said(role: str) -> dict[str, Any]:
    return {"role": role, "content": "hi"}


def refusal(case: Case, sent: bytes) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as caught:
        case.dialect.parse(sent)
    (error,) = caught.value.errors
    assert caught.value.detail == (f"{error.field}: {error.message}" if error.field else error.message)
    assert len(error.message) < 300
    return error.field, error.message


@each
@pytest.mark.parametrize("sent", [b"", b"{", b"nonsense", b'{"FIELD":[{"role":"user","content":"x"}]} x'])
def test_what_is_no_json_is_refused(case: Case, sent: bytes) -> None:
    sent = sent.replace(b"FIELD", case.messages.encode())
    with pytest.raises(InvalidJson):
        case.dialect.parse(sent)
    field, message = refusal(case, sent)
    assert field == "" and "not valid JSON" in message


@each
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"[]", "send a JSON object"),
        (b"null", "send a JSON object"),
        (b'"x"', "send a JSON object"),
        (b"\xff", "not UTF-8"),
        (b'{"FIELD":[{"role":"user","content":"\xff"}]}', "not UTF-8"),
        (b'{"ignored":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"tools":[{"name":"n","parameters":{"a":"\xe6\xb8"}}]}', "not UTF-8"),
        (b'{"x":' + b"[" * 100_000, "nested too deeply"),
        (b'{"x":' * 100_000, "nested too deeply"),
        (b'{"ignored":' + DEEP + b"}", "nested too deeply"),
    ],
)
def test_what_is_no_body_is_refused(case: Case, sent: bytes, said: str) -> None:
    field, message = refusal(case, sent.replace(b"FIELD", case.messages.encode()))
    assert field == "" and said in message


@each
def test_a_role_that_nobody_knows(case: Case) -> None:
    field, message = refusal(case, body(case, [said("user"), said("robot")]))
    assert field == f"{case.messages}[1].role"
    assert message.startswith("Unknown role 'robot'; it must be one of ")
    assert f"'{'x' * SHOWN_MAX}…'" in refusal(case, body(case, [said("x" * 9999)]))[1]


@each
def test_a_conversation_that_is_missing(case: Case) -> None:
    field, message = refusal(case, b'{"model":"m"}')
    assert field == case.messages and message.startswith("Required, but missing")


@each
def test_no_answer_may_be_asked_for_and_only_the_prompt_evaluated(case: Case) -> None:
    limited = body(case, [said("user")], **{case.max_tokens: 0})
    assert case.dialect.parse(limited).max_tokens == 0
    assert case.dialect.parse(body(case, [said("user")])).max_tokens is None
    assert refusal(case, body(case, [said("user")], **{case.max_tokens: -2}))[0] == case.max_tokens
