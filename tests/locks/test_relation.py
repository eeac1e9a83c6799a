"""Pairs of keys, looked up from both sides, beside a plain set of pairs."""

from hypothesis import given
from hypothesis import strategies as st

from herdr.journal import Journal
from herdr.locks.relation import Relation

KEYS = "abcxy"
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "remove"]), st.sampled_from(KEYS), st.sets(st.sampled_from(KEYS))),
        st.tuples(st.sampled_from(["keep", "undo"]), st.just(""), st.just(set[str]())),
    ),
    max_size=30,
)


def look(relation: Relation, pairs: set[tuple[str, str]]) -> None:
    """Every way to look at a relation shows the pairs."""
    for key in KEYS:
        assert relation.rights(key) == {right for left, right in pairs if left == key}
        assert relation.lefts(key) == {left for left, right in pairs if right == key}
    assert relation.all_lefts() == {left for left, _ in pairs}
    assert len(relation) == len(pairs)


@given(STEPS)
def test_it_does_as_a_set_of_pairs_would(steps: list[tuple[str, str, set[str]]]) -> None:
    journal = Journal()
    relation = Relation(journal)
    pairs, kept = set[tuple[str, str]](), set[tuple[str, str]]()
    for step, left, rights in steps:
        given_pairs = {(left, right) for right in rights}
        if step == "add":
            relation.add(left, rights)
            pairs = pairs | given_pairs
        elif step == "remove":
            relation.remove(left, rights)
            pairs = pairs - given_pairs
        elif step == "keep":
            journal.keep()
            kept = pairs
        else:
            journal.undo()
            pairs = kept
        look(relation, pairs)


def test_what_is_gone_leaves_no_empty_sets_behind() -> None:
    """A key is the id of a lock: each is used once, so what is left of it would stay for ever."""
    relation = Relation(Journal())
    relation.add("a", "xy")
    relation.remove("a", "yxz")
    assert (relation._rights, relation._lefts) == ({}, {})


def test_what_is_taken_back_is_only_what_was_not_there_before() -> None:
    journal = Journal()
    relation = Relation(journal)
    relation.add("a", "x")
    journal.keep()
    relation.add("a", "xy")
    relation.remove("b", "x")
    journal.undo()
    look(relation, {("a", "x")})
