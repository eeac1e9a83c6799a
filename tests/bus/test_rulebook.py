from typing import Any

import msgspec
import pytest

from herdr.bus import rulebook as module
from herdr.bus.rulebook import Rulebook
from herdr.config import RouteRule
from herdr.errors import InvalidInput, NotFound


def rule(event: str = "*", target: str = "t", **fields: Any) -> RouteRule:
    return msgspec.convert({"event": event, "target": target, **fields}, RouteRule)


def listed(book: Rulebook) -> list[tuple[str, str, str]]:
    return [(entry.rule.name, entry.rule.event, entry.origin) for entry in book.listed()]


class Store:
    """Keeps what a rulebook asks to be kept, as the log would."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def put(self, book: Rulebook, name: str, new: RouteRule | None) -> None:
        stored = book.stored_form(name, None if new is None else book.check_put(name, new))
        if stored is None:
            self.values.pop(name, None)
        else:
            self.values[name] = stored
        book.apply(name, stored)


FILE = [rule("a.*", name="one"), rule("b.*"), rule("c.*")]


def test_the_files_rules_have_names() -> None:
    assert listed(Rulebook({}, FILE)) == [
        ("one", "a.*", "file"),
        ("file-2", "b.*", "file"),
        ("file-3", "c.*", "file"),
    ]


def test_a_rule_set_over_the_api_is_in_force_and_survives_a_restart() -> None:
    book, store = Rulebook({}, FILE), Store()
    store.put(book, "mine", rule("x"))
    store.put(book, "one", rule("y"))
    for one in (book, Rulebook(store.values, FILE)):
        assert sorted(listed(one)) == [
            ("file-2", "b.*", "file"),
            ("file-3", "c.*", "file"),
            ("mine", "x", "api"),
            ("one", "y", "api"),
        ]
        assert {r.event for r in one.table.rules} == {"b.*", "c.*", "x", "y"}


def test_a_deleted_file_rule_stays_deleted_until_the_file_says_something_else() -> None:
    book, store = Rulebook({}, FILE), Store()
    store.put(book, "one", None)
    assert "one" not in {name for name, _, _ in listed(book)}
    again = Rulebook(store.values, FILE)
    assert "one" not in {name for name, _, _ in listed(again)}
    again.load_file([rule("a.*", "somebody else", name="one")])
    assert listed(again) == [("one", "a.*", "file")]
    again.load_file([])
    assert listed(again) == []


def test_a_rule_of_the_api_over_one_of_the_file_is_deleted_with_it() -> None:
    book, store = Rulebook({}, FILE), Store()
    store.put(book, "one", rule("y"))
    store.put(book, "one", None)
    assert "one" not in {name for name, _, _ in listed(Rulebook(store.values, FILE))}


def test_a_deleted_rule_of_the_api_leaves_nothing_behind() -> None:
    book, store = Rulebook({}, FILE), Store()
    store.put(book, "mine", rule("x"))
    store.put(book, "mine", None)
    assert store.values == {}
    assert listed(book) == listed(Rulebook({}, FILE))


def test_a_broken_file_changes_nothing() -> None:
    book = Rulebook({}, FILE)
    before = listed(book), book.table
    with pytest.raises(InvalidInput):
        book.load_file([rule("z"), RouteRule(event="a\n", target="t")])
    assert (listed(book), book.table) == before


def test_a_rule_is_found_by_its_name() -> None:
    book = Rulebook({}, FILE)
    assert book.get("file-2").rule.event == "b.*"
    with pytest.raises(NotFound, match="no route is called 'nope'") as error:
        book.get("nope")
    assert error.value.code == "unknown_route"


def test_a_rule_is_put_under_the_name_of_its_address() -> None:
    book = Rulebook({})
    assert book.check_put("a", rule()).name == "a"
    assert book.check_put("a", rule(name="a")).name == "a"
    with pytest.raises(InvalidInput, match="names the rule 'b', the address 'a'"):
        book.check_put("a", rule(name="b"))
    with pytest.raises(InvalidInput):
        book.check_put("a", rule(match={"data.": 1}))


def test_there_is_a_limit_to_rules_but_not_to_changing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RULES_MAX", 2)
    book, store = Rulebook({}), Store()
    store.put(book, "a", rule())
    store.put(book, "b", rule())
    with pytest.raises(InvalidInput) as error:
        book.check_put("c", rule())
    assert error.value.code == "too_many_rules"
    store.put(book, "b", rule("other"))
    assert book.get("b").rule.event == "other"


def test_it_knows_the_targets_and_the_longest_timeout_of_the_rules_in_force() -> None:
    book, store = Rulebook({}, [rule(target="a", timeout_ms=5), rule(target="b")]), Store()
    assert book.timeout_max_ms() == 5
    assert book.knows_target("b")
    assert not book.knows_target("c")
    store.put(book, "x", rule(target="c", timeout_ms=70))
    assert book.timeout_max_ms() == 70
    assert book.knows_target("c")
    store.put(book, "x", None)
    assert not book.knows_target("c")
    assert Rulebook({}).timeout_max_ms() == 0
