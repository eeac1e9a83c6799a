"""Which workspace a client's path lies in, under whatever name the client knows it by."""

import pytest

from herdr.hooks.places import Places, Spot

SHOP, LIB = "/home/me/shop", "/home/me/shop/vendor/lib"
PLACES = Places(
    {
        "shop": [SHOP, "/srv/shop", r"C:\Users\Me\shop"],
        "lib": [LIB],
        "all": ["/data/"],
        "share": [r"\\server\share\shop"],
    }
)


@pytest.mark.parametrize(
    ("path", "cwd", "spot"),
    [
        (f"{SHOP}/src/a.py", "", Spot("shop", "src/a.py")),
        (f"{SHOP}//src/./a.py", "", Spot("shop", "src/a.py")),
        (SHOP, "", Spot("shop", "")),
        (f"{SHOP}/", "", Spot("shop", "")),
        ("/data/a.py", "", Spot("all", "a.py")),
        ("/srv/shop/src/a.py", "", Spot("shop", "src/a.py")),  # as a container has it
    ],
)
def test_a_path_is_found_under_every_name_of_its_folder(path: str, cwd: str, spot: Spot) -> None:
    assert PLACES.find(path, cwd) == spot


@pytest.mark.parametrize("folders", [{"shop": [SHOP], "lib": [LIB]}, {"lib": [LIB], "shop": [SHOP]}])
def test_the_innermost_folder_counts(folders: dict[str, list[str]]) -> None:
    assert Places(folders).find(f"{LIB}/b.py") == Spot("lib", "b.py")
    assert Places(folders).find(f"{SHOP}/vendor/c.py") == Spot("shop", "vendor/c.py")


@pytest.mark.parametrize("path", ["/home/me/shopping/a.py", "/home/me", "/", "/other/a.py", "/data2/a"])
def test_a_name_that_only_begins_alike_is_another_folder(path: str) -> None:
    assert PLACES.find(path) is None


@pytest.mark.parametrize(
    ("path", "cwd", "spot"),
    [
        ("a.py", SHOP, Spot("shop", "a.py")),
        ("a.py", f"{SHOP}/src", Spot("shop", "src/a.py")),
        ("../a.py", f"{SHOP}/src", Spot("shop", "a.py")),
        ("", SHOP, Spot("shop", "")),
        (".", f"{SHOP}/src", Spot("shop", "src")),
        (f"{LIB}/b.py", SHOP, Spot("lib", "b.py")),
        ("a.py", "", None),
        ("a.py", "shop", None),
        ("", "", None),
    ],
)
def test_a_relative_path_begins_where_the_client_is(path: str, cwd: str, spot: Spot | None) -> None:
    assert PLACES.find(path, cwd) == spot


@pytest.mark.parametrize(
    ("path", "spot"),
    [
        (f"{SHOP}/../other/a.py", None),
        (f"{SHOP}/src/../../../../etc/passwd", None),
        ("/other/../home/me/shop/a.py", Spot("shop", "a.py")),
        (f"{LIB}/../../a.py", Spot("shop", "a.py")),
        ("/../../home/me/shop/a.py", Spot("shop", "a.py")),
    ],
)
def test_dots_lead_out_of_a_folder_and_into_one(path: str, spot: Spot | None) -> None:
    assert PLACES.find(path) == spot


@pytest.mark.parametrize(
    ("path", "cwd", "spot"),
    [
        (r"C:\Users\Me\shop\src\a.py", "", Spot("shop", "src/a.py")),
        ("c:/Users/Me/shop/src/a.py", "", Spot("shop", "src/a.py")),
        (r"c:\users\me\SHOP\Src\A.py", "", Spot("shop", "Src/A.py")),
        (r"src\a.py", r"C:\Users\Me\shop", Spot("shop", "src/a.py")),
        ("src/a.py", "c:/users/me/shop", Spot("shop", "src/a.py")),
        (r"..\a.py", r"C:\Users\Me\shop\src", Spot("shop", "a.py")),
        (r"D:\Users\Me\shop\a.py", "", None),
        (r"C:\Users\Me\shopping\a.py", "", None),
        (r"\\server\share\shop\src\a.py", "", Spot("share", "src/a.py")),
        (r"a.py", r"\\Server\share\shop", Spot("share", "a.py")),
        ("//server/share/shop/a.py", "", Spot("share", "a.py")),
        (r"\\server\share\shopping\a.py", "", None),
    ],
)
def test_paths_of_windows(path: str, cwd: str, spot: Spot | None) -> None:
    assert PLACES.find(path, cwd) == spot


def test_a_letter_that_is_two_without_case_shifts_nothing() -> None:
    assert Places({"shop": [r"C:\Straße"]}).find(r"C:\STRASSE\a.py") == Spot("shop", "a.py")
    assert Places({"shop": [r"C:\Straße"]}).find(r"c:\straße\src\a.py") == Spot("shop", "src/a.py")


def test_elsewhere_case_and_backslashes_count() -> None:
    assert PLACES.find("/home/me/Shop/a.py") is None
    assert PLACES.find(r"src\a.py", SHOP) == Spot("shop", r"src\a.py")


@pytest.mark.parametrize("path", [f"{SHOP}/a\0.py", "\0"])
def test_what_is_no_path_lies_nowhere(path: str) -> None:
    assert PLACES.find(path, SHOP) is None


def test_a_folder_may_be_the_whole_disk() -> None:
    assert Places({"all": ["/"]}).find("/etc/hosts") == Spot("all", "etc/hosts")
    assert Places({"none": [""]}).find("/etc/hosts") is None
