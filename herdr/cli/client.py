"""The commands' side of the gateway's HTTP API: one connection a request, and every failure in words.

On `http.client`, which loads in 20 ms; aiohttp takes 300 ms, and a command asks one thing at a time.
"""

import argparse
import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from herdr.cli.terminal import plain
from herdr.errors import HerdrError

URL_VARIABLE, TOKEN_VARIABLE = "HERDR_GATEWAY_URL", "HERDR_GATEWAY_TOKEN"
DEFAULT_URL = "http://127.0.0.1:8787"
TIMEOUT_S = 10.0  # for connecting, and for each silence; the gateway itself answers within milliseconds
ANSWER_MAX = 64 * 1024**2  # bytes; a full page of events is smaller, and something else may be listening
BLOCK_BYTES = 256 * 1024  # of a file that is sent
ERRORS_SHOWN_MAX = 5
JSON, NDJSON = "application/json", "application/x-ndjson"


class Answer(NamedTuple):
    """What came back: the status and the decoded body (None when it has none)."""

    status: int
    value: Any


def add_connection(parser: argparse.ArgumentParser, *, as_json: bool = True) -> None:
    """Add `--url`, `--token` and `--json`, as all commands that talk to a gateway have them."""
    parser.add_argument(
        "--url",
        type=gateway_url,
        default=os.environ.get(URL_VARIABLE) or DEFAULT_URL,
        help=f"the gateway (default: {URL_VARIABLE}, or {DEFAULT_URL})",
    )
    parser.add_argument(
        "--token",
        default=os.environ.get(TOKEN_VARIABLE),
        help=f"better set as {TOKEN_VARIABLE}, as command lines are visible to others",
    )
    if as_json:
        parser.add_argument("--json", action="store_true", help="print JSON, one value a line")


def gateway_url(text: str) -> str:
    """Return the address without its last slash; raises ArgumentTypeError when it is none."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not (text.isascii() and text.isprintable()) or " " in text:
        raise argparse.ArgumentTypeError(
            f"{plain(text)[:200]!r} is not an address such as {DEFAULT_URL} (it comes from --url or "
            f"{URL_VARIABLE})"
        )
    return text.rstrip("/")


def part_of(name: str) -> str:
    """Return a name as one part of an address."""
    return quote(name, safe="", errors="surrogateescape")


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return an address with parameters: None is left out, a list gives its name several times."""
    pairs = [
        (n, v) for n, vs in query.items() for v in (vs if isinstance(vs, list) else [vs]) if v is not None
    ]
    return f"{path}?{urlencode(pairs, errors='surrogateescape')}" if pairs else path


def gateway_of(args: argparse.Namespace, timeout_s: float = TIMEOUT_S) -> "Gateway":
    """Return the gateway that a command line names."""
    return Gateway(args.url, args.token, timeout_s)


class Gateway:
    """A gateway at an address; every method raises HerdrError when it cannot be reached or refuses."""

    def __init__(self, url: str, token: str | None, timeout_s: float = TIMEOUT_S) -> None:
        self.url = url
        self._parts = urlsplit(url)
        self._token = (token or "").strip()
        self._timeout_s = timeout_s
        if not (self._token.isascii() and self._token.isprintable()):
            raise HerdrError(
                f"the token ({TOKEN_VARIABLE} or --token) holds characters no token has", "usage"
            )

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Ask for one thing and return the decoded answer; raises HerdrError unless it is a success."""
        raw = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        answer = self.ask(method, path, raw)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise self.problem(answer)
        return answer.value

    def read(self, path: str, query: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Ask for something that is told as an object; `query` as `with_query` takes it."""
        return self.object(self.call("GET", with_query(path, query or {})))

    def object(self, value: Any) -> dict[str, Any]:
        """Return an answer that has to be an object; raises HerdrError when it is something else."""
        if not isinstance(value, dict):
            raise self.stranger(HTTPStatus.OK)
        return value

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = JSON) -> Answer:
        """Ask for one thing and return the decoded answer, whatever its status."""
        return self._whole(*self.open(method, path, body, {"content-type": kind} if body else {}))

    def send(self, method: str, path: str, body: bytes | BinaryIO, size: int, kind: str) -> Any:
        """Send content of a known size and return the decoded answer; raises HerdrError unless it is a success."""
        answer = self._whole(
            *self.open(method, path, body, {"content-type": kind, "content-length": str(size)})
        )
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise self.problem(answer)
        return answer.value

    def chunks(self, path: str) -> Iterator[bytes]:
        """Yield what is at an address, in blocks; raises HerdrError when it is refused or breaks off."""
        connection, response = self.open("GET", path, headers={"accept": "*/*"})
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise self.problem(self._whole(connection, response))
        try:
            while block := response.read(BLOCK_BYTES):
                yield block
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error, sent=True) from None
        finally:
            connection.close()

    def _whole(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> Answer:
        try:
            raw = response.read(ANSWER_MAX)
            if response.length:
                raise http.client.IncompleteRead(raw, response.length)
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error, sent=True) from None
        finally:
            connection.close()
        try:
            return Answer(response.status, json.loads(raw) if raw else None)
        except ValueError:
            raise self.stranger(response.status) from None

    def open(
        self,
        method: str,
        path: str,
        body: bytes | BinaryIO | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request and return the connection, to be closed, and the answer, to be read.

        A file as the body needs a `content-length`.
        """
        headers = {"accept": JSON, "connection": "close", **(headers or {})}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        connection = self._connect()
        sent = False
        try:
            connection.connect()
            sent = True
            with suppress(BrokenPipeError, ConnectionResetError):  # refused for its size before all was sent
                connection.request(method, self._parts.path + path, body, headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.unreachable(error, sent=sent) from None

    def _connect(self) -> http.client.HTTPConnection:
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(
            self._parts.hostname or "", self._parts.port, timeout=self._timeout_s, blocksize=BLOCK_BYTES
        )

    def problem(self, answer: Answer) -> HerdrError:
        """Return the error that an answer tells of."""
        body = answer.value
        if not isinstance(body, dict) or not isinstance(body.get("code"), str):
            return self.stranger(answer.status)
        lines = [str(body.get("detail") or body.get("title") or body["code"])]
        errors = body.get("errors") or []
        if len(errors) > 1:
            lines += [f"  {e.get('field')}: {e.get('message')}" for e in errors[:ERRORS_SHOWN_MAX]]
        return HerdrError("\n".join(map(plain, lines)), body["code"])

    def stranger(self, status: int) -> HerdrError:
        """Return the error for an answer that no gateway gives."""
        return HerdrError(
            f"what answers at {self.url} (HTTP {status}) is not a Herdr gateway: set {URL_VARIABLE} or --url "
            "to where the gateway is",
            "unreachable",
        )

    def unreachable(self, error: Exception, *, sent: bool = False) -> HerdrError:
        """Return the error for a gateway that does not answer, and what to do about it."""
        if isinstance(error, ConnectionRefusedError):
            text = (
                f"nothing listens at {self.url}: start the gateway with `herdr serve`, or set {URL_VARIABLE}"
            )
        elif isinstance(error, socket.gaierror):
            text = f"there is no host {self._parts.hostname}: correct {URL_VARIABLE} or --url"
        elif isinstance(error, ssl.SSLError):
            text = f"{self.url} cannot be trusted or does not speak TLS ({error.reason}): try http://"
        elif isinstance(error, TimeoutError):
            text = (
                f"the gateway at {self.url} does not answer within {self._timeout_s:g} s: is it overloaded?"
            )
        else:
            why = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
            text = f"no answer from {self.url} ({why}): does a gateway run there?"
        return Unreachable(text, sent)


class Unreachable(HerdrError):
    """The gateway does not answer. `sent`: the request had gone out, so it may have been carried out."""

    code = "unreachable"

    def __init__(self, detail: str, sent: bool) -> None:
        super().__init__(detail)
        self.sent = sent
