"""What others changed since one last looked, and whose definitions are one's own."""

from herdr.hooks.changes import CHANGES_MAX, UNREPORTED, WORKSPACES_MAX, Change, Changes

ME = "claude-code/1"


def changes(*kept: Change) -> Changes:
    made = Changes()
    for change in kept:
        made.add("shop", change)
    return made


def defined(seq: int, *paths: str) -> Change:
    return Change(seq, "", None, paths=paths)


def test_one_hears_of_others_since_then_oldest_first() -> None:
    made = changes(Change(1, "a", "x"), Change(2, "b", "x"), Change(3, "c", ME), Change(4, "d", "y"))
    assert [c.path for c in made.since("shop", 1, ME, ())] == ["b", "d"]
    assert made.since("shop", 4, ME, ()) == [] and made.since("lib", 0, ME, ()) == []


def test_definitions_in_files_of_ones_own_are_ones_own() -> None:
    made = changes(defined(1, "a"), defined(2, "a", "b"), defined(3, "b"))
    assert [c.seq for c in made.since("shop", 0, ME, ["a"])] == [2, 3]
    assert [c.seq for c in made.since("shop", 0, ME, ["a", "b"])] == []


def test_whoever_changed_a_file_last_has_its_definitions() -> None:
    def heard(*by: str) -> list[int]:
        made = changes(*(Change(seq, "a", who) for seq, who in enumerate(by, 1)), defined(9, "a"))
        return [c.seq for c in made.since("shop", 8, ME, ["a"])]

    assert heard("x") == [9] == heard(ME, "x")
    assert heard(ME) == [] == heard("x", ME) == heard("x", UNREPORTED) == heard()


def test_what_is_kept_is_bounded() -> None:
    made = changes(*(Change(seq, str(seq), "x") for seq in range(1, CHANGES_MAX + 3)))
    assert len(made.since("shop", 0, ME, ())) == CHANGES_MAX
    for number in range(WORKSPACES_MAX):
        made.add(str(number), Change(999, "a", "x"))
    assert made.since("shop", 0, ME, ()) == [] and made.since("0", 0, ME, ()) != []
