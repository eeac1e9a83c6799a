"""One record of a call, for tests."""

from herdr.pool.records import CallRecord

RECORD = CallRecord(
    call="01J",
    time="2026-01-01T00:00:00.000Z",
    agent="a",
    session="s",
    route="primary_agent",
    priority=5,
    backend="local",
    model="m",
    slot=0,
    queue_ms=20,
    first_token_ms=1500,
    total_ms=2500,
    prompt_tokens=100,
    cached_tokens=60,
    output_tokens=7,
    stop_reason="end_turn",
)
