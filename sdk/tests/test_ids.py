from herdr_sdk.ids import IdFactory

ALPHABET = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def test_ids_are_ulids_that_rise_strictly() -> None:
    ids = [new_id() for new_id in [IdFactory()] for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert all(len(one) == 26 and set(one) <= ALPHABET for one in ids)


def test_time_stands_in_front() -> None:
    new_id = IdFactory(wall_ms=lambda: 1469922850259, random_bits=lambda bits: 0)
    assert new_id() == "01ARZ3NDEK" + "0" * 16
    assert _decode("01ARZ3NDEK") == 1469922850259


def test_clock_stepping_back_does_not_matter() -> None:
    times = iter([5000, 4000, 4999, 5001])
    new_id = IdFactory(wall_ms=lambda: next(times))
    ids = [new_id() for _ in range(4)]
    assert ids == sorted(set(ids))


def test_a_full_millisecond_goes_on_in_the_next() -> None:
    new_id = IdFactory(wall_ms=lambda: 7, random_bits=lambda bits: (1 << bits) - 1)
    ids = [new_id() for _ in range((1 << 19) + 2)]
    assert len(set(ids)) == len(ids)
    assert _decode(ids[-1][:10]) == 8
    assert ids[-1] > ids[-3]


def _decode(text: str) -> int:
    value = 0
    for character in text:
        value = value * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(character)
    return value
