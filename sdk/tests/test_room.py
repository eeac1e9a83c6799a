import asyncio

import pytest

from herdr_sdk.room import Room


async def test_events_and_bytes_are_both_bounds() -> None:
    room = Room(2, 100)
    assert room.try_take(60)
    assert not room.try_take(60)
    assert room.try_take(40)
    assert not room.try_take(0)
    room.give(1, 60)
    assert room.try_take(1)


async def test_one_larger_than_everything_gets_in_alone() -> None:
    room = Room(10, 100)
    assert room.try_take(500)
    assert not room.try_take(1)
    room.give(1, 500)
    assert room.try_take(1)
    assert not room.try_take(500)


async def test_who_waits_is_served_in_order_and_not_overtaken() -> None:
    room = Room(1, 100)
    served: list[int] = []

    async def take(n: int, size: int) -> None:
        await room.take(size)
        served.append(n)

    await room.take(10)
    waiting = [asyncio.create_task(take(n, 90 - n)) for n in range(3)]
    await asyncio.sleep(0)
    assert not room.try_take(1)
    for size in (10, 90, 89):
        room.give(1, size)
        await asyncio.sleep(0)
    assert served == [0, 1, 2]
    await asyncio.gather(*waiting)


async def test_a_small_one_does_not_slip_past_a_large_one_that_waits() -> None:
    room = Room(10, 100)
    await room.take(60)
    waiting = asyncio.create_task(room.take(90))
    await asyncio.sleep(0)
    assert not room.try_take(10)
    room.give(1, 60)
    await waiting
    assert room.try_take(10)


async def test_a_cancelled_wait_takes_nothing() -> None:
    room = Room(1, 100)
    await room.take(10)
    in_line = [asyncio.create_task(room.take(10)) for _ in range(2)]
    await asyncio.sleep(0)
    in_line[0].cancel()
    await asyncio.sleep(0)
    room.give(1, 10)
    in_line[1].cancel()  # it has been given the room, but has not run yet
    with pytest.raises(asyncio.CancelledError):
        await in_line[1]
    assert room.try_take(100)
