"""Server-sent events: bytes in any pieces to events, by the WHATWG rules. Pure: no socket, no clock.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
Lines end with CR, LF or CRLF and with nothing else: `str.splitlines` would also split at U+2028, U+0085
and others, which may stand inside `data`.
"""

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
EVENT_BYTES_MAX = 32 * 1024 * 1024  # one unfinished event; more is no gateway of ours but a runaway stream
_RETRY_DIGITS_MAX = 15  # a longer wait is no wait anybody means


@dataclass(frozen=True, slots=True)
class SSEEvent:
    """One dispatched event. `id` is the last one seen, so it may come from an earlier event."""

    event: str
    data: str
    id: str


class SSEParser:
    """Feed it what arrives; it returns the events that are complete.

    `last_event_id` is what a reconnect has to send, `retry_ms` what the server asked to wait before it.
    Use a new parser for each response, begun with the old one's `last_event_id`.
    """

    def __init__(self, last_event_id: str = "") -> None:
        self.last_event_id = last_event_id
        self.retry_ms: int | None = None
        self._id = last_event_id
        self._event = ""
        self._data: list[str] = []
        self._data_size = 0
        self._line: list[bytes] = []
        self._line_size = 0
        self._head: bytes | None = b""  # the first bytes, until they can be told from a BOM
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """Take the next bytes; raises ValueError when one event grows beyond `EVENT_BYTES_MAX`."""
        chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        events: list[SSEEvent] = []
        start = 0
        for end in _LINE_END.finditer(chunk):
            self._line.append(chunk[start : end.start()])
            start = end.end()
            self._take_line(events)
        self._keep(chunk[start:])
        self._after_cr = self._after_cr or (bool(chunk) and chunk.endswith(b"\r"))
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        if self._head is None:
            return chunk
        head = self._head + chunk
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
        if self._line_size + self._data_size > EVENT_BYTES_MAX:
            raise ValueError(f"an event of the stream exceeds {EVENT_BYTES_MAX} bytes; it does not end")

    def _take_line(self, events: list[SSEEvent]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        self._line_size = 0
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        self._take_field(name, value.removeprefix(b" ").decode("utf-8", "replace"))

    def _take_field(self, name: bytes, value: str) -> None:
        if name == b"data":
            self._data.append(value)
            self._data_size += len(value)
        elif name == b"event":
            self._event = value
        elif name == b"id" and "\0" not in value:
            self._id = value
        elif name == b"retry" and value.isascii() and value.isdigit() and len(value) <= _RETRY_DIGITS_MAX:
            self.retry_ms = int(value)

    def _dispatch(self, events: list[SSEEvent]) -> None:
        self.last_event_id = self._id
        if self._data:
            events.append(SSEEvent(self._event or "message", "\n".join(self._data), self._id))
        self._data = []
        self._event = ""
        self._data_size = 0
