import pytest

from herdr.web.asgi import Scope
from herdr.web.guard import Guard
from herdr.web.problems import Refused, status_of

GUARD = Guard(["localhost", "127.0.0.1", "[::1]", "Box.Example"])


def scope(*headers: tuple[bytes, bytes]) -> Scope:
    return {"headers": list(headers)}


def code_of(guard: Guard, *headers: tuple[bytes, bytes]) -> str | None:
    try:
        guard.check(scope(*headers))
    except Refused as error:
        return error.code
    return None


@pytest.mark.parametrize(
    "host",
    [
        b"localhost",
        b"localhost:8787",
        b"LocalHost:1",
        b"127.0.0.1:8787",
        b"[::1]",
        b"[::1]:8787",
        b"box.example:80",
        b"localhost:",
    ],
)
def test_a_known_host_passes(host: bytes) -> None:
    assert code_of(GUARD, (b"host", host)) is None


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b"evil.example",
        b"evil.localhost",
        b"localhost.evil.example",
        b"localhost.",
        b"localhost:80:80",
        b"localhost:80@evil.example",
        b"localhost:evil",
        b"localhost, evil.example",
        b"user@localhost",
        b"127.0.0.1.evil.example",
        b"127.0.0.2",
        b"0.0.0.0:8787",
        b"::1",
        b"[::1",
        b"[::1]evil.example",
        b"[::2]:8787",
        b"[::ffff:127.0.0.1]",
        b"\xff\xfe",
        b"*",
        b"127.1",
    ],
)
def test_any_other_host_is_refused_and_told_the_setting(host: bytes) -> None:
    with pytest.raises(Refused, match=r"server\.allowed_hosts") as error:
        GUARD.check(scope((b"host", host)))
    assert (error.value.code, status_of(error.value)) == ("foreign_host", 421)


def test_exactly_one_host_header_is_needed() -> None:
    assert code_of(GUARD) == "foreign_host"
    assert code_of(GUARD, (b"host", b"localhost"), (b"host", b"localhost")) == "foreign_host"
    assert code_of(GUARD, (b"host", b"localhost"), (b"host", b"evil.example")) == "foreign_host"


@pytest.mark.parametrize(
    "origin",
    [b"http://localhost:3000", b"https://localhost", b"http://[::1]:8787", b"http://BOX.example"],
)
def test_an_own_origin_passes(origin: bytes) -> None:
    assert code_of(GUARD, (b"host", b"localhost"), (b"origin", origin)) is None


@pytest.mark.parametrize(
    "origin",
    [
        b"null",
        b"",
        b"http://evil.example",
        b"http://evil.localhost",
        b"http://localhost.evil.example",
        b"http://localhost:80@evil.example",
        b"http://localhost/evil.example",
        b"file://localhost",
        b"chrome-extension://localhost",
        b"localhost",
        b"http://",
        b"\xff",
    ],
)
def test_a_foreign_origin_is_refused_and_told_the_setting(origin: bytes) -> None:
    with pytest.raises(Refused, match=r"server\.allowed_hosts") as error:
        GUARD.check(scope((b"host", b"localhost"), (b"origin", origin)))
    assert (error.value.code, status_of(error.value)) == ("foreign_origin", 403)


@pytest.mark.parametrize("site", [b"same-origin", b"same-site", b"none"])
def test_own_pages_and_typed_addresses_pass(site: bytes) -> None:
    assert code_of(GUARD, (b"host", b"localhost"), (b"sec-fetch-site", site)) is None


def test_a_get_that_another_site_caused_is_refused() -> None:
    """`<img src="http://localhost:8787/v1/events?as=x">` on any page: no Origin, but this."""
    with pytest.raises(Refused) as error:
        GUARD.check(scope((b"host", b"localhost"), (b"sec-fetch-site", b"cross-site")))
    assert (error.value.code, status_of(error.value)) == ("foreign_origin", 403)


def test_a_page_of_an_allowed_host_may_be_of_another_site() -> None:
    site, own = (b"sec-fetch-site", b"cross-site"), (b"origin", b"http://box.example")
    assert code_of(GUARD, (b"host", b"localhost"), site, own) is None
    assert code_of(GUARD, (b"host", b"localhost"), site, (b"origin", b"http://evil")) == "foreign_origin"
