"""Pure: Server-Sent Events, read as the bytes come (WHATWG HTML, section 9.2.6)."""

from herdr.pool.failures import ModelError

EVENT_MAX_BYTES = 16 * 1024 * 1024  # half of the largest body that clients may send; an answer is far smaller
_BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Turns pieces of a stream, split anywhere, into events. Comments, `id` and `retry` are left out.

    As the standard has it, an event that no blank line ended is dropped at the end of the stream, and so is
    one without any `data` line.
    """

    def __init__(self, max_bytes: int = EVENT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._line: list[bytes] = []  # pieces of the line that is not whole yet
        self._line_bytes = 0
        self._event = b""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._after_cr = False
        self._at_start = True
        self._failure: ModelError | None = None

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """Return the events that `data` completes, each as its name (`""`: none given) and its data.

        Raises ModelError `backend_failed` when a line or an event grows beyond the limit; when whole events
        stand before it in the same piece, these are returned, and the next call raises.
        """
        if self._failure is not None:
            raise self._failure
        if data[:6] == b"data: " and data[-2:] == b"\n\n" and self._is_idle():
            alone = data[6:-2]
            if b"\n" not in alone and b"\r" not in alone and len(alone) < self._max_bytes:
                self._at_start = self._after_cr = False
                return [("", alone)]  # how llama.cpp sends nearly all of them: a third of the time
        events: list[tuple[str, bytes]] = []
        try:
            self._split(data, events)
        except ModelError as error:
            self._failure = error
            if not events:
                raise
        return events

    def _is_idle(self) -> bool:
        return not (self._line or self._data or self._event)

    def _split(self, data: bytes, events: list[tuple[str, bytes]]) -> None:
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == 10:  # the second half of a CRLF whose first half ended the last piece
                data = data[1:]
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            self._keep(data)
            return
        lines = data.split(b"\n")
        if self._line:
            lines[0] = b"".join([*self._line, lines[0]])
            self._line.clear()
            self._line_bytes = 0
        rest = lines.pop()
        self._read(lines, events)
        self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._line.append(piece)
        self._line_bytes += len(piece)
        self._check(self._line_bytes)

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise ModelError(
                "backend_failed",
                f"the backend sent a stream event of more than {self._max_bytes} bytes; no answer is that long",
            )

    def _read(self, lines: list[bytes], events: list[tuple[str, bytes]]) -> None:
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line[:6] == b"data: ":
                self._add(line[6:])
            elif line:
                self._field(line)
            else:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append((self._event.decode(errors="replace"), data))
                    self._data.clear()
                    self._data_bytes = 0
                self._event = b""

    def _add(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value) + 1
        self._check(self._data_bytes)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._add(value[1:] if value[:1] == b" " else value)
        elif name == b"event":
            self._event = value[1:] if value[:1] == b" " else value
