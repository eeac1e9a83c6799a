"""Browsers sign in by a link that works once, and stay signed in by a cookie.

The cookie is signed with the digest of the token whose rights it has: nothing is stored, it survives a restart of the
gateway, and it is worth nothing once the token is taken out of the configuration.
"""

import base64
import binascii
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from herdr import __version__
from herdr.clock import Clock, rfc3339
from herdr.web.asgi import Receive, Reply, Scope, read_body, respond, respond_json
from herdr.web.auth import COOKIE, Caller, Token
from herdr.web.bodies import read_body_as
from herdr.web.problems import Refused

LINK_S = 300  # a link goes from a terminal to a browser beside it, and might be seen on the way
SESSION_S = 12 * 3600  # a working day
LINKS_MAX = 100  # that wait to be opened; the oldest go
BODY_MAX = 4096  # bytes; a ticket has 43 characters
EXPECTED: Mapping[str, str] = MappingProxyType({"ticket": "the text behind #login= of the link"})
_SECOND = 1_000_000


class TicketBody(msgspec.Struct, forbid_unknown_fields=True):
    """What a link carries."""

    ticket: Annotated[str, Meta(min_length=1, max_length=200)]


def seal(token: Token, expires_s: int) -> str:
    """Return a cookie's value: the token's name, when it ends, and the seal over both."""
    name = base64.urlsafe_b64encode(token.name.encode()).decode().rstrip("=")
    return f"{name}.{expires_s}.{_seal(token, name, expires_s)}"


def _seal(token: Token, name: str, expires_s: int) -> str:
    return hmac.new(token.digest, f"{COOKIE} {name} {expires_s}".encode(), hashlib.sha256).hexdigest()


def opened(cookie: str, tokens: Iterable[Token], now_s: float) -> Token | None:
    """Return the token that a cookie stands for; None when it is none of ours, or has ended."""
    name, _, rest = cookie.partition(".")
    expires, _, sealed = rest.partition(".")
    if not (expires.isascii() and expires.isdigit() and len(expires) < 12) or int(expires) <= now_s:
        return None
    try:
        plain = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    token = next((token for token in tokens if token.name == plain), None)
    if token is None:
        return None
    is_ours = hmac.compare_digest(
        _seal(token, name, int(expires)).encode(), sealed.encode("utf-8", "replace")
    )
    return token if is_ours else None


class BrowserSessions:
    """Gives out links and cookies."""

    def __init__(self, tokens: Iterable[Token], clock: Clock, new_ticket: Callable[[], str]) -> None:
        self._tokens = {token.name: token for token in tokens}
        self._clock = clock
        self._new_ticket = new_ticket
        self._links: OrderedDict[str, tuple[Token, float]] = OrderedDict()

    def by_cookie(self, cookie: str) -> Token | None:
        """Return the token that a cookie stands for."""
        return opened(cookie, self._tokens.values(), self._clock.wall_us() / _SECOND) if cookie else None

    async def me(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Say who asks, and what that one may do."""
        scopes = None if caller.scopes is None else sorted(caller.scopes)
        about = {"name": caller.name, "scopes": scopes, "open": not self._tokens, "version": __version__}
        await respond_json(send, 200, about)

    async def link(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Give out a link that signs a browser in once, with the rights of who asks."""
        expires = rfc3339(self._clock.wall_us() + LINK_S * _SECOND)
        token = self._tokens.get(caller.name)
        if token is None:  # no tokens are in use: everybody is in
            await respond_json(send, 201, {"link": "/", "ticket": None, "expires": None})
            return
        ticket = self._new_ticket()
        self._links[ticket] = token, self._clock.monotonic() + LINK_S
        if len(self._links) > LINKS_MAX:
            self._links.popitem(last=False)
        await respond_json(send, 201, {"link": f"/#login={ticket}", "ticket": ticket, "expires": expires})

    async def sign_in(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Take a link's ticket, which is gone then, for a cookie."""
        body = read_body_as(TicketBody, await read_body(scope, receive, BODY_MAX), EXPECTED)
        token, until = self._links.pop(body.ticket, (None, 0.0))
        if token is None or self._clock.monotonic() > until:
            raise Refused(
                "unauthorized",
                "this link was used already, or is older than five minutes; `herdr open` prints a new one",
            )
        value = seal(token, int(self._clock.wall_us() / _SECOND) + SESSION_S)
        await respond(send, 204, b"", [(b"set-cookie", _cookie(scope, value, SESSION_S))])

    async def sign_out(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Have the browser forget its session."""
        await respond(send, 204, b"", [(b"set-cookie", _cookie(scope, "", 0))])


def _cookie(scope: Scope, value: str, age_s: int) -> bytes:
    secure = "; Secure" if scope.get("scheme") == "https" else ""  # else it would be lost over plain http
    return f"{COOKIE}={value}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}".encode()
