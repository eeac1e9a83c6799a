"""The dashboard's files: read once, compressed once, and served under a strict content security policy."""

import gzip
import mimetypes
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from herdr.web.asgi import Headers, Receive, Reply, Scope, header
from herdr.web.auth import Caller
from herdr.web.etag import is_known
from herdr.web.problems import Refused

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
SECURITY: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
COMPRESSED = (".html", ".js", ".css", ".svg", ".md", ".txt", "LICENSE")
SHOWN = (".html", ".js", ".css", ".svg", ".png", ".md", ".txt", "LICENSE")


class Form(NamedTuple):
    """A file as it is, or compressed, ready to send."""

    body: bytes
    headers: Headers
    tag: str


class StaticFile(NamedTuple):
    """One file in its forms."""

    plain: Form
    compressed: Form | None


def load(package: str = "herdr.web", folder: str = "dashboard") -> Mapping[str, StaticFile]:
    """Read all files of a folder of a package, by their path in it."""
    return {path: _file(path, place.read_bytes()) for path, place in _walk(files(package) / folder, "")}


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for place in sorted(folder.iterdir(), key=lambda place: place.name):
        if place.is_dir():
            yield from _walk(place, f"{prefix}{place.name}/")
        elif place.name.endswith(SHOWN):
            yield f"{prefix}{place.name}", place


def _file(path: str, body: bytes) -> StaticFile:
    kind = mimetypes.guess_type(path)[0] or "text/plain"
    kind = "text/javascript" if path.endswith(".js") else kind
    text = kind.startswith("text/") or kind.endswith("svg+xml")
    headers: Headers = [
        (b"content-type", f"{kind}; charset=utf-8".encode() if text else kind.encode()),
        (b"cache-control", b"no-cache"),  # asked each time, answered 304: an upgrade shows at once
        (b"vary", b"accept, accept-encoding"),  # at / others than browsers get JSON
        *SECURITY,
    ]
    if not path.endswith(COMPRESSED):
        return StaticFile(_form(body, headers), None)
    small = _form(gzip.compress(body, 9, mtime=0), [*headers, (b"content-encoding", b"gzip")])
    return StaticFile(_form(body, headers), small)


def _form(body: bytes, headers: Headers) -> Form:
    """Return a form with its tag, a strong one: the other form's bytes are others, so they have another."""
    tag = sha256(body).hexdigest()[:32]
    return Form(body, [*headers, (b"etag", b'"%s"' % tag.encode())], tag)


class StaticFiles:
    """Serves them by name: what is not in the table is not there, so no path can lead out."""

    def __init__(self, known: Mapping[str, StaticFile]) -> None:
        self._files = known

    async def get(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with one file."""
        await self.send(scope, send, scope["path_params"]["file"])

    async def send(self, scope: Scope, send: Reply, name: str) -> None:
        """Send a file by its name; raises Refused when there is none."""
        found = self._files.get(name)
        if found is None:
            policy = {name.decode(): value.decode() for name, value in SECURITY}
            raise Refused("not_found", f"the dashboard has no file {name[:100]!r}", policy)
        form = found.compressed if found.compressed is not None and _takes_gzip(scope) else found.plain
        if is_known(scope, form.tag):
            await send.whole(304, b"", form.headers)
        else:
            await send.whole(200, form.body, form.headers)


def _takes_gzip(scope: Scope) -> bool:
    """Tell whether the client reads gzip (RFC 9110, section 12.5.3); what only `*` would allow goes out plain."""
    for part in (header(scope, b"accept-encoding") or "").lower().split(","):
        name, _, weight = part.replace(" ", "").partition(";q=")
        if name in ("gzip", "x-gzip"):
            return not (weight and not weight.strip("0."))
    return False
