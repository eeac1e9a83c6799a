"""YAML to a tree: positions, the core schema of YAML 1.2, and everything that is refused."""

import pytest

from herdr.config.document import DEPTH_MAX, TEXT_BYTES_MAX, Item, read_document


def value_of(text: str) -> object:
    item, problems = read_document(text.encode(), "f")
    assert problems == []
    assert item is not None
    return strip(item)


def strip(item: Item) -> object:
    match item.value:
        case dict():
            return {key: strip(entry) for key, entry in item.value.items()}
        case list():
            return [strip(entry) for entry in item.value]
        case scalar:
            return scalar


def problems_of(data: str | bytes) -> list[str]:
    return [
        str(problem) for problem in read_document(data.encode() if isinstance(data, str) else data, "f")[1]
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("8787", 8787),
        ("-1", -1),
        ("0", 0),
        ("0o777", 511),
        ("0x1F", 31),
        ("0777", "0777"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.2.3", "1.2.3"),
        ("'8787'", "8787"),
        ('"true"', "true"),
        ("<<", "<<"),
        ("!!str 8787", "8787"),
        ("!!int '5'", 5),
    ],
)
def test_plain_scalars_are_yaml_1_2(text: str, value: object) -> None:
    found = value_of(f"k: {text}")
    assert found == {"k": value}
    assert type(found["k"]) is type(value)  # 1 == True


def test_keys_are_text_whatever_they_look_like() -> None:
    assert value_of("on: 1\n8787: 2\nnull: 3") == {"on": 1, "8787": 2, "null": 3}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "\ufeff"])
def test_nothing_is_an_empty_mapping(text: str) -> None:
    assert value_of(text) == {}


def test_every_value_and_key_knows_its_place() -> None:
    item, _ = read_document(b"a:\n  - b: 1\n    cc: two\n", "dir/f.yaml")
    assert item is not None
    entry = item.value["a"].value[0]  # type: ignore[index]
    assert (entry.value["b"].origin, entry.value["cc"].origin) == ("dir/f.yaml:2:8", "dir/f.yaml:3:9")
    assert entry.value["cc"].key_origin == "dir/f.yaml:3:5"


def test_aliases_work() -> None:
    assert value_of("a: &x [1, 2]\nb: *x") == {"a": [1, 2], "b": [1, 2]}


def test_a_key_that_stands_twice() -> None:
    assert problems_of("a: 1\nb:\n  c: 1\n  c: 2\na: 3") == [
        "f:4:3: b.c: the key is here twice; the first is at f:3:3",
        "f:5:1: a: the key is here twice; the first is at f:1:1",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1", "f:1:6: not YAML: while parsing a flow sequence"),
        ("a:\n\t- 1", "f:2:1: not YAML: while scanning for the next token, found character '\\t'"),
        ("a: b: c", "f:1:5: not YAML: mapping values are not allowed here"),
        ("a: *nowhere", "f:1:4: not YAML: found undefined alias"),
        ("a: 1\n---\nb: 2", "f:2:1: not YAML: expected a single document"),
        ("a: !!python/object/apply:os.system ['true']", "f:1:4: a: the tag !!python/object/apply:os.system"),
        ("a: !include x", "f:1:4: a: the tag !include is not allowed"),
        ("a: !!set {b}", "f:1:4: a: the tag !!set is not allowed"),
        ("a: !!int many", "f:1:4: a: this is not a value of !!int"),
        ("a: !!bool 1", "f:1:4: a: this is not a value of !!bool"),
        ("? [a, b]\n: 1", "f:1:3: a key must be a plain name"),
        ("a: 1\nb: \x07", "f:2:4: the character"),
        ("a: &x [*x]", "f:1:4: too many values; do aliases repeat each other?"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    assert any(found.startswith(problem) for found in problems_of(text)), problems_of(text)


def test_tabs_get_a_hint() -> None:
    assert problems_of("a:\n\t- 1")[0].endswith("(indent with spaces, not tabs)")


def test_nesting_is_bounded() -> None:
    assert problems_of("a: " + "[" * 100_000) == [
        f"f:1:{3 + DEPTH_MAX}: nested deeper than {DEPTH_MAX} levels"
    ]


def test_aliases_that_multiply_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "too many values" in problems_of("\n".join(lines))[0]


def test_text_must_be_utf_8() -> None:
    assert problems_of(b"a: 1\nb: \xff") == ["f:2: not UTF-8; save the file in that encoding"]


def test_size_is_bounded() -> None:
    assert "larger than" in problems_of(b"#" * (TEXT_BYTES_MAX + 1))[0]


def test_places_are_counted_from_one() -> None:
    assert problems_of("!x")[0].startswith("f:1:1: ")
    assert problems_of("\ufeff!x")[0].startswith("f:1:1: ")  # editors of another system begin files so
