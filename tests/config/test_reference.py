"""The default file, the reference page and the JSON Schema say what the structs say."""

import json
import re
import textwrap
from pathlib import Path

import pytest
from msgspec import inspect

from herdr.config import Config, config_schema, load
from herdr.config.check import below, default_of, plain
from herdr.config.show import _flow

ROOT = Path(__file__).parents[2]
DEFAULT_FILE = ROOT / "config" / "herdr.yaml"
PAGE = ROOT / "docs" / "reference" / "configuration.md"

Key = tuple[str, inspect.Field]


def description(kind: inspect.Type) -> str:
    while isinstance(kind, inspect.Metadata):
        if kind.extra_json_schema and "description" in kind.extra_json_schema:
            return str(kind.extra_json_schema["description"])
        kind = kind.type
    return ""


def keys(kind: inspect.Type, path: str = "") -> list[Key]:
    """Every key that holds a value, sections and lists of sections left out."""
    bare = plain(kind)
    if isinstance(bare, inspect.VarTupleType) and isinstance(plain(bare.item_type), inspect.StructType):
        return keys(bare.item_type, path + "[]")
    assert isinstance(bare, inspect.StructType)
    found: list[Key] = []
    for field in bare.fields:
        inner = plain(field.type)
        items = inner.item_type if isinstance(inner, inspect.VarTupleType) else inner
        where = below(path, field.encode_name)
        found += keys(inner, where) if isinstance(plain(items), inspect.StructType) else [(where, field)]
    return found


KEYS = keys(inspect.type_info(Config))


def default_text(field: inspect.Field) -> str:
    if field.required:
        return "required"
    value = default_of(field)
    if value is None or value == "":
        return "unset"
    if isinstance(value, dict):
        return "`{" + ", ".join(f"{key}: {_flow(entry)}" for key, entry in value.items()) + "}`"
    return f"`{_flow(value)}`"


def row(path: str, field: inspect.Field) -> str:
    return f"| `{path}` | {default_text(field)} | {description(field.type)} |"


def uncommented(text: str) -> str:
    return re.sub(r"(?m)^(\s*)#(?=[^\s#])", r"\1", text)


def examples() -> list[str]:
    blocks = re.findall(r"(?m)(?:^ *#     .*\n)+", DEFAULT_FILE.read_text())
    return [textwrap.dedent(re.sub(r"(?m)^ *#", "", block)) for block in blocks]


@pytest.mark.parametrize("key", KEYS, ids=[path for path, _ in KEYS])
def test_page_has_a_true_row_for_every_key(key: Key) -> None:
    assert row(*key) in PAGE.read_text().splitlines(), f"write into {PAGE.name}:\n{row(*key)}"


def test_page_has_no_row_for_a_key_that_is_gone() -> None:
    rows = re.findall(r"(?m)^\| `([a-z_.\[\]0-9]+)` \| (?:required|unset|`)", PAGE.read_text())
    assert sorted(rows) == sorted(path for path, _ in KEYS)


def test_every_key_says_what_it_means() -> None:
    assert [path for path, field in KEYS if not description(field.type)] == []


def test_default_file_sets_nothing() -> None:
    assert load(DEFAULT_FILE, {}).config == Config()


def test_default_file_uncommented_is_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    file.write_text(uncommented(DEFAULT_FILE.read_text()))
    loaded = load(file, {})
    assert loaded.config == Config()
    unset = [path for path, origin in loaded.origins.items() if origin == "default"]
    assert unset == [], "these keys are not in the default file"


def test_default_file_explains_every_key() -> None:
    text = DEFAULT_FILE.read_text()
    missing = [path for path, _ in KEYS if not re.search(rf"\b{path.split('.')[-1]}: ", text)]
    assert missing == []
    for path, field in KEYS:
        assert "[]" in path or description(field.type) in text, path


def test_examples_in_the_default_file_are_right(tmp_path: Path) -> None:
    loaded = []
    for text in examples():
        file = tmp_path / "example.yaml"
        file.write_text(text)
        loaded.append(load(file, {"HERDR_CI_TOKEN": "s"}).config)
    assert [bool(c.routes or c.workspaces or c.auth.tokens or c.models.backends) for c in loaded] == [
        True
    ] * 4


def test_schema_describes_every_key_and_allows_no_other() -> None:
    schema = config_schema()
    assert json.loads(json.dumps(schema))["$ref"] == "#/$defs/Config"
    properties = [
        (name, key, value) for name, d in schema["$defs"].items() for key, value in d["properties"].items()
    ]
    assert all("description" in value or "$ref" in value or "items" in value for _, _, value in properties)
    assert all(d["additionalProperties"] is False for d in schema["$defs"].values())
