import gzip
import sys
import zipfile
from pathlib import Path

import pytest
from handlers import Given, ask, scope_of

from herdr.web.problems import Refused
from herdr.web.static_files import SECURITY, StaticFiles, load

PACKAGE = Path(__file__).parent.parent.parent / "herdr" / "web" / "dashboard"


@pytest.fixture(scope="module")
def files() -> StaticFiles:
    return StaticFiles(load())


async def get(files: StaticFiles, name: str, method: str = "GET", **headers: str) -> Given:
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    return await ask(files.get, scope_of(method, sent, path_params={"file": name}))


async def test_every_file_is_served_as_it_lies_there(files: StaticFiles) -> None:
    there = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(there) > 20
    for path in there:
        name = path.relative_to(PACKAGE).as_posix()
        plain, small = await get(files, name), await get(files, name, accept_encoding="br, GZIP;q=0.5")
        assert plain.body == path.read_bytes() and "content-encoding" not in plain.headers
        assert small.headers["content-encoding"] == "gzip" and gzip.decompress(small.body) == plain.body
        assert plain.headers["etag"] != small.headers["etag"]  # other bytes, another strong tag
        for answer in (plain, small):
            assert answer.headers["cache-control"] == "no-cache"
            assert answer.headers["vary"] == "accept, accept-encoding"
            for header, value in SECURITY:
                assert answer.headers[header.decode()] == value.decode()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("app.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml; charset=utf-8"),
        ("vendor/htm.LICENSE", "text/plain; charset=utf-8"),
    ],
)
async def test_its_kind_is_said(files: StaticFiles, name: str, kind: str) -> None:
    assert (await get(files, name)).headers["content-type"] == kind


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "gzip; q=0.000", "*", "br", "notgzip"])
async def test_who_does_not_ask_for_gzip_gets_none(files: StaticFiles, accepted: str) -> None:
    assert "content-encoding" not in (await get(files, "app.js", accept_encoding=accepted)).headers


async def test_what_is_known_is_not_sent_again(files: StaticFiles) -> None:
    plain, small = await get(files, "app.js"), await get(files, "app.js", accept_encoding="gzip")
    tag, small_tag = plain.headers["etag"], small.headers["etag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        answer = await get(files, "app.js", if_none_match=known)
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["etag"] == tag and "content-security-policy" in answer.headers
    assert (await get(files, "app.js", if_none_match=small_tag, accept_encoding="gzip")).status == 304
    for unknown in (small_tag, '"other"'):
        assert (await get(files, "app.js", if_none_match=unknown)).status == 200


async def test_a_start_compresses_to_the_same_bytes_as_the_one_before(files: StaticFiles) -> None:
    again = await get(StaticFiles(load()), "app.js", accept_encoding="gzip")
    assert again.headers["etag"] == (await get(files, "app.js", accept_encoding="gzip")).headers["etag"]
    assert again.body[4:8] == bytes(4)  # no time in it


OUTSIDE = ["..", "../surface.py", "views/../app.js", "/app.js", "//etc/passwd", "..\\surface.py", "./app.js"]
NOTHING = ["", ".", "views", "views/", "app.js/", "APP.JS", "app.js\0", "x" * 5000]


@pytest.mark.parametrize("name", [*OUTSIDE, *NOTHING])
async def test_what_is_not_in_the_table_is_not_there(files: StaticFiles, name: str) -> None:
    with pytest.raises(Refused) as refused:
        await get(files, name)
    assert refused.value.code == "not_found" and len(refused.value.detail) < 300
    assert (
        refused.value.headers["content-security-policy"] and refused.value.headers["x-content-type-options"]
    )


async def test_files_are_found_in_a_package_that_is_a_zip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("packed_pages/__init__.py", "")
        packed.writestr("packed_pages/pages/a.js", "1")
        packed.writestr("packed_pages/pages/deep/b.css", "2")
        packed.writestr("packed_pages/pages/deep/secret.py", "3")
        packed.writestr("packed_pages/pages/.hidden", "4")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    try:
        assert sorted(load("packed_pages", "pages")) == ["a.js", "deep/b.css"]
    finally:
        sys.modules.pop("packed_pages", None)
