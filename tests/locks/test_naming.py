import errno
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from herdr.errors import InvalidInput, NotFound
from herdr.locks.disk import is_case_blind
from herdr.locks.lock import FOLDER, Mode, Name
from herdr.locks.naming import NAMES_MAX, Naming
from herdr.locks.overlap import overlaps

Names = tuple[Name, ...]


@pytest.fixture(autouse=True)
def own_git_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in [name for name in os.environ if name.startswith("GIT_") and name != "GIT_CONFIG_NOSYSTEM"]:
        monkeypatch.delenv(name)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A workspace with two files in a folder."""
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a")
    (root / "src" / "b.py").write_text("b")
    return root


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(("git", *identity, *arguments), cwd=folder, check=True, capture_output=True)


def naming(**roots: Path) -> Naming:
    return Naming(lambda: {name: str(path) for name, path in roots.items()})


def named(root: Path, *paths: str, mode: Mode = "write") -> Names:
    return naming(shop=root).names("shop", paths, mode)[1]


def spelled(names: Names) -> set[str]:
    return {f"{name.space}:{'/'.join(name.literal + name.rest)}" for name in names}


def collide(one: Names, other: Names) -> bool:
    return any(overlaps(a, b) for a in one for b in other)


def refusal(call: Callable[[], object]) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        call()
    return caught.value


def test_a_plain_file_has_one_name_however_it_is_written(shop: Path) -> None:
    for text in ("src/a.py", "./src//a.py", "src/../src/./a.py"):
        shown, names = naming(shop=shop).names("shop", [text], "write")
        assert shown == ("src/a.py",)
        assert names == (Name("shop", ("src", "a.py"), (), "src/a.py"),)
    assert naming(shop=shop).names("shop", ["src/a.py", "./src/a.py"], "write")[0] == ("src/a.py",)


def test_a_folder_that_is_there_is_covered_whole_without_a_slash(shop: Path) -> None:
    for text in ("src", "src/"):
        shown, names = naming(shop=shop).names("shop", [text], "write")
        assert shown == ("src/",) and names == (Name("shop", ("src",), FOLDER, "src/"),)
    assert naming(shop=shop).names("shop", ["new"], "write")[0] == ("new",)
    assert naming(shop=shop).names("shop", ["new/"], "write")[0] == ("new/",)
    assert naming(shop=shop).names("shop", ["."], "write")[1] == (Name("shop", (), FOLDER, "./"),)


def test_a_link_is_its_own_name_and_what_it_points_to(shop: Path) -> None:
    (shop / "link").symlink_to("src/a.py")
    (shop / "absolute").symlink_to(shop / "src" / "a.py")
    assert spelled(named(shop, "link")) == {"shop:link", "shop:src/a.py"}
    assert {name.shown for name in named(shop, "link")} == {"link"}
    assert collide(named(shop, "link"), named(shop, "src/a.py"))
    assert collide(named(shop, "link"), named(shop, "absolute"))
    assert collide(named(shop, "link"), named(shop, "src"))
    assert not collide(named(shop, "link"), named(shop, "src/b.py"))


def test_a_chain_of_links_and_linked_folders(shop: Path) -> None:
    (shop / "one").symlink_to("two")
    (shop / "two").symlink_to("deep/three")
    (shop / "deep").symlink_to("src")
    (shop / "src" / "three").symlink_to("../deep/a.py")
    assert spelled(named(shop, "one")) >= {"shop:one", "shop:two", "shop:deep/three", "shop:src/three"}
    assert "shop:src/a.py" in spelled(named(shop, "one"))
    assert spelled(named(shop, "deep/new.py")) == {"shop:deep/new.py", "shop:src/new.py"}
    assert spelled(named(shop, "deep")) == {"shop:deep/**", "shop:src/**"}
    assert collide(named(shop, "deep/*.py"), named(shop, "src/a.py"))
    assert collide(named(shop, "deep"), named(shop, "deep/x/y"))


def test_a_link_target_with_dots_is_resolved_as_the_system_does(shop: Path) -> None:
    (shop / "far" / "away").mkdir(parents=True)
    (shop / "away").symlink_to("far/away")
    (shop / "tricky").symlink_to("away/../a.py")  # far/a.py, and not a.py
    (shop / "far" / "a.py").write_text("x")
    assert os.path.samefile(shop / "tricky", shop / "far" / "a.py")
    assert spelled(named(shop, "tricky")) == {"shop:tricky", "shop:far/a.py"}


def test_a_dangling_link_and_what_it_may_come_to_point_to(shop: Path) -> None:
    (shop / "link").symlink_to("src/later.py")
    assert collide(named(shop, "link"), named(shop, "src/later.py"))
    assert naming(shop=shop).names("shop", ["link"], "write")[0] == ("link",)


def test_a_link_that_leads_out_is_refused_without_saying_where(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (shop / "out").symlink_to(tmp_path / "secret")
    (shop / "up").symlink_to("../secret")
    (shop / "gone").symlink_to("/nowhere/at/all")
    (shop / "twin").symlink_to(tmp_path / "shop-2")
    for text in ("out", "out/x.py", "out/*.py", "up", "gone", "twin"):
        error = refusal(lambda text=text: named(shop, "src/a.py", text))
        assert error.code == "bad_path" and "out of the workspace" in error.detail
        assert str(tmp_path) not in error.detail and "secret" not in error.detail
        assert [(wrong.field, wrong.index) for wrong in error.errors] == [("paths", 1)]


def test_a_link_that_leaves_and_comes_back_is_all_right(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(shop)
    (shop / "link").symlink_to(tmp_path / "alias" / "src" / "a.py")
    assert spelled(named(shop, "link")) == {"shop:link", "shop:src/a.py"}
    assert collide(named(tmp_path / "alias", "src/a.py"), named(shop, "link"))


def test_links_in_a_circle_are_refused(shop: Path) -> None:
    (shop / "a").symlink_to("b")
    (shop / "b").symlink_to("a")
    (shop / "self").symlink_to("self/x")
    for text in ("a", "b/x", "self", "self/*"):
        error = refusal(lambda text=text: named(shop, text))
        assert error.code == "bad_path" and "circles" in error.detail and text in error.detail
    (shop / "here").symlink_to(".")
    assert spelled(named(shop, "here/src/a.py")) == {"shop:here/src/a.py", "shop:src/a.py"}


def test_forty_links_are_followed_as_the_system_does(shop: Path) -> None:
    for number in range(41):
        (shop / f"l{number}").symlink_to(f"l{number + 1}")
    (shop / "l41").write_text("x")
    assert (shop / "l1").read_text() == "x" and len(named(shop, "l1")) == 41
    with pytest.raises(OSError):
        (shop / "l0").read_text()
    assert "circles" in refusal(lambda: named(shop, "l0")).detail


def test_every_wrong_path_is_named_by_its_place(shop: Path, tmp_path: Path) -> None:
    for number in range(20):
        (shop / f"out{number}").symlink_to(tmp_path)
    error = refusal(lambda: named(shop, "src/a.py", *(f"out{number}" for number in range(20))))
    assert [wrong.index for wrong in error.errors] == list(range(1, 11))
    error = refusal(lambda: named(shop, "src/a.py", "../x"))
    assert error.code == "bad_path" and [wrong.index for wrong in error.errors] == [1]


def test_two_hard_links_are_one_file(shop: Path) -> None:
    os.link(shop / "src" / "a.py", shop / "twin.py")
    assert collide(named(shop, "twin.py"), named(shop, "src/a.py"))
    assert not collide(named(shop, "twin.py"), named(shop, "src/b.py"))


def test_a_pipe_or_a_file_that_is_no_folder_is_a_name_like_others(shop: Path) -> None:
    os.mkfifo(shop / "pipe")
    assert spelled(named(shop, "pipe", "src/a.py/x")) == {"shop:pipe", "shop:src/a.py/x"}


def test_what_cannot_be_read_is_a_plain_name(shop: Path) -> None:
    (shop / "link").symlink_to("src/a.py")
    (shop / "src").chmod(0)
    own = os.geteuid()
    try:
        if own == 0:  # root may read everything
            os.seteuid(65534)
        assert "shop:src/a.py" in spelled(named(shop, "src/a.py"))
        assert len(named(shop, "src/a.py")) == 1
    finally:
        os.seteuid(own)
        (shop / "src").chmod(0o755)


def test_any_tangle_of_links_ends_where_the_system_says(tmp_path: Path) -> None:
    followed = 0
    for seed in range(60):
        chance = random.Random(seed)
        root = tmp_path / str(seed)
        folders = ["", "p", "p/q", "r"]
        for folder in folders:
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / "f").write_text(folder)
        targets = [*folders[1:], "f", "p/f", "p/q/f", "new", "p/new"]
        for number in range(8):
            place = f"{chance.choice(folders)}/l{number}".lstrip("/")
            to = chance.choice(targets)
            (root / place).symlink_to(chance.choice([to, os.path.relpath(root / to, (root / place).parent)]))
            targets += [place, f"{place}/../f"]
        texts = [t for t in targets if ".." not in t] + [f"{t}/f" for t in targets if ".." not in t]
        real = {text: os.path.realpath(root / text) for text in texts}
        for text in texts:
            try:
                os.stat(root / text)
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno == errno.ELOOP:
                    assert "circles" in refusal(lambda root=root, text=text: named(root, text)).detail
                    continue
            if not Path(real[text]).is_relative_to(root):
                assert refusal(lambda root=root, text=text: named(root, text)).code == "bad_path"
                continue
            names = named(root, text)
            place = tuple(Path(real[text]).relative_to(root).parts)
            assert place in {name.literal for name in names}, (seed, text)
            assert collide(names, (Name("shop", place),)), (seed, text)
            assert all(name.rest == FOLDER for name in names) == os.path.isdir(real[text])
            followed += len(names) > 1
    assert followed > 200


def test_a_folder_that_is_missing_now_is_named_by_the_letters(tmp_path: Path) -> None:
    root = tmp_path / "later"
    before = named(root, "src/a.py", "src/", "*.py")
    assert spelled(before) == {"shop:src/a.py", "shop:src/**", "shop:*.py"}
    (root / "src").mkdir(parents=True)
    assert named(root, "src/a.py", "src/", "*.py") == before


def test_the_default_workspace_needs_no_folder_and_others_do(shop: Path) -> None:
    names = naming(shop=shop)
    assert spelled(names.names("default", ["src/a.py"], "write")[1]) == {"default:src/a.py"}
    with pytest.raises(NotFound) as caught:
        names.names("nope", ["src/a.py"], "write")
    assert caught.value.code == "unknown_workspace" and "herdr workspace add" in caught.value.detail
    with pytest.raises(InvalidInput):  # though the workspace is unknown, too
        names.names("shop", [], "write")


def test_workspaces_within_each_other_know_one_file_by_both_names(shop: Path, tmp_path: Path) -> None:
    names = naming(outer=tmp_path, shop=shop, same=shop)
    got = names.names("shop", ["src/a.py"], "write")[1]
    assert spelled(got) == {"outer:shop/src/a.py", "shop:src/a.py", "same:src/a.py"}
    for workspace, text in (("outer", "shop/"), ("outer", "**/a.py"), ("same", "src"), ("outer", ".")):
        assert collide(got, names.names(workspace, [text], "write")[1]), (workspace, text)
    assert not collide(got, names.names("outer", ["shop-2/", "src/a.py"], "write")[1])
    (tmp_path / "link").symlink_to("shop/src")
    assert collide(got, names.names("outer", ["link/a.py"], "write")[1])


def test_a_workspace_that_is_given_by_a_link_is_where_the_link_leads(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(shop)
    names = naming(shop=shop, alias=tmp_path / "alias")
    for workspace in ("shop", "alias"):
        got = names.names(workspace, ["src/a.py"], "write")[1]
        assert spelled(got) == {"shop:src/a.py", "alias:src/a.py"}


def test_letters_alone_make_no_difference_where_the_volume_says_so(shop: Path) -> None:
    asked: list[str] = []

    def blind(folder: str) -> bool:
        asked.append(folder)
        return True

    names = Naming(lambda: {"shop": str(shop)}, blind)
    one = names.names("shop", ["Src/Stra\u00dfe.PY"], "write")
    assert one[0] == ("Src/Stra\u00dfe.PY",)
    assert collide(one[1], names.names("shop", ["src/STRASSE.py"], "write")[1])
    assert collide(one[1], names.names("shop", ["SRC/*.Py"], "write")[1])
    assert asked == [str(shop)]
    assert not collide(named(shop, "Src/a.py"), named(shop, "src/a.py"))


def test_a_path_as_a_watcher_has_it(shop: Path) -> None:
    names = Naming(lambda: {"shop": str(shop)}, lambda folder: True)
    held = names.names("shop", ["SRC/A.py", "u\u0308.py"], "write")[1]
    assert overlaps(names.plain("shop", "src/a.py"), held[0])
    assert overlaps(names.plain("shop", "\u00dc.PY"), held[1])
    strict = naming(shop=shop)
    strict.names("shop", ["a.py"], "write")
    assert strict.plain("shop", "A.py").literal == ("A.py",)
    assert names.plain("other", "A*.py") == Name("other", ("A*.py",), (), "A*.py")


def test_one_folder_that_is_given_in_two_spellings(tmp_path: Path) -> None:
    roots = {"one": str(tmp_path / "Shop"), "other": str(tmp_path / "SHOP")}
    assert spelled(Naming(lambda: roots, lambda folder: True).names("one", ["A"], "write")[1]) == {
        "one:a", "other:a",
    }  # fmt: skip
    assert spelled(Naming(lambda: roots, lambda folder: False).names("one", ["A"], "write")[1]) == {"one:A"}


def test_a_volume_that_could_not_be_told_is_asked_again(shop: Path) -> None:
    answers: list[bool | None] = [None, True, False]
    names = Naming(lambda: {"shop": str(shop)}, lambda folder: answers.pop(0))
    assert spelled(names.names("shop", ["A.py"], "write")[1]) == {"shop:A.py"}
    assert spelled(names.names("shop", ["A.py"], "write")[1]) == {"shop:a.py"}
    assert spelled(names.names("shop", ["A.py"], "write")[1]) == {"shop:a.py"}


def test_the_probe_of_a_volume(tmp_path: Path) -> None:
    assert is_case_blind(str(tmp_path / "missing")) is None
    (tmp_path / "123").mkdir()
    assert is_case_blind(str(tmp_path / "123")) is None  # no letters anywhere
    (tmp_path / "empty").mkdir()
    assert is_case_blind(str(tmp_path / "empty")) is False  # told by its own name
    (tmp_path / "empty" / "readme").write_text("x")
    assert is_case_blind(str(tmp_path / "empty")) is False
    os.link(tmp_path / "empty" / "readme", tmp_path / "empty" / "README")
    assert is_case_blind(str(tmp_path / "empty")) is False  # one file, yet two entries


def test_the_probe_of_a_volume_that_is_blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lstat = os.lstat
    (tmp_path / "readme").write_text("x")
    monkeypatch.setattr(os, "lstat", lambda full: lstat(tmp_path / os.path.basename(full).lower()))
    assert is_case_blind(str(tmp_path)) is True


def test_unicode_is_composed_and_a_decomposed_link_is_still_followed(shop: Path) -> None:
    composed, decomposed = "\u00fcber", "u\u0308ber"
    (shop / decomposed).symlink_to("src")
    got = naming(shop=shop).names("shop", [f"{decomposed}/a.py"], "write")
    assert got[0] == (f"{composed}/a.py",)
    assert spelled(got[1]) == {f"shop:{composed}/a.py", "shop:src/a.py"}
    assert got == naming(shop=shop).names("shop", [f"{composed}/a.py"], "write")


def test_a_link_to_a_name_that_is_not_unicode_can_be_kept(shop: Path) -> None:
    os.symlink(b"src/\xff.py", os.fsencode(shop / "odd"))
    assert msgspec.json.encode(named(shop, "odd"))


def test_a_folder_with_a_star_in_its_name_is_no_pattern_when_a_link_leads_there(shop: Path) -> None:
    (shop / "we*rd").mkdir()
    (shop / "link").symlink_to("we*rd")
    got = named(shop, "link/*.py")
    assert Name("shop", ("we*rd",), ("*.py",), "link/*.py") in got
    assert not collide(got, named(shop, "weird/a.py"))


def test_the_names_of_one_request_are_bounded(shop: Path) -> None:
    for number in range(39):
        (shop / f"l{number}").symlink_to(f"l{number + 1}")
    (shop / "l39").symlink_to("src")
    texts = [f"l0/{number}.py" for number in range(NAMES_MAX // 41 + 1)]
    error = refusal(lambda: named(shop, *texts))
    assert error.code == "invalid_request" and str(NAMES_MAX) in error.detail
    assert len(named(shop, *texts[:-1])) <= NAMES_MAX


# --- git


def test_switching_the_branch_collides_with_every_file_of_the_work_tree(shop: Path, tmp_path: Path) -> None:
    git(shop, "init", "-q")
    names = naming(shop=shop, src=shop / "src", other=tmp_path / "other", outer=tmp_path)
    (tmp_path / "other").mkdir()

    def ask(workspace: str, path: str, mode: Mode = "write") -> Names:
        return names.names(workspace, [path], mode)[1]

    assert names.names("shop", ["git:HEAD"], "write")[0] == ("git:HEAD",)
    for workspace in ("shop", "src"):  # asked from a folder within, it is the same work tree
        switch = ask(workspace, "git:HEAD")
        assert {name.shown for name in switch} == {"git:HEAD"}
        for there, path in (("shop", "x.py"), ("src", "a.py"), ("outer", "shop/x.py"), ("shop", "git:index")):
            assert collide(switch, ask(there, path)), (workspace, there, path)
        assert collide(switch, ask("src", "git:HEAD", "intent"))
        assert not collide(switch, ask("other", "x.py"))
        assert not collide(switch, ask("outer", "x.py"))
        assert not collide(switch, ask("other", "git:HEAD"))


def test_switching_the_branch_reaches_every_workspace_with_files_of_the_work_tree(
    shop: Path, tmp_path: Path
) -> None:
    git(shop, "init", "-q")
    for folder in ("docs", "nested"):
        (shop / folder).mkdir()
    git(shop / "nested", "init", "-q")
    names = naming(src=shop / "src", docs=shop / "docs", nested=shop / "nested", outer=tmp_path)
    switch = names.names("src", ["git:HEAD"], "write")[1]
    assert {text for text in spelled(switch) if not text.startswith("git:")} == {
        "src:**", "docs:**", "outer:shop/**",
    }  # fmt: skip


def test_keeping_the_branch_collides_only_with_switching_it(shop: Path) -> None:
    git(shop, "init", "-q")
    keep, index = named(shop, "git:HEAD", mode="intent"), named(shop, "git:index")
    assert len(keep) == 1 and len(index) == 1
    assert collide(keep, named(shop, "git:HEAD"))
    assert not collide(keep, named(shop, "src/a.py", "./"))
    assert not collide(keep, index) and collide(index, named(shop, "git:HEAD"))


def test_each_linked_work_tree_and_submodule_has_its_own_branch(shop: Path, tmp_path: Path) -> None:
    git(shop, "init", "-q")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "one")
    git(shop, "worktree", "add", "-q", str(tmp_path / "side"))
    git(tmp_path, "init", "-q", "parent")
    git(tmp_path / "parent", "submodule", "--quiet", "add", str(shop), "module")
    assert (tmp_path / "side" / ".git").is_file() and (tmp_path / "parent" / "module" / ".git").is_file()
    roots = {"shop": shop, "side": tmp_path / "side", "module": tmp_path / "parent" / "module"}
    names = naming(parent=tmp_path / "parent", **roots)
    heads = {name: names.names(name, ["git:HEAD"], "write")[1] for name in roots}
    for one in roots:
        for other in roots:
            assert collide(heads[one], heads[other]) == (one == other)
            assert collide(heads[one], names.names(other, ["src/a.py"], "write")[1]) == (one == other)
    assert not collide(heads["module"], names.names("parent", ["git:HEAD"], "intent")[1])
    space = heads["side"][0].space
    assert space.startswith("git:") and len(space) == 12
    again = naming(side=tmp_path / "side").names("side", ["git:index"], "write")[1]
    assert again[0].space == space


def test_without_git_there_is_a_branch_of_the_workspace(shop: Path) -> None:
    for workspace in ("shop", "default"):
        got = naming(shop=shop).names(workspace, ["git:HEAD"], "write")[1]
        assert spelled(got) == {f"git:{workspace}:HEAD", f"git:{workspace}:index", f"{workspace}:**"}


@pytest.mark.parametrize("content", ["", "gitdir: ../nowhere", "gitdir:", "gitdir: \0", "x" * 10_000])
def test_a_broken_git_file_is_no_repository(shop: Path, content: str) -> None:
    (shop / ".git").write_text(content)
    assert spelled(named(shop, "git:index")) == {"git:shop:index"}


def test_a_pipe_in_the_place_of_git_is_not_waited_for(shop: Path) -> None:
    os.mkfifo(shop / ".git")
    assert spelled(named(shop, "git:index")) == {"git:shop:index"}
