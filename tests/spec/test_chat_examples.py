"""The model examples of spec/examples: what they ask is understood, and the stream that they show is what is sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from herdr.pool.chunk import End, TextDelta, ToolDelta, ToolEnd, ToolStart, Usage
from herdr.pool.protocols import herdr
from herdr.pool.protocols.dialect import Ending, Opening

EXAMPLES = Path(__file__).parent.parent.parent / "spec" / "examples"
ASKED: dict[str, Any] = json.loads((EXAMPLES / "chat.json").read_text())


def plainly_read(stream: str) -> list[tuple[str, dict[str, Any]]]:
    """Read a stream as the plainest client does: no comments, and one JSON object at each blank line."""
    found: list[tuple[str, dict[str, Any]]] = []
    event, data = "", []
    for line in stream.split("\n"):
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and data:
            found.append((event, json.loads("\n".join(data))))
            event, data = "", []
    return found


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_is_understood(name: str) -> None:
    asked = ASKED[name]
    request = herdr.parse(json.dumps(asked).encode())
    assert (request.route, request.agent) == (asked.get("route"), asked.get("agent"))
    assert [tool.name for tool in request.tools] == [tool["name"] for tool in asked.get("tools", [])]
    assert request.stream is asked.get("stream", True)
    assert len(request.messages) == len(asked["messages"])
    assert (request.context is None) == ("context" not in asked)


def test_the_stream_is_what_is_sent() -> None:
    shown = (EXAMPLES / "chat-stream.txt").read_text()
    opening = Opening("01M8PDYB1JSYK6DZJEZ8ZX5VZW", "default", "reviewer", 0, 12, 1_800_000_000)
    encoder = herdr.encoder(opening, herdr.parse(json.dumps(ASKED["the least"]).encode()))
    chunks = [
        TextDelta("It rains."),
        ToolStart("call_2", "weather"),
        ToolDelta('{"city":'),
        ToolDelta('"Rome"}'),
        ToolEnd(),
    ]
    sent = encoder.start() + encoder.ping() + b"".join(encoder.feed(chunk) for chunk in chunks)
    sent += encoder.end(End("tool_use", Usage(120, 100, 24)), Ending(12, 60, 240))
    assert plainly_read(sent.decode()) == plainly_read(shown)
    assert [kind for kind, _ in plainly_read(shown)] == [
        *("message.start", "message.delta", "tool.call", "message.end")
    ]
    assert sent.decode() == shown
