import json

from command_line import Cli


def test_a_folder_is_added_listed_and_removed(herdr: Cli) -> None:
    (herdr.cwd / "shop").mkdir()
    assert "no folder is watched" in herdr("workspace", "list").stderr
    added = herdr("workspace", "add", "shop")
    assert (added.returncode, added.stdout) == (0, f"shop  {herdr.cwd / 'shop'}\n")
    header, row = herdr("workspace", "list").stdout.splitlines()
    assert header.split() == ["name", "path", "status", "files", "note"]
    assert row.split()[:2] == ["shop", str(herdr.cwd / "shop")]
    assert "workspace    shop: " in herdr("status").stdout
    wait_until_watching(herdr)
    assert herdr("workspace", "list").stdout.splitlines()[1].split()[2:] == ["watching", "0", "-"]
    assert "0 files" in herdr("status").stdout
    removed = herdr("workspace", "remove", "shop")
    assert (removed.returncode, removed.stdout) == (0, "")
    assert herdr("workspace", "list", "--json").stdout == ""


def wait_until_watching(herdr: Cli) -> None:
    while json.loads(herdr("workspace", "list", "--json").stdout)["status"] != "watching":
        pass


def test_what_happens_in_it_is_published(herdr: Cli) -> None:
    (herdr.cwd / "shop").mkdir()
    name = json.loads(herdr("workspace", "add", "shop/../shop", "--name", "a b/c", "--json").stdout)["name"]
    assert name == "a b/c"
    with herdr.start(
        "tail", "--type", "file*", "--workspace", name, "--after", "0", "--count", "1", "--json"
    ) as process:
        (herdr.cwd / "shop/a.py").write_text("a = 1\n")
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["type"] in ("file.changed", "files.changed")
        assert process.wait(30) == 0
    assert herdr("workspace", "remove", name).returncode == 0


def test_mistakes_are_explained(shared: Cli) -> None:
    missing = shared("workspace", "add", "nosuch")
    assert missing.returncode == 1
    assert (
        f"'{shared.cwd}/nosuch' is not the absolute path of a folder that the gateway can see"
        in missing.stderr
    )
    unknown = shared("workspace", "remove", "nosuch")
    assert (unknown.returncode, unknown.stderr) == (1, "herdr: no workspace is called 'nosuch'\n")
