"""Who may do what: one function for all ways to present a token, and all routes."""

import hashlib
import hmac
from collections.abc import Callable, Iterable
from typing import NamedTuple

from herdr.web.asgi import Scope, header
from herdr.web.problems import Refused

SIGNED_IN = "any"
"""The scope of endpoints that any token may use: what each may do there is asked call by call."""

COOKIE = "herdr_session"
"""The name of a browser's session."""

LOOPBACK = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})


class Caller(NamedTuple):
    """Who asks. Without tokens everybody may do everything, under the name of nobody."""

    name: str
    scopes: frozenset[str] | None
    """None: no tokens are in use, or this one is `admin`."""

    def may(self, scope: str) -> bool:
        """Tell whether the caller holds a scope."""
        return self.scopes is None or scope == SIGNED_IN or scope in self.scopes


class Token(NamedTuple):
    """A configured token: only its digest is kept."""

    name: str
    digest: bytes
    scopes: frozenset[str]


ANYONE = Caller("anonymous", None)


def make_token(name: str, secret: str, scopes: Iterable[str]) -> Token:
    """Return the kept form of a configured token."""
    return Token(name, hashlib.sha256(secret.encode()).digest(), frozenset(scopes))


class Access:
    """Identifies callers. `peers_allowed` limits who is answered while there are no tokens (None: everyone)."""

    def __init__(
        self,
        tokens: Iterable[Token],
        peers_allowed: frozenset[str] | None = None,
        by_cookie: Callable[[str], Token | None] = lambda cookie: None,
    ) -> None:
        """`by_cookie`: the token that a browser's session stands for, or None."""
        self._tokens = tuple(tokens)
        self._peers_allowed = peers_allowed
        self._by_cookie = by_cookie

    @property
    def open(self) -> bool:
        """Whether requests are answered without a token."""
        return not self._tokens

    def admit(self, scope: Scope, needed: str | None) -> Caller:
        """Return the caller, or raise Refused. `needed` is the matched route's scope; None: public."""
        if needed is None:
            return ANYONE
        if self.open:
            return self._admit_peer(scope)
        caller = self._identify(scope)
        if not caller.may(needed):
            raise Refused(
                "missing_scope",
                f"the token {caller.name!r} lacks the scope {needed!r}; add it under auth.tokens",
            )
        return caller

    def _admit_peer(self, scope: Scope) -> Caller:
        client = scope.get("client")
        if self._peers_allowed is None or (client is not None and client[0] in self._peers_allowed):
            return ANYONE
        raise Refused(
            "unauthorized",
            "without tokens this container answers only its own host; configure auth.tokens, or write "
            "auth.open: true (HERDR_GATEWAY_AUTH__OPEN=true) to answer everyone",
            {"www-authenticate": "Bearer"},
        )

    def _identify(self, scope: Scope) -> Caller:
        presented = _presented(scope)
        if presented is None and (found := self._by_cookie(_cookie(scope))) is not None:
            _check_same_origin(scope)
            return _caller(found)
        if presented is None:
            raise Refused(
                "unauthorized",
                "this gateway asks for a token: send Authorization: Bearer <token> (the SDK and the CLI take it "
                "from HERDR_GATEWAY_TOKEN)",
                {"www-authenticate": "Bearer"},
            )
        digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).digest()
        found = None
        for token in self._tokens:  # all of them, always: the time taken tells nothing
            if hmac.compare_digest(token.digest, digest):
                found = token
        if found is None:
            raise Refused(
                "unauthorized",
                "the token is not one of auth.tokens; check HERDR_GATEWAY_TOKEN",
                {"www-authenticate": 'Bearer error="invalid_token"'},
            )
        return _caller(found)


def _caller(token: Token) -> Caller:
    return Caller(token.name, None if "admin" in token.scopes else token.scopes)


def _cookie(scope: Scope) -> str:
    """Return the value of the browser's session; empty without one."""
    for part in (header(scope, b"cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _check_same_origin(scope: Scope) -> None:
    """Raise Refused when a page that is not the gateway's own would use the browser's session.

    Cookies do not tell ports apart: another program's page on this machine has them sent along. It cannot read
    answers, but it can have them made: streams would be used up. A person who types an address is no page.
    """
    site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    host = header(scope, b"host")
    if site == "same-origin" or (site is None and origin in (f"http://{host}", f"https://{host}")):
        return
    is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
    if is_read and (site == "none" or (site is None and origin is None)):
        return
    raise Refused("foreign_origin", "only the dashboard's own pages may do this with a browser's session")


def _presented(scope: Scope) -> str | None:
    """Return the token that came along; an empty one, or another kind of credential, is none."""
    authorization = header(scope, b"authorization")
    if authorization is None:
        return header(scope, b"x-api-key") or None
    kind, _, value = authorization.partition(" ")
    return (value.strip() or None) if kind.lower() == "bearer" else None
