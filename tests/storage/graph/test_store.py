"""The stored graph answers as the one in memory does, whatever came and went."""

import random
from hashlib import sha256
from pathlib import Path

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.files import Numbers, Parsed, with_outline
from herdr.context.graph.languages.registry import language_of
from herdr.context.graph.parse import Reader
from herdr.storage.sqlite.graph.schema import adopt, open_graph
from herdr.storage.sqlite.graph.store import GraphStore

FORM = "1 test"
NAMES = ("total", "save", "Cart", "price", "load")


def parsed(path: str, source: bytes) -> Parsed:
    language = language_of(path)
    digest = sha256(source).digest()
    if language is None:
        return Parsed(path, Numbers(len(source), 1, 1), digest)
    return with_outline(path, Numbers(len(source), 1, 1), digest, Reader(language).read(source))


def source_of(rng: random.Random) -> bytes:
    lines = [f"from shop.{rng.choice(NAMES)} import {rng.choice(NAMES)}"]
    for name in rng.sample(NAMES, rng.randrange(4)):
        lines += [f"def {name}(a):", f"    {rng.choice(NAMES)}(a)", f"    a.{rng.choice(NAMES)}()"]
    return "\n".join(lines).encode()


def put(store: GraphStore, *rows: Parsed) -> None:
    with store.transaction():
        store.apply(rows)


def same(store: GraphStore, memory: MemoryProject) -> None:
    assert list(store.paths()) == list(memory.paths())
    assert list(store.names()) == sorted({n for n in NAMES if memory.defining(n)} & set(NAMES))
    for name in NAMES:
        assert list(store.defining(name)) == list(memory.defining(name))
        assert list(store.calling(name)) == list(memory.calling(name))
        assert list(store.importing(name)) == list(memory.importing(name))
    for path in memory.paths():
        assert store.outline(path) == memory.outline(path)
    for folder in ("", "shop", "lib"):
        assert list(store.folder(folder)) == list(memory.folder(folder))
    assert sorted(store.pairs(20)) == sorted(p for p in memory.pairs(20) if p.source != p.target)


@pytest.mark.parametrize("seed", range(8))
def test_it_answers_like_the_graph_in_memory_and_like_one_built_afresh(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store, memory = GraphStore(tmp_path / "g.db", FORM), MemoryProject()
    paths = ["a.py", "shop/cart.py", "shop/price.py", "lib/cart.py", "README.txt"]
    for _ in range(40):
        path = rng.choice(paths)
        if rng.random() < 0.3:
            put(store, Parsed(path, Numbers(0, 0, 0), None, gone=True))
            memory.remove(path)
        else:
            source = source_of(rng)
            put(store, parsed(path, source))
            memory.write(path, source)
        same(store, memory)
    fresh = GraphStore(tmp_path / "fresh.db", FORM)
    put(fresh, *(parsed(path, source) for path, source in memory.sources.items()))
    assert fresh.version == store.version
    assert fresh.totals() == store.totals()
    store.close()
    again = GraphStore(tmp_path / "g.db", FORM)
    assert again.version == fresh.version
    same(again, memory)
    fresh.close()
    again.close()


def test_a_change_of_one_byte_is_another_version_and_back_is_the_same(tmp_path: Path) -> None:
    store = GraphStore(tmp_path / "g.db", FORM)
    put(store, parsed("a.py", b"x = 1"), parsed("b.py", b""))
    first = store.version
    put(store, parsed("a.py", b"x = 2"))
    assert store.version != first
    put(store, parsed("a.py", b"x = 1"))
    assert store.version == first
    store.close()


def test_a_transaction_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    store = GraphStore(tmp_path / "g.db", FORM)
    put(store, parsed("a.py", b"def save(): pass"))
    version = store.version
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.apply([parsed("b.py", b"def save(): pass")])
        raise ZeroDivisionError
    assert store.version == version
    assert not store.has("b.py")
    assert list(store.defining("save")) == ["a.py"]
    put(store, parsed("b.py", b"def save(): pass"))
    assert list(store.defining("save")) == ["a.py", "b.py"]
    store.close()


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be looked at" * 40])
def test_a_damaged_or_foreign_file_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "g.db"
    file.write_bytes(content)
    store = GraphStore(file, FORM)
    assert len(store) == 0
    put(store, parsed("a.py", b"x = 1"))
    store.close()
    assert len(GraphStore(file, FORM)) == 1


def test_a_graph_of_other_parsers_is_begun_anew(tmp_path: Path) -> None:
    store = GraphStore(tmp_path / "g.db", FORM)
    put(store, parsed("a.py", b"x = 1"))
    store.close()
    other = GraphStore(tmp_path / "g.db", "2 test")
    assert len(other) == 0
    other.close()


def test_a_copy_takes_the_place_of_another_graph(tmp_path: Path) -> None:
    store = GraphStore(tmp_path / "g.db", FORM)
    put(store, parsed("a.py", b"def save(): pass"))
    store.copy_to(tmp_path / "seed.db")
    assert adopt(tmp_path / "seed.db", tmp_path / "new" / "h.db", FORM)
    copy = GraphStore(tmp_path / "new" / "h.db", FORM)
    assert (copy.version, list(copy.defining("save"))) == (store.version, ["a.py"])
    store.close()
    copy.close()


def test_a_seed_that_is_not_exactly_ours_is_not_used(tmp_path: Path) -> None:
    place = tmp_path / "place.db"
    GraphStore(place, FORM).close()
    kept = place.read_bytes()
    for number, script in enumerate(
        [
            "CREATE TABLE extra (a)",
            "CREATE TRIGGER t AFTER INSERT ON files BEGIN DELETE FROM files; END",
            "DROP TABLE calls",
            "UPDATE meta SET value = 'other'",
        ]
    ):
        seed = tmp_path / f"{number}.db"
        db = open_graph(seed, FORM)
        db.executescript(script)
        db.close()
        assert not adopt(seed, place, FORM), script
    rubbish = tmp_path / "rubbish.db"
    rubbish.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    assert not adopt(rubbish, place, FORM)
    assert place.read_bytes() == kept
    assert not adopt(tmp_path / "missing.db", place, FORM)
