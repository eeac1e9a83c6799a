"""Any typo of any key is refused, and the message names the key that was meant."""

import json
import re
import string
from difflib import SequenceMatcher

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import inspect

from herdr.config import Config, ConfigError, load
from herdr.config.check import Checker, plain
from herdr.config.document import read_text
from herdr.config.environment import PREFIX, variable_names
from herdr.errors import InvalidInput
from herdr.glob import GLOB_LENGTH_MAX, check_glob

LETTERS = string.ascii_lowercase + "_"


def structs(kind: inspect.Type) -> list[inspect.StructType]:
    bare = plain(kind)
    if isinstance(bare, inspect.VarTupleType):
        return structs(bare.item_type)
    if not isinstance(bare, inspect.StructType):
        return []
    return [bare, *(found for field in bare.fields for found in structs(field.type))]


STRUCTS = structs(inspect.type_info(Config))
KEYS = [(struct, field.encode_name) for struct in STRUCTS for field in struct.fields]


@st.composite
def typo_of(draw: st.DrawFn, word: str) -> str:
    """One slip of the fingers: a letter too many, too few, wrong, or two swapped."""
    place = draw(st.integers(0, len(word) - 1))
    letter = draw(st.sampled_from(LETTERS))
    before, here, after = word[:place], word[place], word[place + 1 :]
    return draw(
        st.sampled_from(
            [
                before + after,
                before + letter + here + after,
                before + letter + after,
                before + after[:1] + here + after[1:],
            ]
        )
    )


@given(st.data())
def test_a_typo_of_any_key_suggests_the_key(data: st.DataObject) -> None:
    struct, key = data.draw(st.sampled_from(KEYS))
    names = [field.encode_name for field in struct.fields]
    typo = data.draw(typo_of(key))
    assume(typo and typo not in names)
    # "hort" may be host or port: a slip that ends nearer to another key cannot be understood.
    likeness = {name: SequenceMatcher(None, typo, name).ratio() for name in names}
    assume(likeness[key] >= max(likeness.values()))
    item, _ = read_text(json.dumps({typo: 1}), lambda mark: f"f:{mark.line + 1}:{mark.column + 1}")
    assert item is not None
    checker = Checker()
    checker.build(item, struct, "x")
    message = next(str(problem) for problem in checker.problems if problem.path == f"x.{typo}")
    assert message.startswith(f"f:1:2: x.{typo}: unknown key; did you mean ")
    assert key in message.partition("did you mean ")[2].rstrip("?").split(" or ")


@given(st.data())
def test_a_typo_of_any_variable_suggests_the_variable(data: st.DataObject) -> None:
    known = [re.sub(r"__N(?=__|$)", "__0", name) for name in variable_names(inspect.type_info(Config))]
    name = data.draw(st.sampled_from(known))
    tail = data.draw(typo_of(name.removeprefix(PREFIX).lower())).upper()
    typo = PREFIX + tail
    likeness = {other: SequenceMatcher(None, typo, other).ratio() for other in known}
    assume(
        typo not in known
        and tail not in ("URL", "TOKEN", "CONFIG")
        and likeness[name] >= max(likeness.values())
    )
    try:
        load(None, {typo: "1"})
    except ConfigError as error:
        unknown = [str(problem) for problem in error.problems if "unknown variable" in problem.message]
        # A slip inside the name of a mapping's entry or of an item is another entry, not an unknown one.
        assert not unknown or name in unknown[0], unknown


@given(st.text(max_size=30) | st.integers(GLOB_LENGTH_MAX - 1, GLOB_LENGTH_MAX + 1).map("a".__mul__))
def test_rules_take_the_globs_that_the_compiler_takes(glob: str) -> None:
    try:
        check_glob(glob)
        accepted = True
    except InvalidInput:
        accepted = False
    flags = {"routes": [{"event": glob, "target": "t", "match": {"source": [glob]}}]}
    if accepted:
        assert load(None, {}, flags).config.routes[0].event == glob
    else:
        with pytest.raises(
            ConfigError, match=r"routes\[0\]\.event.*expected a glob[\s\S]*routes\[0\]\.match\.source\[0\]"
        ):
            load(None, {}, flags)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([key for _, key in KEYS]) | st.text(max_size=3), inner, max_size=4
            )
        ),
        max_leaves=20,
    )
)
def test_any_document_loads_or_is_refused_with_places(document: object) -> None:
    flags = document if isinstance(document, dict) else {"server": document}
    try:
        load(None, {}, {str(key).replace(".", ""): value for key, value in flags.items()})
    except ConfigError as error:
        assert all(problem.message for problem in error.problems)
