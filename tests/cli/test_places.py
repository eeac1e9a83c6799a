import pytest

from herdr.cli.places import Places, Spot, Workspace, as_file

SHOP = Workspace("shop", ("/src/shop", "/home/me/shop"))
CART = Workspace("cart", ("/src/shop/cart",))
API = Workspace("api", ("/src/api",))
REST = Workspace("default", ("/srv",))


@pytest.mark.parametrize(
    ("base", "path", "spot"),
    [
        ("/src/shop", "/src/shop/a.py", Spot("shop", "a.py")),
        ("/src/shop", "/src/shop", Spot("shop", ".")),
        ("/src/shop", "/src/shop/cart/a.py", Spot("cart", "a.py")),
        ("/src/shop", "/home/me/shop/cart/a.py", Spot("shop", "cart/a.py")),
        ("/src/shop", "/src/shopping/a.py", None),
        ("/src", "/src/api/a.py", Spot("api", "a.py")),
        ("/src", "/src/b/a.py", None),
        ("/src/shop/cart/deep", "/src/shop/cart/deep/a.py", Spot("cart", "deep/a.py")),
        ("/other", "/other/a.py", Spot("default", "a.py")),
        ("/other", "/src/api/a.py", Spot("api", "a.py")),
        ("/", "/a.py", None),
    ],
)
def test_a_path_lies_in_the_innermost_workspace(base: str, path: str, spot: Spot | None) -> None:
    assert Places([SHOP, CART, API], base).find(path) == spot


@pytest.mark.parametrize(
    ("base", "wanted", "path", "spot"),
    [
        ("/src/shop", "shop", "/src/shop/cart/a.py", Spot("shop", "cart/a.py")),
        ("/src/shop", "api", "/src/shop/a.py", Spot("api", "a.py")),  # in a container, seen as /src/api
        ("/src/shop", "unknown", "/src/shop/a.py", Spot("unknown", "a.py")),
        ("/src", "api", "/src/shop/a.py", None),
    ],
)
def test_a_named_workspace_is_the_only_one(base: str, wanted: str, path: str, spot: Spot | None) -> None:
    assert Places([SHOP, CART, API], base, wanted).find(path) == spot


def test_a_default_that_has_a_folder_is_not_everything_else() -> None:
    assert Places([REST], "/other").find("/other/a.py") is None
    assert Places([REST], "/srv/x").find("/srv/x/a.py") == Spot("default", "x/a.py")


def test_the_folders_that_matter() -> None:
    assert Places([SHOP, CART, API], "/src/shop/cart").folders() == {
        "shop": ["/src/shop"],
        "cart": ["/src/shop/cart"],
    }
    assert Places([SHOP], "/other").folders() == {"default": ["/other"]}


@pytest.mark.parametrize(
    ("path", "sent"), [("git:HEAD", "./git:HEAD"), ("c:", "./c:"), ("a/c:d", "a/c:d"), ("a b", "a b")]
)
def test_a_file_is_never_taken_for_something_else(path: str, sent: str) -> None:
    assert as_file(path) == sent
