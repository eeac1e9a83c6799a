"""Against web pages that reach for a local gateway: one known Host header, no foreign Origin, no foreign site.

A page cannot forge any of them. Without the first, DNS rebinding makes a foreign page same-origin with the
gateway; without the second, a form post from any page is a publish; and an image or a link of any page is a
GET without Origin, of which `Sec-Fetch-Site` (W3C Fetch Metadata) tells: a follow as a target changes state.
"""

import re
from collections.abc import Iterable

from herdr.web.asgi import Scope
from herdr.web.problems import Refused

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:@/\[\]\s]+)(?::[0-9]{0,5})?")


class Guard:
    """Checks these headers of every request, WebSocket handshakes included."""

    def __init__(self, allowed_hosts: Iterable[str]) -> None:
        self._hosts = frozenset(host.lower().strip("[]") for host in allowed_hosts)

    def check(self, scope: Scope) -> None:
        """Raise Refused when the request does not come from where it may."""
        hosts = []
        origin = site = None
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
        if len(hosts) != 1 or not self._is_known(hosts[0]):
            shown = b", ".join(hosts).decode("ascii", "replace") or "none"
            raise Refused(
                "foreign_host",
                f"the Host header ({shown[:200]}) is not one that this gateway answers to; add the name to "
                "server.allowed_hosts (HERDR_GATEWAY_SERVER__ALLOWED_HOSTS)",
            )
        if origin is not None and not self._is_own(origin):
            raise Refused(
                "foreign_origin",
                f"pages of {origin.decode('ascii', 'replace')[:200]} may not use this gateway; add the host to "
                "server.allowed_hosts if it is yours",
            )
        if origin is None and site == b"cross-site":
            raise Refused(
                "foreign_origin",
                "a page or a link of another site asks for this; open the address by itself, or ask with an "
                "Origin whose host is in server.allowed_hosts",
            )

    def _is_known(self, host: bytes) -> bool:
        return _without_port(host.decode("latin-1")) in self._hosts

    def _is_own(self, origin: bytes) -> bool:
        scheme, _, host = origin.decode("latin-1").partition("://")
        return scheme in ("http", "https") and _without_port(host) in self._hosts


def _without_port(host: str) -> str:
    """Return the host in lower case without brackets, or "" where the text is not just a host and perhaps a port."""
    found = _HOST.fullmatch(host)
    return found[1].lower().strip("[]") if found else ""
