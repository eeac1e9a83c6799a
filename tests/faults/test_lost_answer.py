"""A commit that reports an error and has happened all the same, as when fsync fails after the write.

The publisher is told that nothing is certain (503) and sends the same id again; whatever the disk did, the event is
in the log once and followers get it once.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway import GatewayProcess
from wire import Stream, all_events, health, post, publish, wait_until

LAUNCHER = """
import sqlite3, sys
from herdr.storage.sqlite import log
from herdr.cli.main import main

store, failed = log.store, set()

def store_and_fail(db, batch):
    store(db, batch)
    ids = {event.id for event in batch.events if event.id.startswith("fail")}
    if ids - failed:
        failed.update(ids)
        raise sqlite3.OperationalError("disk I/O error")

log.store = store_and_fail
sys.exit(main())
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    launcher = tmp_path / "launcher.py"
    launcher.write_text(LAUNCHER)
    process = GatewayProcess(tmp_path / "data", program=(str(launcher),)).start()
    try:
        yield process
    finally:
        if process.running():
            process.kill()


def test_an_event_that_was_committed_after_all_is_there_once(gateway: GatewayProcess) -> None:
    event = {"type": "change.applied", "source": "ann", "subject": "a.py", "id": "fail-1"}
    with Stream(gateway) as stream:
        stream.start()
        publish(gateway, {"type": "tool.result", "id": "before"})
        assert post(gateway, event).status == 503
        wait_until(lambda: health(gateway)["status"] == "ok", "the log to be written again")
        again = post(gateway, event)
        assert (again.status, again.json()["status"], again.json()["seq"]) == (200, "duplicate", 2)
        stale = post(gateway, {**event, "source": "bob", "id": "b", "based_on": 1})
        assert stale.status == 409, "the version that it made counts"
        publish(gateway, {"type": "tool.result", "id": "after"})
        seen = [event["id"] for event in stream.take(4)]
    assert (seen[0], seen[1], seen[3]) == ("before", "fail-1", "after")
    assert [event["seq"] for event in all_events(gateway)] == [1, 2, 3, 4]
    assert not [line for line in gateway.log if "Traceback" in line]


def test_a_deferred_event_that_was_committed_after_all_is_not_committed_again(
    gateway: GatewayProcess,
) -> None:
    with Stream(gateway) as stream:
        stream.start()
        answer = post(gateway, {"type": "file.changed", "subject": "a.py", "id": "fail-2"})
        assert answer.json()["status"] == "deferred"
        assert stream.next().json()["id"] == "fail-2"
        publish(gateway, {"type": "tool.result", "id": "after"})
        assert stream.next().json()["id"] == "after"
    assert [event["id"] for event in all_events(gateway)] == ["fail-2", "after"]
    assert gateway.stop() == 0
