import json

import pytest

from herdr.pool.failures import STATUSES
from herdr.pool.protocols import openai


@pytest.mark.parametrize(
    ("status", "code", "type_", "known_as"),
    [
        (400, "invalid_request", "invalid_request_error", "invalid_request"),
        (400, "prompt_too_long", "invalid_request_error", "context_length_exceeded"),
        (401, "unauthorized", "authentication_error", "invalid_api_key"),
        (403, "missing_scope", "permission_error", "missing_scope"),
        (404, "unknown_model", "not_found_error", "model_not_found"),
        (413, "too_large", "invalid_request_error", "too_large"),
        (429, "rate_limited", "rate_limit_error", "rate_limit_exceeded"),
        (500, "internal", "server_error", "internal"),
        (502, "backend_failed", "server_error", "backend_failed"),
        (503, "queue_timeout", "server_error", "queue_timeout"),
        (504, "backend_timeout", "server_error", "backend_timeout"),
    ],
)
def test_errors_have_the_types_that_clients_know(status: int, code: str, type_: str, known_as: str) -> None:
    assert json.loads(openai.error_body(status, code, 'so "it" is', "01CALL")) == {
        "error": {"message": 'so "it" is', "type": type_, "param": None, "code": known_as}
    }


def test_every_failure_of_a_model_has_a_type() -> None:
    types = {json.loads(openai.error_body(s, c, "", ""))["error"]["type"] for c, s in STATUSES.items()}
    assert types == {"invalid_request_error", "not_found_error", "rate_limit_error", "server_error"}
