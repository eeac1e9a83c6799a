import random
from collections.abc import Iterator

import pytest

from herdr.locks import index as index_module
from herdr.locks.index import Index
from herdr.locks.lock import FOLDER, Name
from herdr.locks.overlap import overlaps


def name(path: str, space: str = "w") -> Name:
    segments = path.split("/")
    cut = next((place for place, segment in enumerate(segments) if set(segment) & set("*?")), len(segments))
    return Name(space, tuple(segments[:cut]), tuple(segments[cut:]), path)


def found(index: Index, *paths: str) -> list[tuple[str, str, str]]:
    return [(key, held.shown, asked.shown) for key, held, asked in index.find(map(name, paths))]


def naive(held: dict[str, tuple[Name, ...]], names: tuple[Name, ...]) -> Iterator[tuple[str, Name, Name]]:
    for asked in names:
        for key, others in held.items():
            yield from ((key, other, asked) for other in others if overlaps(other, asked))


def random_name(rng: random.Random) -> Name:
    segments = rng.choices(
        ["a", "b", "c", "*", "**", "a*", "*b", "?", "a?", "ab", "*a*", "*a?", "?*"],
        weights=[9, 9, 9, 3, 4, 1, 1, 1, 1, 2, 1, 1, 1],
        k=rng.randint(1, 5),
    )
    made = name("/".join(segments), rng.choice("vw"))
    if rng.random() < 0.1:  # a file that really has such a name
        return Name(made.space, (*made.literal, *made.rest))
    return Name(made.space, (), FOLDER) if rng.random() < 0.02 else made


@pytest.mark.parametrize(("seed", "walk_max"), [(0, 400), (1, 400), (2, 0), (3, 5), (4, 20)])
def test_it_finds_what_a_scan_of_all_finds(seed: int, walk_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the other end is looked at after a few steps, so that both ways meet."""
    monkeypatch.setattr(index_module, "WALK_MAX", walk_max)
    rng = random.Random(seed)
    index, held = Index(), dict[str, tuple[Name, ...]]()
    answers = 0
    for step in range(1_000):
        if len(held) > 100 or (held and rng.random() < 0.3):
            key = rng.choice(list(held))
            index.remove(key)
            del held[key]
        else:
            held[str(step)] = tuple(random_name(rng) for _ in range(rng.choice((1, 1, 2, 5))))
            index.add(str(step), held[str(step)])
        names = tuple(random_name(rng) for _ in range(rng.choice((1, 1, 3))))
        expected = list(naive(held, names))
        assert sorted(index.find(names), key=repr) == sorted(expected, key=repr)
        answers += len(expected)
    assert answers > 5_000
    assert len(index) == len(held)


def test_what_ends_alike_is_found_among_much_that_does_not() -> None:
    index = Index()
    held = (
        [f"src/m{i}/f{i}.py" for i in range(50)]
        + [f"**/test_{i}.py" for i in range(50)]
        + ["docs/**", "src/*/g?"]
    )
    for path in held:
        index.add(path, (name(path),))
    assert sorted(found(index, "**/f17.py")) == [
        ("docs/**",) * 2 + ("**/f17.py",),
        ("src/m17/f17.py",) * 2 + ("**/f17.py",),
    ]
    assert sorted(key for key, *_ in found(index, "*/*/test_3.py")) == ["**/test_3.py", "docs/**"]
    assert [key for key, *_ in found(index, "src/**/f18.py")] == ["src/m18/f18.py"]
    assert [key for key, *_ in found(index, "src/*/*1")] == ["src/*/g?"]


def test_answers_come_by_asked_name() -> None:
    index = Index()
    index.add("2", (name("src/**"), name("src/a.py")))
    index.add("1", (name("*/a.py"),))
    answers = found(index, "src/a.py", "lib/b.py", "src")
    assert sorted(answers[:3]) == [
        ("1", "*/a.py", "src/a.py"),
        ("2", "src/**", "src/a.py"),
        ("2", "src/a.py", "src/a.py"),
    ]
    assert answers[3:] == [("2", "src/**", "src")]


def test_nothing_is_looked_up_before_it_is_asked_for() -> None:
    index = Index()
    index.add("1", (name("a"),))

    def names() -> Iterator[Name]:
        yield name("a")
        raise AssertionError("the second name was asked for")

    assert next(index.find(names()))[0] == "1"


def test_removing_leaves_nothing_behind() -> None:
    rng = random.Random(9)
    index = Index()
    for key in map(str, range(300)):
        index.add(key, tuple(random_name(rng) for _ in range(3)))
    for key in rng.sample([str(i) for i in range(300)], 300):
        index.remove(key)
    assert vars(index) == {**vars(Index()), "_number": 900}


def test_what_is_left_after_a_removal_takes_no_more_room_than_if_alone() -> None:
    index, alone = Index(), Index()
    index.add("1", (name("a/b/*.py"), name("a/b/**")))
    index.add("2", (name("a/b/*.py"), name("a/c/d"), name("x", "v")))
    alone.add("1", (name("a/b/*.py"), name("a/b/**")))
    index.remove("2")
    assert shape(index) == shape(alone)


def shape(index: Index) -> object:
    """The tries as plain data."""

    def of(node: object) -> object:
        slots = {slot: getattr(node, slot) for slot in type(node).__slots__}  # type: ignore[attr-defined]
        for below in ("exact", "wild"):
            slots[below] = {segment: of(child) for segment, child in slots[below].items()}
        return slots

    return {
        space: {part: of(trie) for part, trie in vars(tries).items()}
        for space, tries in index._spaces.items()
    }


def test_a_key_is_added_once_and_removed_once() -> None:
    index = Index()
    index.add("1", (name("a"),))
    with pytest.raises(ValueError, match="1 is in the index already"):
        index.add("1", (name("b"),))
    index.remove("1")
    with pytest.raises(KeyError):
        index.remove("1")
    assert found(index, "**") == []


def test_a_name_without_segments_is_never_found() -> None:
    index = Index()
    index.add("1", (Name("w", ()), name("a")))
    assert [held for _, held, _ in index.find((Name("w", (), FOLDER), Name("w", ())))] == [name("a")]
    index.remove("1")
    assert len(index) == 0


def test_a_very_deep_path_is_no_problem() -> None:
    index = Index()
    deep = "/".join(["d"] * 2000)
    index.add("1", (name(deep),))
    assert [key for key, *_ in found(index, f"{deep}/**", "**/d", "d/**/d/d", "**/e")] == ["1", "1", "1"]
    index.remove("1")
    assert found(index, "**") == []
