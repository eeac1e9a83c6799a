"""The facade blocks its caller, so it runs on a thread beside the loop of the gateway."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from herdr_sdk import Conflict, ConnectionFailed, Deadlock, Draft, InvalidEvent, LockLost
from herdr_sdk.blocking import CHUNK_EVENTS, Hub


async def test_publish_and_follow(faulty) -> None:
    def script() -> list:
        with Hub(name="script", attrs={"a": "b"}) as hub, hub.follow(type="tool.*") as events:
            hub.set_attrs(c="d")
            receipt = hub.publish("tool.result", {"n": 1}, subject="a.py")
            event = next(events)
            return [receipt.seq, receipt.stored, event.data, event.source, event.subject]

    assert await asyncio.to_thread(script) == [1, True, {"n": 1}, "script", "a.py"]
    assert [frame["attrs"] for frame in faulty.of("attrs")] == [{"a": "b"}, {"a": "b", "c": "d"}]


async def test_many_are_drawn_on_the_callers_thread(faulty) -> None:
    threads = set()
    count = 3 * CHUNK_EVENTS + 5

    def events() -> Iterator[Draft]:
        for n in range(count):
            threads.add(threading.current_thread())
            yield Draft("BAD" if n == 1500 else "tool.result", n)

    def script() -> object:
        threads.add(threading.current_thread())
        with Hub(name="script") as hub:
            return hub.publish_many(events())

    faulty.refusal = lambda frame: next(
        (
            {
                "code": "invalid_request",
                "detail": "no.",
                "errors": [{"index": i, "field": "type", "message": "bad"}],
            }
            for i, event in enumerate(frame["events"])
            if event["type"] == "BAD"
        ),
        None,
    )
    with pytest.raises(InvalidEvent) as caught:
        await asyncio.to_thread(script)
    assert caught.value.errors[0].index == 1500
    assert len(caught.value.results) == count
    assert len(threads) == 1


async def test_an_error_while_drawing_is_the_callers(faulty) -> None:
    def events() -> Iterator[Draft]:
        yield Draft("tool.result", 1)
        raise KeyError("mine")

    def script() -> None:
        with Hub(name="script") as hub:
            hub.publish_many(events())

    with pytest.raises(KeyError, match="mine"):
        await asyncio.to_thread(script)


async def test_iterating_and_acknowledging_within_a_frame(faulty) -> None:
    await faulty.append(*({"type": "tool.result", "id": f"e{n}", "data": n, "source": "t"} for n in range(6)))

    def script() -> list:
        seen = []
        with Hub() as hub, hub.follow(as_="script", after=0) as events:
            for event in events:
                events.ack()
                seen.append((event.data, events.cursor, faulty.targets["script"]))
                if len(seen) == 6:
                    return seen
        return []

    seen = await asyncio.to_thread(script)
    acknowledged = [0, 0, 3, 3, 3, 6]
    assert seen == [(n, faulty.cursor(acked), acked) for n, acked in enumerate(acknowledged)]


async def test_automatic_acknowledges_by_frames(faulty) -> None:
    await faulty.append(*({"type": "tool.result", "id": f"e{n}", "data": n, "source": "t"} for n in range(4)))

    def script() -> None:
        with Hub() as hub, hub.follow(as_="script", after=0, ack="auto") as events:
            for _ in range(4):
                next(events)

    await asyncio.to_thread(script)
    assert faulty.targets == {"script": 3}


async def test_failing_to_connect_leaves_no_thread(faulty) -> None:
    await faulty.stop()
    before = threading.active_count()

    def script() -> None:
        Hub(connect_timeout_s=0.05)

    with pytest.raises(ConnectionFailed):
        await asyncio.to_thread(script)
    assert not [t for t in threading.enumerate() if t.name == "herdr-sdk"]
    assert threading.active_count() <= before + 1


async def test_closing_twice_and_after_the_hub(faulty) -> None:
    def script() -> list:
        hub = Hub(name="script")
        events = hub.follow()
        events.close()
        ended = list(events)
        hub.close()
        hub.close()
        events.close()
        return ended

    assert await asyncio.to_thread(script) == []
    assert not [t for t in threading.enumerate() if t.name == "herdr-sdk"]


async def test_locks_and_waits(faulty) -> None:
    def script() -> list:
        with Hub(name="cursor") as hub, hub.lock("a.py", ttl=30) as lock, hub.waiting_for("b"):
            seen = [lock.lock, lock.token, lock.paths, lock.expires, lock.lost, lock.error]
            lock.renew(40)
            with pytest.raises(Conflict):
                hub.lock("a.py", owner="claude").acquire()
            by_hand = hub.lock("b.py").acquire()
            by_hand.release()
            return [*seen, list(faulty.desk.held), list(faulty.desk.waits)]

    expires = "2026-03-02T09:16:30.000Z"
    seen = await asyncio.to_thread(script)
    assert seen == ["L17", 17, ("a.py",), expires, False, None, ["L17"], ["W-cursor-b"]]
    assert not faulty.desk.held


async def test_a_lost_lock_is_told_on_leaving(faulty) -> None:
    def script() -> None:
        with Hub(name="cursor") as hub:
            with pytest.raises(LockLost), hub.lock("a.py") as lock:
                faulty.hang_up_soon()
                lock.wait_lost()
                assert lock.lost
            with pytest.raises(KeyError) as caught, hub.lock("a.py") as lock:
                faulty.hang_up_soon()
                lock.wait_lost()
                raise KeyError
            assert "was lost" in caught.value.__notes__[0]
            kept = hub.lock("b.py").acquire()
        with pytest.raises(LockLost, match="hub is closed"):
            kept.release()

    await asyncio.to_thread(script)


async def test_a_circle_found_later_is_told_on_leaving(faulty) -> None:
    refusal = {"code": "deadlock", "detail": "x", "cycle": ["a", "b", "a"]}

    def script() -> None:
        with Hub(name="a") as hub, hub.waiting_for("b") as waiting:
            faulty.desk.refuse["wait"] = [refusal]
            faulty.hang_up_soon()
            while waiting._waiting._declaration.error is None:
                pass

    with pytest.raises(Deadlock):
        await asyncio.to_thread(script)
