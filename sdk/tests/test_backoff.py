from herdr_sdk.backoff import ASKED_MAX_S, Backoff


def test_the_limit_doubles_from_a_tenth_of_a_second_to_ten() -> None:
    limits = []
    backoff = Backoff(uniform=lambda low, high: limits.append((low, high)) or high)
    waits = [backoff.next_s() for _ in range(9)]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert all(low == 0 for low, _ in limits)
    backoff.reset()
    assert backoff.next_s() == 0.1


def test_what_the_gateway_asks_for_is_kept_within_reason() -> None:
    assert Backoff(uniform=lambda low, high: low).after_s(2.0) == 2.0
    assert Backoff(uniform=lambda low, high: high).after_s(2.0) == 3.0
    assert Backoff(uniform=lambda low, high: low).after_s(1e9) == ASKED_MAX_S
    assert Backoff(uniform=lambda low, high: high).after_s(-1) == 0


def test_waits_differ() -> None:
    backoff = Backoff()
    waits = {backoff.next_s() for _ in range(20)}
    assert len(waits) == 20
    assert all(0 <= wait <= 10 for wait in waits)
