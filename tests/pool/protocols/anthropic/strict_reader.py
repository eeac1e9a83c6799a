"""A client of Anthropic's stream that forgives nothing; written from the documentation, not from the encoder."""

import json
from typing import Any

USAGE = {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}
DELTAS = {  # kind of block → kinds of its deltas, and the field that each fills
    "text": {"text_delta": "text"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
}
EMPTY = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


class StreamError(Exception):
    """The stream said that it failed."""


def split_events(stream: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Take the stream apart; every event is exactly one `event:` and one `data:` line."""
    assert stream.endswith(b"\n\n") or not stream
    events = []
    for block in stream.split(b"\n\n")[:-1]:
        first, second = block.split(b"\n")
        assert first.startswith(b"event: ") and second.startswith(b"data: "), block
        assert len(second.decode().splitlines()) == 1, "some clients split lines at U+2028 and its like"
        data = json.loads(second[6:])
        assert data["type"] == first[7:].decode()
        events.append((data["type"], data))
    return events


class StrictReader:
    """Reads events one by one; `message` is what a client has at the end."""

    def __init__(self, parse_arguments: bool = True) -> None:
        self.parse_arguments = parse_arguments
        self.message: dict[str, Any] = {}
        self.json: dict[int, str] = {}
        self.open: int | None = None
        self.state = "new"

    def read(self, stream: bytes) -> dict[str, Any]:
        for name, data in split_events(stream):
            getattr(self, f"on_{name}")(data)
        return self.message

    def on_ping(self, data: dict[str, Any]) -> None:
        assert data == {"type": "ping"}

    def on_error(self, data: dict[str, Any]) -> None:
        assert set(data) == {"type", "error", "request_id"} and set(data["error"]) == {"type", "message"}
        raise StreamError(data["error"]["type"], data["error"]["message"], data["request_id"])

    def on_message_start(self, data: dict[str, Any]) -> None:
        assert self.state == "new"
        self.state, self.message = "started", data["message"]
        fields = {"id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "usage"}
        assert set(self.message) == fields
        assert self.message["type"] == "message" and self.message["role"] == "assistant"
        assert self.message["content"] == [] and self.message["stop_reason"] is None
        self.take_usage(data["message"]["usage"])

    def on_content_block_start(self, data: dict[str, Any]) -> None:
        assert self.state == "started" and self.open is None, "one block at a time"
        block = data["content_block"]
        if block["type"] == "tool_use":
            assert set(block) == {"type", "id", "name", "input"} and block["input"] == {}
        else:
            assert block == EMPTY[block["type"]]
        assert data["index"] == len(self.message["content"]), "indexes are 0, 1, 2, …"
        self.open = data["index"]
        self.json[self.open] = ""
        self.message["content"].append(dict(block))

    def on_content_block_delta(self, data: dict[str, Any]) -> None:
        assert self.open is not None and data["index"] == self.open, "a delta of a block that is not open"
        block, delta = self.message["content"][self.open], data["delta"]
        field = DELTAS[block["type"]][delta["type"]]
        assert set(delta) == {"type", field} and delta[field] != ""
        if field == "partial_json":
            self.json[self.open] += delta[field]
        elif field == "signature":
            block[field] = delta[field]
        else:
            assert not block.get("signature"), "the signature comes last"
            block[field] += delta[field]

    def on_content_block_stop(self, data: dict[str, Any]) -> None:
        assert self.open is not None and data["index"] == self.open
        block = self.message["content"][self.open]
        if block["type"] == "tool_use" and self.json[self.open] and self.parse_arguments:
            block["input"] = json.loads(self.json[self.open])
            assert isinstance(block["input"], dict)
        assert block.get("text") != "", "an empty block of text"
        assert block.get("thinking") != "" or block["signature"], "an empty block of thinking"
        self.open = None

    def on_message_delta(self, data: dict[str, Any]) -> None:
        assert self.state == "started" and self.open is None
        self.state = "delta"
        assert set(data["delta"]) == {"stop_reason", "stop_sequence"}
        self.message.update(data["delta"])
        assert isinstance(self.message["stop_reason"], str)
        self.take_usage(data["usage"])

    def on_message_stop(self, data: dict[str, Any]) -> None:
        assert self.state == "delta"
        self.state = "stopped"

    def take_usage(self, usage: dict[str, Any]) -> None:
        assert set(usage) == USAGE
        assert all(type(count) is int and count >= 0 for count in usage.values())
        self.message["usage"] = usage


def read_whole(stream: bytes, parse_arguments: bool = True) -> dict[str, Any]:
    """Return the message of a stream that must be complete."""
    reader = StrictReader(parse_arguments)
    message = reader.read(stream)
    assert reader.state == "stopped"
    return message
