import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.errors import InvalidInput
from herdr.locks.lock import FOLDER, Name
from herdr.locks.overlap import overlaps
from herdr.locks.paths import (
    PATHS_MAX,
    SEGMENTS_MAX,
    WILDCARDS_MAX,
    Requested,
    check_count,
    names_of,
    read_path,
    read_paths,
)

DEEPEST = "/".join(["a" * 15] * SEGMENTS_MAX)
assert len(DEEPEST) == 4095


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("src/a.py", "src/a.py"),
        ("./src//a.py", "src/a.py"),
        ("src/./x/../a.py", "src/a.py"),
        ("src/a.py/../../b", "b"),
        ("src/", "src/"),
        ("src//", "src/"),
        ("src/.", "src/"),
        ("src/x/..", "src/"),
        ("src/**", "src/"),
        ("src/**/**/", "src/"),
        (".", "./"),
        ("./", "./"),
        ("src/..", "./"),
        ("**", "./"),
        ("**/", "./"),
        (" a ", " a "),
        ("app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("src/*.py", "src/*.py"),
        ("src/***.py", "src/*.py"),
        ("src/***", "src/*"),
        ("**/**/a/**/**/b", "**/a/**/b"),
        ("src/*/", "src/*/"),
        ("*/**", "*/"),
        ("src/**/x/../a", "src/**/a"),
        ("git:HEAD", "git:HEAD"),
        ("git:index", "git:index"),
        ("./git:HEAD", "./git:HEAD"),
        ("./c:x", "./c:x"),
        ("./~/x", "./~/x"),
        ("./~", "./~"),
        ("~x", "~x"),
        ("x/~/y", "x/~/y"),
        ("x/C:/y", "x/C:/y"),
        ("Cafe\u0301.py", "Caf\u00e9.py"),
        ("\u212a:/x", "./K:/x"),  # the Kelvin sign is a K in form NFC, where it would be a drive
        ("..a/...", "..a/..."),
        ("a" * 255, "a" * 255),
        (DEEPEST, DEEPEST),
        (DEEPEST + "/", DEEPEST + "/"),
    ],
)
def test_one_path_has_one_canonical_form(text: str, canonical: str) -> None:
    requested = read_path(text)
    assert requested.text == text
    assert requested.canonical == canonical
    assert read_path(canonical).canonical == canonical
    assert requested.is_folder == (canonical.endswith("/"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty; for the whole workspace write ./"),
        ("a" * 4097, "longer than 4096 bytes"),
        ("é/" * 1400, "longer than 4096 bytes"),  # 2,800 letters
        ("e\u0301/" * 1025, "longer than 4096 bytes"),  # until composed
        ("\u0958/" * 800, "longer than 4096 bytes"),  # only once composed
        ("a\0b", r"U\+0000"),
        ("a\nb", r"U\+000A"),
        ("a\x7fb", r"U\+007F"),
        ("a\x85b", r"U\+0085"),
        ("a\ud800b", "half of a surrogate pair"),
        ("src\\a.py", "backslash; write / between"),
        ("C:\\x", "backslash; write / between"),
        ("C:/x", "drive; write it relative .* is ./C:/x"),
        ("c:x", "drive"),
        ("/x", "absolute; write it relative"),
        ("//server/x", "absolute"),
        ("/", "absolute"),
        ("~", "home folder; write it relative"),
        ("~/x", "home folder"),
        ("..", "leads out of the workspace"),
        ("a/../../b", "leads out of the workspace"),
        ("./../a", "leads out of the workspace"),
        ("*/..", "right after a wildcard"),
        ("a/**/../b", "right after a wildcard"),
        ("a?/./../b", "right after a wildcard"),
        ("b/" + "a" * 256, "segment of more than 255 bytes"),
        ("é" * 128, "segment of more than 255 bytes"),
        ("a/" * SEGMENTS_MAX + "a", "more than 256 folders deep"),
        ("git:", "there are git:HEAD and git:index"),
        ("git:head", "there are git:HEAD and git:index"),
        ("git:HEAD/x", "there are git:HEAD and git:index"),
        ("git:\ud800\n", "there are git:HEAD and git:index"),
        ("*a?" * 17, "cannot be compared: .* more than 32 wildcards"),
        ("*/" + "a" * 192, "cannot be compared: .* more than 192 characters"),
        ("?/" + "a/b/" * 256, "more than 256 folders deep"),
        ("?/" + "abcdef/" * 200, "cannot be compared: .* longer than 1024"),
    ],
)
def test_what_cannot_be_locked_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        read_path(text)
    assert caught.value.code == "bad_path"
    assert caught.value.detail.isprintable()
    assert len(caught.value.detail) < 400


PARTS = st.sampled_from(
    ["a", "b", "..", ".", "", "*", "**", "***", "a*", "?", "e\u0301", "~", "git:HEAD", "c:", "git:x"]
)


@given(st.lists(PARTS, min_size=1, max_size=6).map("/".join) | st.text(max_size=12))
def test_every_text_is_refused_or_has_a_canonical_form_that_means_the_same(text: str) -> None:
    try:
        requested = read_path(text)
    except InvalidInput as error:
        assert error.code == "bad_path"
        return
    again = read_path(requested.canonical)
    assert again._replace(text=text) == requested
    assert unicodedata.is_normalized("NFC", requested.canonical)
    assert not {"", ".", ".."} & set(requested.segments)
    assert requested.segments or requested.is_folder


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("src/a.py", Name("w", ("src", "a.py"), (), "src/a.py")),
        ("src/**", Name("w", ("src",), FOLDER, "src/")),
        (".", Name("w", (), FOLDER, "./")),
        ("src/*/x", Name("w", ("src",), ("*", "x"), "src/*/x")),
        ("**/x", Name("w", (), ("**", "x"), "**/x")),
        ("src/?/", Name("w", ("src",), ("?", "**"), "src/?/")),
        ("git:HEAD", Name("w", ("HEAD",), (), "git:HEAD")),
    ],
)
def test_the_name_of_a_path_is_cut_at_the_first_wildcard(text: str, name: Name) -> None:
    assert names_of(read_path(text), "w") == name


def test_on_a_volume_without_case_names_are_folded_but_shown_as_asked_for() -> None:
    assert names_of(read_path("Src/Straße*"), "w", folded=True) == Name(
        "w", ("src",), ("strasse*",), "Src/Straße*"
    )
    lower, upper = read_path("\u0390.py"), read_path("\u03aa\u0301.PY")  # iota with dialytika and tonos
    assert names_of(lower, "w", folded=True).literal == names_of(upper, "w", folded=True).literal
    pattern = names_of(read_path("Stra?e/??/a?*/**/x"), "w", folded=True)
    assert pattern.rest == ("stra*e", "*", "a*", "**", "x")
    assert overlaps(pattern, names_of(read_path("STRASSE/ß/aß/x"), "w", folded=True))
    assert names_of(read_path("git:HEAD"), "w", folded=True).literal == ("HEAD",)


def test_paths_that_are_the_same_collapse_to_the_first() -> None:
    assert [path.text for path in read_paths(["src/a", "b/", "./src//a", "b/**", "b"])] == [
        "src/a",
        "b/",
        "b",
    ]


def test_the_first_wrong_path_is_named_with_its_place() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_paths(["a", "/b", "/c"])
    assert caught.value.code == "bad_path"
    assert [(error.field, error.index) for error in caught.value.errors] == [("paths", 1)]
    assert "'/b' is absolute" in caught.value.errors[0].message


@pytest.mark.parametrize(
    ("count", "why"), [(0, "no paths"), (PATHS_MAX + 1, "too many paths: 257, of at most 256")]
)
def test_a_request_has_a_number_of_paths_that_can_be_answered(count: int, why: str) -> None:
    for check in (check_count, read_paths):
        with pytest.raises(InvalidInput, match=why) as caught:
            check(["a"] * count)
        assert caught.value.code == "invalid_request"


def test_a_request_may_have_the_most_paths_and_wildcards() -> None:
    assert len(read_paths([f"a{i}/*.py" for i in range(WILDCARDS_MAX)])) == WILDCARDS_MAX
    assert len(read_paths([f"{i}/**" for i in range(PATHS_MAX)])) == PATHS_MAX
    assert read_paths(["git:HEAD", "*"])[0] == Requested("git:HEAD", ("HEAD",), False, "git")
    with pytest.raises(InvalidInput, match="33 wildcards together; at most 32") as caught:
        read_paths(["?*", *(f"a{i}/*.py" for i in range(WILDCARDS_MAX - 1))])
    assert caught.value.code == "invalid_request"
