"""What became of a file's definitions."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from herdr.context.graph.changes import Changed, Signature, difference
from herdr.context.graph.languages import java, python
from herdr.context.graph.parse import Reader

BEFORE = b"""
RATE = 2

class Cart:
    def total(self, tax):
        return tax

    def clear(self):
        pass

def save(cart):
    return cart
"""


read = Reader(python.LANGUAGE).read


def test_a_changed_signature_is_told_with_both_texts() -> None:
    after = BEFORE.replace(b"total(self, tax)", b"total(self, tax, currency)")
    assert difference(read(BEFORE), read(after)) == Changed(
        0,
        0,
        1,
        (Signature("Cart.total", "def total(self, tax)", "def total(self, tax, currency)"),),
    )


def test_additions_and_removals_are_counted() -> None:
    after = BEFORE.replace(b"def clear", b"def empty") + b"\ndef load():\n    pass\n"
    assert difference(read(BEFORE), read(after)) == Changed(2, 1, 0, ())


def test_another_body_or_place_is_no_change() -> None:
    moved = b"\n\ndef save(cart):\n    return None\n" + BEFORE.replace(
        b"def save(cart):\n    return cart\n", b""
    )
    assert difference(read(BEFORE), read(moved)) == Changed(0, 0, 0, ())


def test_a_new_file_is_all_added_and_a_lost_one_all_removed() -> None:
    assert difference(None, read(BEFORE)) == Changed(5, 0, 0, ())
    assert difference(read(BEFORE), None) == Changed(0, 5, 0, ())
    assert difference(None, None) == Changed(0, 0, 0, ())


def test_another_value_is_a_change_but_no_signature() -> None:
    assert difference(read(BEFORE), read(BEFORE.replace(b"RATE = 2", b"RATE = 3"))) == Changed(0, 0, 1, ())


def test_overloads_are_paired_by_their_text_first_and_then_in_order() -> None:
    reader = Reader(java.LANGUAGE)
    old = reader.read(b"class Cart { int add(int a) { return 1; } int add(long a) { return 2; } }")
    new = reader.read(
        b"class Cart { int add(String a) { return 0; } int add(int a) { return 1; } int add(double a) { return 2; } }"
    )
    found = difference(old, new)
    assert (found.added, found.removed, found.changed) == (1, 0, 1)
    assert found.signatures == (Signature("Cart.add", "int add(long a)", "int add(String a)"),)


functions = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "x, y", ""])), max_size=6)


def source(names: list[tuple[str, str]]) -> bytes:
    return "".join(f"def {name}({args}):\n    pass\n" for name, args in names).encode()


@settings(deadline=None)
@given(functions, functions)
def test_the_counts_add_up_and_swap_with_the_sides(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    there, back = (
        difference(read(source(old)), read(source(new))),
        difference(read(source(new)), read(source(old))),
    )
    assert len(old) + there.added - there.removed == len(new)
    assert (there.added, there.removed, there.changed) == (back.removed, back.added, back.changed)


@settings(deadline=None)
@given(functions, st.randoms())
def test_the_order_does_not_matter(names: list[tuple[str, str]], random: Random) -> None:
    shuffled = list(names)
    random.shuffle(shuffled)
    assert difference(read(source(names)), read(source(shuffled))) == Changed(0, 0, 0, ())
