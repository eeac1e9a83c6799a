import pytest

from herdr.pool.slots import Conversation, Slot
from herdr.pool.spill import TOKENS_MIN, Spill

A, B = Conversation("a", "p"), Conversation("b", "p")
COLD = Slot(9)


def chain(text: str) -> tuple[bytes, ...]:
    return tuple(letter.encode() for letter in text)


def content(of: Conversation | None, text: str = "xy", tokens: int = TOKENS_MIN) -> Slot:
    slot = Slot(0)
    slot.content_of, slot.chain, slot.tokens = of, chain(text), tokens
    return slot


def agent(number: int) -> Conversation:
    return Conversation(f"agent {number}", "p")


def keep(spill: Spill, of: Conversation, text: str = "xy") -> int:
    """Save a content and confirm it."""
    number = spill.save("saver", content(of, text))
    assert number is not None
    spill.saved(number, ok=True)
    return number


def restored(spill: Spill, of: Conversation, text: str = "xyz", slot: Slot = COLD) -> int | None:
    file = spill.restore("reader", of, slot, chain(text))
    return None if file is None else file.number


@pytest.mark.parametrize(
    ("slot", "is_saved"),
    [
        (content(A, tokens=TOKENS_MIN), True),
        (content(A, tokens=TOKENS_MIN - 1), False),
        (content(None), False),
    ],
)
def test_what_is_worth_saving(slot: Slot, is_saved: bool) -> None:
    assert (Spill(2, enabled=True).save("c", slot) is not None) is is_saved


def test_nothing_is_saved_where_the_backend_cannot() -> None:
    spill = Spill(2, enabled=False)
    assert not spill.is_on
    assert spill.save("c", content(A)) is None


def test_a_conversation_gets_back_what_was_saved() -> None:
    spill = Spill(2, enabled=True)
    number = keep(spill, A)
    file = spill.restore("reader", A, COLD, chain("xyz"))
    assert file is not None
    assert (file.number, file.chain, file.tokens) == (number, chain("xy"), TOKENS_MIN)
    assert restored(spill, B) is None
    assert restored(spill, A._replace(side=True)) is None


@pytest.mark.parametrize(("held", "is_better"), [("", True), ("x", True), ("xy", False), ("xyz", False)])
def test_a_file_is_restored_only_if_it_has_more_of_the_prompt_than_the_slot(
    held: str, is_better: bool
) -> None:
    spill = Spill(2, enabled=True)
    keep(spill, A)
    assert (restored(spill, A, "xyz", content(B, held)) is not None) is is_better


def test_a_file_with_nothing_of_the_prompt_is_not_restored() -> None:
    spill = Spill(2, enabled=True)
    keep(spill, A)
    assert restored(spill, A, "q") is None


def test_a_file_counts_only_once_it_was_confirmed() -> None:
    spill = Spill(2, enabled=True)
    number = spill.save("c", content(A))
    assert number is not None
    assert restored(spill, A) is None
    spill.saved(number, ok=True)
    assert restored(spill, A) == number


def test_a_file_that_was_not_written_is_gone() -> None:
    spill = Spill(2, enabled=True)
    number = spill.save("c", content(A))
    assert number is not None
    spill.saved(number, ok=False)
    assert len(spill) == 0
    spill.saved(number, ok=True)  # too late
    assert restored(spill, A) is None


def test_a_call_that_ends_without_confirming_its_file_has_not_written_it() -> None:
    spill = Spill(2, enabled=True)
    spill.save("c", content(A))
    spill.end("another")
    assert len(spill) == 1
    spill.end("c")
    assert len(spill) == 0


def test_a_file_that_is_no_longer_there_is_forgotten() -> None:
    spill = Spill(2, enabled=True)
    number = keep(spill, A)
    assert restored(spill, A) == number
    spill.saved(number, ok=False)
    assert restored(spill, A) is None


def test_there_are_at_most_two_files_a_slot_and_the_least_recently_used_is_overwritten() -> None:
    spill = Spill(2, enabled=True)
    assert [keep(spill, agent(n)) for n in range(4)] == [0, 1, 2, 3]
    assert restored(spill, agent(0)) == 0  # used
    spill.end("reader")
    assert keep(spill, agent(4)) == 1
    assert len(spill) == 4
    assert restored(spill, agent(1)) is None
    assert restored(spill, agent(0)) == 0


def test_a_conversation_has_one_file() -> None:
    spill = Spill(2, enabled=True)
    number = keep(spill, A, "xy")
    assert keep(spill, A, "xyz") == number
    assert len(spill) == 1
    assert restored(spill, A, "xyzq", content(B, "xy")) == number


def test_what_is_in_the_file_already_is_not_saved_again() -> None:
    spill = Spill(1, enabled=True)
    number = keep(spill, A, "xy")
    keep(spill, B)
    assert spill.save("c", content(A, "xy")) is None
    assert keep(spill, agent(3)) != number, "it counts as used"


def test_a_file_stays_while_a_call_restores_from_it() -> None:
    spill = Spill(1, enabled=True)
    first, second = keep(spill, A), keep(spill, B)
    assert restored(spill, A) == first
    assert restored(spill, B) == second
    assert spill.save("c", content(agent(3))) is None, "no room"
    assert spill.save("c", content(A, "xyq")) is None, "nor over its own"
    spill.end("reader")
    assert spill.save("c", content(agent(3))) == first


def test_a_file_that_is_being_written_is_not_overwritten() -> None:
    spill = Spill(1, enabled=True)
    numbers = {spill.save("one", content(A)), spill.save("two", content(B))}
    assert numbers == {0, 1}
    assert spill.save("three", content(agent(3))) is None
    assert spill.save("three", content(A, "xyq")) is None


def test_a_client_without_identity_gets_the_longest_file_that_its_prompt_continues() -> None:
    spill = Spill(3, enabled=True)
    one, two, new = (Conversation(None, "p", number=n) for n in (1, 2, 3))
    keep(spill, A, "xyz")
    keep(spill, one, "xq")
    assert restored(spill, new, "xyz") is None, "it parts from what the file holds"
    keep(spill, one, "x")
    longest = keep(spill, two, "xy")
    assert restored(spill, new, "q") is None
    assert restored(spill, new, "xyz") == longest
    spill.end("reader")
    assert spill.save("c", content(new, "xyzq")) == longest, "the file is the new number's now"
    assert len(spill) == 3


def test_a_client_without_identity_gets_no_file_that_was_not_confirmed() -> None:
    spill = Spill(2, enabled=True)
    spill.save("c", content(Conversation(None, "p", number=1)))
    assert restored(spill, Conversation(None, "p", number=2)) is None


def test_a_conversation_that_goes_on_in_its_slot_takes_no_other_ones_file() -> None:
    spill = Spill(2, enabled=True)
    one, two = (Conversation(None, "p", number=n) for n in (1, 2))
    keep(spill, one, "x")
    keep(spill, two, "xy")
    assert restored(spill, one, "xyz", content(one, "x")) is None


def test_forget_resize_and_turn_off() -> None:
    spill = Spill(2, enabled=True)
    keep(spill, A)
    spill.forget()
    assert restored(spill, A) is None
    keep(spill, A)
    spill.resize(1)
    assert len(spill) == 0
    assert [keep(spill, agent(n)) for n in range(3)] == [0, 1, 0]
    spill.turn_off()
    assert not spill.is_on and len(spill) == 0
    assert spill.save("c", content(A)) is None
