"""A browser's session, where a request has one: what it may, and from which pages."""

import pytest
from handlers import scope_of

from herdr.web.auth import COOKIE, Access, make_token
from herdr.web.problems import Refused

READER = make_token("reader", "reader-secret", ["events:follow"])
BOSS = make_token("boss", "boss-secret", ["admin"])
OWN = {"sec-fetch-site": "same-origin"}
HOST = {"host": "gate.example:8787"}


@pytest.fixture
def access() -> Access:
    return Access([READER, BOSS], None, {"reads": READER, "rules": BOSS}.get)


def cookie(value: str, *before: str) -> dict[str, str]:
    return {"cookie": "; ".join((*before, f"{COOKIE}={value}")), **HOST}


def test_it_has_the_rights_of_its_token(access: Access) -> None:
    caller = access.admit(scope_of("GET", cookie("reads", "a=b", f"x{COOKIE}=rules")), "events:follow")
    assert (caller.name, caller.scopes) == ("reader", frozenset({"events:follow"}))
    with pytest.raises(Refused) as refused:
        access.admit(scope_of("GET", cookie("reads")), "routes")
    assert refused.value.code == "missing_scope"
    assert access.admit(scope_of("POST", cookie("rules") | OWN), "routes").scopes is None


@pytest.mark.parametrize("headers", [{"authorization": "Bearer wrong"}, {"x-api-key": "wrong"}])
def test_it_does_not_save_a_wrong_token(access: Access, headers: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        access.admit(scope_of("GET", cookie("rules") | headers), "routes")
    assert "not one of auth.tokens" in refused.value.detail


def test_a_token_beside_it_is_who_asks(access: Access) -> None:
    headers = cookie("rules") | {"x-api-key": "reader-secret"}
    assert access.admit(scope_of("POST", headers), "events:follow").name == "reader"  # and needs no origin


@pytest.mark.parametrize("headers", [{"authorization": "Basic eA=="}, {"x-api-key": ""}])
def test_what_is_no_token_does_not_hide_it(access: Access, headers: dict[str, str]) -> None:
    """A proxy in front may ask for a password of its own."""
    assert access.admit(scope_of("GET", cookie("reads") | headers), "events:follow").name == "reader"


FROM_ITS_PAGE = [OWN, {"origin": "http://gate.example:8787"}, {"origin": "https://gate.example:8787"}]
FROM_ANOTHER = [
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "origin": "http://gate.example:8787"},
    {"origin": "http://gate.example:3000"},
    {"origin": "null"},
    {"origin": "http://gate.example:8787.evil.example"},
]
FROM_NO_PAGE: list[dict[str, str]] = [{}, {"sec-fetch-site": "none"}]


@pytest.mark.parametrize("headers", FROM_ITS_PAGE)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
def test_its_own_page_may(access: Access, method: str, headers: dict[str, str]) -> None:
    assert access.admit(scope_of(method, cookie("rules") | headers), "routes").name == "boss"
    socket = scope_of("GET", cookie("rules") | headers, type="websocket")
    assert access.admit(socket, "routes").name == "boss"


@pytest.mark.parametrize("headers", FROM_ANOTHER)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
def test_another_page_may_not_even_have_it_read(access: Access, method: str, headers: dict[str, str]) -> None:
    for type_ in ("http", "websocket"):
        with pytest.raises(Refused) as refused:
            access.admit(scope_of(method, cookie("rules") | headers, type=type_), "routes")
        assert refused.value.code == "foreign_origin"


@pytest.mark.parametrize("headers", FROM_NO_PAGE)
def test_a_typed_address_may_read_and_nothing_else(access: Access, headers: dict[str, str]) -> None:
    sent = cookie("rules") | headers
    assert access.admit(scope_of("GET", sent), "routes").name == "boss"
    for scope in (scope_of("POST", sent), scope_of("GET", sent, type="websocket")):
        with pytest.raises(Refused) as refused:
            access.admit(scope, "routes")
        assert refused.value.code == "foreign_origin"
