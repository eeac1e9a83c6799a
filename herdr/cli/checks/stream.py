"""Whether a stream comes through as it is written: a proxy between that collects it makes every follower deaf."""

import http.client
import secrets
import time

from herdr.cli.checks.finding import Finding, fail, ok, skip, warn
from herdr.cli.client import Gateway, Unreachable, with_query
from herdr.errors import HerdrError

PROBE = "doctor.probe"
WAIT_S = 3.0  # for each silence; a stream that comes through takes milliseconds
LINES_MAX = 200  # of a stream that should begin with two blocks
_FIX = (
    "turn buffering and compression off for /v1/events in the proxy (nginx: `proxy_buffering off; gzip off;`; it "
    "ignores our X-Accel-Buffering where proxy_ignore_headers says so)"
)


class Silence(Exception):
    """The stream did not bring what it should have."""


def stream(gateway: Gateway) -> Finding:
    """Follow, publish one event of the type `doctor.probe`, and time its way back.

    The gateway must have been reached before, with a time-out of `WAIT_S` for each silence.
    """
    subject = secrets.token_hex(8)
    path = with_query("/v1/events", {"type": PROBE, "subject": subject})
    try:
        gateway.read("/v1/events", {"limit": 1})
    except HerdrError as error:
        return skip("stream", error.detail)
    try:
        connection, response = gateway.open("GET", path, headers={"accept": "text/event-stream"})
    except Unreachable:
        return fail(
            "stream", f"no byte of a stream within {WAIT_S:g} s: something in between holds it back", _FIX
        )
    try:
        return _timed(gateway, response, subject)
    except Silence as silence:
        return fail("stream", str(silence), _FIX)
    finally:
        connection.close()


def _timed(gateway: Gateway, response: http.client.HTTPResponse, subject: str) -> Finding:
    if _line(response, b"id:", b"event: herdr.busy", "its first block").startswith(b"event:"):
        return skip("stream", "the gateway has as many followers as it takes")
    if (coding := response.headers.get("content-encoding", "identity")) != "identity":
        return warn("stream", f"it arrives compressed ({coding}), which holds small events back", _FIX)
    begun = time.perf_counter()
    try:
        gateway.call("POST", "/v1/events", {"type": PROBE, "subject": subject, "source": "herdr-doctor"})
    except HerdrError as error:
        return ok("stream", f"its first block came at once (no event was tried: {error.detail})")
    _line(response, b"data:", b"data:", "an event that the gateway has accepted")
    return ok("stream", f"an event came back in {(time.perf_counter() - begun) * 1000:.0f} ms")


def _line(response: http.client.HTTPResponse, start: bytes, other: bytes, what: str) -> bytes:
    """Return the next line with one of two beginnings; raises Silence."""
    try:
        for _ in range(LINES_MAX):
            line = response.readline()
            if line.startswith((start, other)):
                return line
            if not line:
                raise Silence(f"it ended before {what}")
    except TimeoutError:
        raise Silence(f"{what} did not come within {WAIT_S:g} s: something in between collects it") from None
    except (OSError, http.client.HTTPException) as error:
        raise Silence(f"it broke off before {what}: {error}") from None
    raise Silence(f"{what} did not come")
