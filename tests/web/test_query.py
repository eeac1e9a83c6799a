from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.select import Selection
from herdr.errors import InvalidInput
from herdr.web.query import (
    ATTR_LENGTH_MAX,
    ATTRS_MAX,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    QUERY_MAX,
    check_attributes,
    parse_fields,
    parse_query,
    parse_seq,
)

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


def test_an_empty_query_asks_for_everything_new() -> None:
    assert parse_query(b"") == (Selection(), None, LIMIT_DEFAULT)


def test_every_filter_is_read() -> None:
    query = (
        b"type=tool.*&type=test.failed&class=user&priority=P0&source=ci&workspace=w&session=s"
        b"&subject=app%2F%5Bid%5D%2F**&as=cursor&after=0&limit=5&attr.b=2&attr.a=x+y"
    )
    assert parse_query(query) == (
        Selection(
            type=("tool.*", "test.failed"),
            class_=("user",),
            priority=("P0",),
            source=("ci",),
            workspace=("w",),
            session=("s",),
            subject=("app/[id]/**",),
            target="cursor",
            attrs=(("a", "x y"), ("b", "2")),
        ),
        "0",
        5,
    )


def test_the_same_fields_in_a_frame_mean_the_same() -> None:
    assert parse_fields(
        {"type": ["a", "b"], "as": "t", "after": 7, "attrs": {"x": "1"}, "attr.y": 2, "limit": 9}
    ) == parse_query(b"type=a&type=b&as=t&after=7&attr.x=1&attr.y=2&limit=9")


@given(st.lists(NAMES), st.dictionaries(NAMES, NAMES, max_size=5))
def test_what_is_encoded_comes_back(types: list[str], attrs: dict[str, str]) -> None:
    pairs = [("type", name) for name in types] + [(f"attr.{name}", value) for name, value in attrs.items()]
    query = parse_query(urlencode(pairs).encode())
    assert query.selection == Selection(type=tuple(types), attrs=tuple(sorted(attrs.items())))


@pytest.mark.parametrize(
    "text",
    ["0", "-1", "1001", "1e2", "", "x", "\u0661", "00000000000001000000", "9" * 5000, "1.0", "+5", " 5"],
)
def test_a_limit_is_a_whole_number_up_to_a_thousand(text: str) -> None:
    with pytest.raises(InvalidInput, match="limit takes a whole number"):
        parse_query(f"limit={quote(text)}".encode())


@pytest.mark.parametrize(("text", "limit"), [("1", 1), ("1000", LIMIT_MAX), ("0010", 10)])
def test_a_good_limit_is_taken(text: str, limit: int) -> None:
    assert parse_query(f"limit={text}".encode()).limit == limit


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (b"typ=a", "'typ' is not a filter; there are type, class"),
        (b"attr.=x", "is not a filter"),
        (b"after=1&after=2", "after stands twice"),
        (b"as=a&as=b", "as stands twice"),
        (b"as=", "1 to 128 characters"),
        (b"as=a%0Ab", "1 to 128 characters"),
        (b"as=" + b"a" * 129, "1 to 128 characters"),
        (b"type=%ff", "not percent-encoded UTF-8"),
        (b"type=\xff", "not percent-encoded UTF-8"),
        (b"type=" + b"a" * QUERY_MAX, "longer than"),
        (b"&".join(b"attr.n%d=1" % n for n in range(ATTRS_MAX + 1)), "attributes, the most is"),
        (b"attr.n=" + b"x" * (ATTR_LENGTH_MAX + 1), "the attribute 'n' has more than"),
        (b"attr." + b"n" * (ATTR_LENGTH_MAX + 1) + b"=x", "the attribute 'n{80}' has more than"),
        (b"=x", "'' is not a filter"),
    ],
)
def test_a_bad_query_says_what_is_wrong(query: bytes, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as error:
        parse_query(query)
    assert error.value.code == "bad_filter"


@pytest.mark.parametrize(
    "fields",
    [
        {"type": 1.5},
        {"type": True},
        {"type": None},
        {"type": {"a": 1}},
        {"type": ["a", None]},
        {"attrs": "x"},
        {"attrs": {"a": None}},
        {"as": ["a", "b"]},
        {"colour": "red"},
    ],
)
def test_a_bad_field_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_fields(fields)
    assert error.value.code == "bad_filter"


def test_attributes_of_the_largest_size_are_taken() -> None:
    largest = {f"{n:0{ATTR_LENGTH_MAX}}": "x" * ATTR_LENGTH_MAX for n in range(ATTRS_MAX)}
    check_attributes(largest)
    with pytest.raises(InvalidInput):
        check_attributes({**largest, "one": "more"})


def test_a_seq_is_read() -> None:
    assert [parse_seq(text) for text in ("0", "7", "007", "9" * 19)] == [0, 7, 7, 10**19 - 1]


@pytest.mark.parametrize("text", ["", "x", "-1", "1e3", "\u0661", " 1", "1.0", "9" * 20])
def test_what_is_no_seq_is_invalid(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_seq(text)
    assert error.value.code == "invalid_request"
