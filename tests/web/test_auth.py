import contextlib
import hmac

import pytest

from herdr.web import auth
from herdr.web.asgi import Scope
from herdr.web.auth import ANYONE, LOOPBACK, Access, make_token
from herdr.web.problems import Refused, headers_of, status_of

TOKENS = [
    make_token("ci", "ci-secret", ["events:publish"]),
    make_token("laptop", "geheim-ü", ["events:publish", "events:follow"]),
    make_token("root", "root-secret", ["admin"]),
]


def scope(*headers: tuple[str, str], client: tuple[str, int] | None = ("127.0.0.1", 1)) -> Scope:
    return {"headers": [(name.encode(), value.encode()) for name, value in headers], "client": client}


def refused(access: Access, asked: Scope, needed: str = "events:publish") -> Refused:
    with pytest.raises(Refused) as error:
        access.admit(asked, needed)
    return error.value


@pytest.mark.parametrize(
    "header",
    [
        ("authorization", "Bearer ci-secret"),
        ("authorization", "bearer ci-secret"),
        ("authorization", "BEARER   ci-secret "),
        ("x-api-key", "ci-secret"),
    ],
)
def test_a_token_is_taken_in_either_header(header: tuple[str, str]) -> None:
    caller = Access(TOKENS).admit(scope(header), "events:publish")
    assert caller.name == "ci"
    assert caller.may("events:publish")
    assert not caller.may("events:p0")


def test_a_token_may_hold_more_than_ascii() -> None:
    caller = Access(TOKENS).admit(scope(("x-api-key", "geheim-ü")), "events:follow")
    assert caller.name == "laptop"


def test_admin_may_everything() -> None:
    caller = Access(TOKENS).admit(scope(("x-api-key", "root-secret")), "anything")
    assert caller.may("routes")
    assert caller.name == "root"


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ([], "asks for a token"),
        ([("authorization", "")], "asks for a token"),
        ([("authorization", "Bearer")], "asks for a token"),
        ([("authorization", "Bearer ")], "asks for a token"),
        ([("authorization", "Basic ci-secret")], "asks for a token"),
        ([("authorization", "ci-secret")], "asks for a token"),
        ([("x-api-key", "")], "asks for a token"),
        ([("authorization", "Bearer wrong")], "not one of auth.tokens"),
        ([("authorization", "Bearer ci-secre")], "not one of auth.tokens"),
        ([("x-api-key", "ci-secretx")], "not one of auth.tokens"),
        ([("authorization", "Bearer wrong"), ("x-api-key", "ci-secret")], "not one of auth.tokens"),
    ],
)
def test_without_a_good_token_the_answer_is_401(headers: list[tuple[str, str]], says: str) -> None:
    error = refused(Access(TOKENS), scope(*headers))
    assert (error.code, status_of(error)) == ("unauthorized", 401)
    assert says in error.detail
    assert any(
        name == b"www-authenticate" and value.startswith(b"Bearer") for name, value in headers_of(error)
    )


def test_bytes_that_are_no_utf_8_are_a_wrong_token() -> None:
    asked: Scope = {"headers": [(b"authorization", b"Bearer \xff\xfe")], "client": None}
    assert refused(Access(TOKENS), asked).code == "unauthorized"


def test_a_token_configured_empty_lets_nobody_in() -> None:
    access = Access([make_token("mistake", "", ["admin"])])
    for headers in ([], [("authorization", "Bearer ")], [("authorization", "Basic x")], [("x-api-key", "")]):
        assert refused(access, scope(*headers)).code == "unauthorized"


def test_a_token_without_the_scope_is_told_which_one() -> None:
    error = refused(Access(TOKENS), scope(("x-api-key", "ci-secret")), "routes")
    assert (error.code, status_of(error)) == ("missing_scope", 403)
    assert "'ci'" in error.detail
    assert "'routes'" in error.detail
    assert "ci-secret" not in error.detail


def test_a_public_route_asks_for_nothing() -> None:
    assert Access(TOKENS).admit(scope(("x-api-key", "wrong")), None) is ANYONE


def test_without_tokens_everybody_may_do_everything() -> None:
    access = Access([])
    assert access.open
    caller = access.admit(scope(client=("203.0.113.5", 1)), "admin")
    assert caller is ANYONE
    assert caller.may("events:p0")


@pytest.mark.parametrize(
    ("client", "admitted"),
    [
        (("127.0.0.1", 5), True),
        (("::1", 5), True),
        (("::ffff:127.0.0.1", 5), True),
        (("172.17.0.1", 5), True),
        (("172.17.0.2", 5), False),
        (("127.0.0.1.evil", 5), False),
        (None, False),
    ],
)
def test_without_tokens_the_peers_may_be_limited(client: tuple[str, int] | None, admitted: bool) -> None:
    access = Access([], LOOPBACK | {"172.17.0.1"})
    if admitted:
        assert access.admit(scope(client=client), "events:publish") is ANYONE
    else:
        error = refused(access, scope(client=client))
        assert error.code == "unauthorized"
        assert "auth.tokens" in error.detail


def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append(len(a) + len(b))
        return compare_digest(a, b)

    compare_digest = hmac.compare_digest
    monkeypatch.setattr(auth.hmac, "compare_digest", compare)
    access = Access(TOKENS)
    for secret in ("ci-secret", "root-secret", "wrong", "a much longer token than any of the others"):
        compared.clear()
        with contextlib.suppress(Refused):
            access.admit(scope(("x-api-key", secret)), "events:publish")
        assert compared == [64, 64, 64]
