"""Publishers and followers that live through crashes of the gateway, and the check of what must hold after.

Everything that was answered is written down; a publisher that loses its connection sends the same ids again,
a follower comes back with its last id. `problems` compares that with the log.
"""

import http.client
import json
import random
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from gateway import GatewayProcess
from websockets.exceptions import WebSocketException
from wire import PATIENCE_S, Socket, Stream

GONE = (OSError, http.client.HTTPException, WebSocketException, EOFError)
TYPES = ("user.message", "tool.result", "test.failed", "index.updated")  # P0, P1, P1, P2


class Row(msgspec.Struct):
    """What a follower sees of an event, with the payload's own bytes."""

    seq: int
    id: str
    source: str
    priority: str
    data: msgspec.Raw


class Receipt(NamedTuple):
    status: str
    seq: int
    source: str
    id: str


read_row = msgspec.json.Decoder(Row).decode
read_rows = msgspec.json.Decoder(list[Row]).decode


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Load:
    """The publishers and followers of one gateway, which is killed and started again under them."""

    def __init__(self, data: Path, program: tuple[str, ...] = ("-m", "herdr")) -> None:
        env = {"HERDR_GATEWAY_BUS__P2_PER_S": "0"}
        self.gateway = GatewayProcess(data, ("--port", str(free_port())), env, program)
        self.receipts: list[Receipt] = []
        self.sent: dict[tuple[str, str], bytes] = {}
        """(source, id) → the payload's bytes."""
        self.followed: dict[str, list[Row]] = defaultdict(list)
        """Query → what its follower got, in order."""
        self.failures: list[BaseException] = []
        self._up = threading.Event()
        self._enough = threading.Event()
        self._end: int | None = None
        self._publishers: list[threading.Thread] = []
        self._followers: list[threading.Thread] = []

    def start(self) -> None:
        """Start the gateway and everybody who uses it."""
        self.gateway.start()
        self._up.set()
        for name, work in (("batch", self._batches), ("single", self._singles), ("socket", self._frames)):
            self._publishers.append(self._thread(work, name))
        for query in ("after=0", "after=0&type=tool.*&type=user.*"):
            self._followers.append(self._thread(self._follow, query))

    def restart(self, *, politely: bool = False) -> None:
        """End the gateway, at once or politely, and start it again on the same data."""
        self._up.clear()
        if politely:
            assert self.gateway.stop() == 0
        else:
            self.gateway.kill()
        self.gateway.start()
        self._up.set()

    def finish(self, head: Callable[[], int]) -> None:
        """Let publishers get the last of their receipts, and followers read up to the head."""
        self._enough.set()
        for thread in self._publishers:
            thread.join(2 * PATIENCE_S)
            assert not thread.is_alive(), f"publisher {thread.name} still waits for a receipt"
        self._end = head()
        self.receipts_wake()
        for thread in self._followers:
            thread.join(2 * PATIENCE_S)
            assert not thread.is_alive(), f"follower {thread.name} has not reached the head"

    def receipts_wake(self) -> None:
        """One more event, so that a follower that waits at the head looks up."""
        event = {"type": "tool.result", "source": "last", "id": "last", "data": 0}
        self.sent["last", "last"] = b"0"
        self._keep([event], self._post([event]))

    def _thread(self, work: Callable[[str], None], name: str) -> threading.Thread:
        def run() -> None:
            try:
                work(name)
            except BaseException as error:  # noqa: BLE001 - the test reports it
                self.failures.append(error)

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _make(self, source: str, numbers: Iterator[int], size: int) -> list[dict[str, Any]]:
        events = []
        for number in (next(numbers) for _ in range(size)):
            payload = f'{{"n": {number},  "half": 1.50, "text": "{"ä" * (number % 40)}"}}'
            self.sent[source, str(number)] = payload.encode()
            events.append(
                {"type": TYPES[number % 4], "source": source, "id": str(number), "payload": payload}
            )
        return events

    @staticmethod
    def _encode(event: dict[str, Any]) -> str:
        """Return the JSON with the payload exactly as it was made."""
        rest = dict(event)
        payload = rest.pop("payload", None)
        text = json.dumps(rest)
        return text if payload is None else f'{text[:-1]}, "data": {payload}}}'

    def _keep(self, events: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
        for event, result in zip(events, results, strict=True):
            assert result["id"] == event["id"] and result["status"] in ("accepted", "duplicate"), result
            self.receipts.append(Receipt(result["status"], result["seq"], event["source"], event["id"]))

    def _post(self, events: list[dict[str, Any]], *, alone: bool = False) -> list[dict[str, Any]]:
        body = ",".join(map(self._encode, events))
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=PATIENCE_S)
        try:
            connection.request(
                "POST",
                "/v1/events",
                (body if alone else f"[{body}]").encode(),
                {"content-type": "application/json"},
            )
            response = connection.getresponse()
            assert response.status == 200, response.status
            got = json.loads(response.read())
            return [got] if alone else list(got["results"])
        finally:
            connection.close()

    def _until_answered(self, events: list[dict[str, Any]], *, alone: bool) -> None:
        while True:
            self._up.wait()
            try:
                results = self._post(events, alone=alone)
            except GONE:
                continue
            self._keep(events, results)
            return

    def _batches(self, source: str) -> None:
        numbers = count()
        while not self._enough.is_set():
            self._until_answered(self._make(source, numbers, 1 + next(numbers) % 30), alone=False)

    def _singles(self, source: str) -> None:
        numbers = count()
        while not self._enough.is_set():
            self._until_answered(self._make(source, numbers, 1), alone=True)

    def _frames(self, source: str) -> None:
        """Publish over the WebSocket, up to eight frames ahead of their receipts."""
        numbers, refs = count(), count()
        open_frames: dict[int, list[dict[str, Any]]] = {}
        while open_frames or not self._enough.is_set():
            self._up.wait()
            try:
                with Socket(self.gateway) as connection:
                    for ref, events in open_frames.items():
                        self._send(connection, ref, events)
                    while open_frames or not self._enough.is_set():
                        if len(open_frames) < 8 and not self._enough.is_set():
                            events = self._make(source, numbers, 5)
                            open_frames[ref := next(refs)] = events
                            self._send(connection, ref, events)
                            continue
                        frame = connection.recv()
                        if frame["op"] == "bye":
                            break
                        assert frame["op"] == "receipts", frame
                        self._keep(open_frames.pop(frame["ref"]), frame["results"])
            except GONE:
                continue

    def _send(self, connection: Socket, ref: int, events: list[dict[str, Any]]) -> None:
        encoded = ",".join(map(self._encode, events))
        connection.ws.send(f'{{"op": "publish", "ref": {ref}, "events": [{encoded}]}}')

    def _follow(self, query: str) -> None:
        last_id = ""
        got = self.followed[query]
        while self._end is None or not got or max(row.seq for row in got[-300:]) <= self._end:
            self._up.wait()
            try:
                with Stream(self.gateway, query, {"last-event-id": last_id} if last_id else None) as stream:
                    for block in stream.blocks():
                        last_id = stream.last_id
                        if block.data and block.id is not None:  # not herdr.bye
                            got.append(read_row(block.data))
                            if self._end is not None and got[-1].seq > self._end:
                                break
            except GONE:
                continue


def read_log(gateway: GatewayProcess) -> list[Row]:
    """Return the whole log as JSON pages show it."""
    rows: list[Row] = []
    cursor = "0"
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
        connection.request("GET", f"/v1/events?limit=1000&after={cursor}")
        page = msgspec.json.decode(connection.getresponse().read(), type=dict[str, msgspec.Raw])
        connection.close()
        more = read_rows(page["events"])
        if not more:
            return sorted(rows, key=lambda row: row.seq)  # near the head P0 comes first
        rows.extend(more)
        cursor = msgspec.json.decode(page["cursor"])


def problems(load: Load, log: list[Row]) -> list[str]:
    """Return what does not hold: receipts, payloads, gaps, and what the followers got."""
    found: list[str] = []
    if [row.seq for row in log] != list(range(1, len(log) + 1)):
        found.append(f"the log has gaps: {len(log)} events up to {log[-1].seq}")
    places: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in log:
        places[row.source, row.id].append(row)
    for key, rows in places.items():
        if len(rows) > 1:
            found.append(f"{key} stands in the log {len(rows)} times")
        if bytes(rows[0].data) != load.sent[key]:
            found.append(f"{key} has other bytes than were sent")
    for receipt in load.receipts:
        rows = places.get((receipt.source, receipt.id), [])
        if not rows:
            found.append(f"{receipt} is lost")
        elif rows[0].seq != receipt.seq:
            found.append(f"{receipt} stands at {rows[0].seq}")
    for query, rows in load.followed.items():
        found.extend(f"follower {query}: {text}" for text in _followed(query, rows, log))
    return found


def _followed(query: str, got: list[Row], log: list[Row]) -> Iterator[str]:
    seqs = [row.seq for row in got]
    if len(set(seqs)) != len(seqs):
        yield f"{len(seqs) - len(set(seqs))} events came more than once"
    by_seq = {row.seq: row for row in log}
    wanted = {row.seq for row in log if "type" not in query or _is_chosen(row)}
    if missed := wanted - set(seqs):
        yield f"missed {len(missed)}, the first is {min(missed)}"
    if foreign := set(seqs) - wanted:
        yield f"got {len(foreign)} that it did not ask for"
    if any(by_seq[row.seq] != row for row in got if row.seq in by_seq):
        yield "got an event that the log holds otherwise"
    for lane in ("P0", "P1", "P2"):
        ordered = [row.seq for row in got if row.priority == lane]
        if ordered != sorted(ordered):
            yield f"got events of {lane} out of order"


def _is_chosen(row: Row) -> bool:
    """The types of the filtering follower; see `Load._make`."""
    return row.source == "last" or int(row.id) % 4 in (0, 1)


def restart_often(load: Load, times: int, seed: int, longest_s: float, *, politely: bool = False) -> None:
    """End and start again; each life lasts a random time after the gateway listens."""
    chance = random.Random(seed)
    for _ in range(times):
        threading.Event().wait(chance.uniform(0, longest_s))
        load.restart(politely=politely)
