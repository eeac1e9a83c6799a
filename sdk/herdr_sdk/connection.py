"""One WebSocket to the gateway: kept up, read all the time, shared by everything that has a `ref`.

What uses it (publishing, follows, locks) claims a ref with a handler for the frames that come back,
and listens for `opened` and `lost` to send again what the old socket left open. The connection knows
nothing of what the frames mean, except `bye`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec

from herdr_sdk.backoff import CALM_S, Backoff
from herdr_sdk.errors import ConnectionFailed, HerdrError, Unauthorized
from herdr_sdk.frames import SUBPROTOCOL, Answer, Bye, decode_frame

Handler = Callable[[Answer, int], None]
"""Called with each frame for a ref and the frame's size in characters; must not block or raise."""

HANDSHAKE_S = 10.0
HEARTBEAT_S = 15.0  # a WebSocket ping after that much silence; no answer in half of it means lost
CLOSE_S = 2.0  # how long to wait for the gateway's side of a close
BYE_S = 5.0  # the gateway stops within 5 s of `bye`; after that we leave by ourselves
FRAME_BYTES_MAX = 32 * 1024 * 1024  # a page of events is a few MiB at most; more is no gateway of ours

_log = logging.getLogger("herdr_sdk")


class Listener(Protocol):
    """Something that lives longer than one socket."""

    def opened(self) -> None:
        """Take note of a new socket; nothing of the old one is known to the gateway."""

    def lost(self, close_code: int | None) -> None:
        """Take note that the socket is gone; another will be tried."""

    def failed(self, error: HerdrError) -> None:
        """Give up: no other socket will come."""


class Connection:
    """Connects, reconnects with jitter, sends what is posted or pulled, hands answers to their owners."""

    def __init__(self, url: str, token: str | None, backoff: Backoff | None = None) -> None:
        self.url = url
        _endpoint(url)  # a wrong address is said at once, not with the first try
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._backoff = backoff or Backoff()
        self._refs = count(1)
        self._handlers: dict[int, Handler] = {}
        self._listeners: list[Listener] = []
        self._sources: list[Callable[[], bytes | None]] = []
        self._control: deque[bytes] = deque()
        self._work = asyncio.Event()
        self._connected = asyncio.Event()
        self._bye_s: float | None = None
        self._last_error = "no answer yet"
        self.failure: HerdrError | None = None
        """Why there will be no socket any more, None while there may be."""
        self._task: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        """True while a socket is open."""
        return self._connected.is_set()

    # --- for what uses the connection -------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Tell the listener of new and lost sockets from now on; of the present one too."""
        self._listeners.append(listener)
        if self.up:
            listener.opened()

    def unlisten(self, listener: Listener) -> None:
        """Stop telling the listener."""
        with suppress(ValueError):
            self._listeners.remove(listener)

    def claim(self, handler: Handler) -> int:
        """Return a new ref whose answers go to the handler."""
        ref = next(self._refs)
        self._handlers[ref] = handler
        return ref

    def release(self, ref: int) -> None:
        """Ignore what still comes for the ref."""
        self._handlers.pop(ref, None)

    def post(self, frame: bytes) -> None:
        """Send a frame on the present socket, before anything pulled; without a socket it is dropped.

        For what is sent again on `opened` anyway, so nothing piles up here while there is no socket.
        """
        if self.up:
            self._control.append(frame)
            self._work.set()

    def pull_from(self, source: Callable[[], bytes | None]) -> None:
        """Ask the source for a frame whenever the socket can take one; earlier sources come first."""
        self._sources.append(source)

    def wake(self) -> None:
        """Say that a source has something again."""
        self._work.set()

    # --- life -------------------------------------------------------------------------------------

    async def open(self, timeout_s: float) -> None:
        """Connect; raises ConnectionFailed when that did not work in time, Unauthorized when refused."""
        if self.failure is not None:
            raise self.failure
        self._task = asyncio.create_task(self._run(), name=f"herdr {self.url}")
        self._task.add_done_callback(self._ended)
        waiter = asyncio.create_task(self._connected.wait())
        try:
            await asyncio.wait((waiter, self._task), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if self.failure is not None:
            raise self.failure
        if not self.up:
            await self.close()
            raise ConnectionFailed(
                f"No Herdr gateway answers at {self.url} ({self._last_error}). "
                "Start one with 'herdr serve', or set HERDR_GATEWAY_URL."
            )

    async def close(self) -> None:
        """Close for good; whatever still waits is told so. Safe to call twice."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._fail(ConnectionFailed("The hub is closed. Open a new one to go on."))

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(HerdrError(f"The SDK's connection broke: {error!r}. Please report this."))

    def _fail(self, error: HerdrError) -> None:
        if self.failure is None:
            self.failure = error
            for listener in list(self._listeners):
                listener.failed(error)

    async def _run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=HANDSHAKE_S)
        async with aiohttp.ClientSession(timeout=timeout, headers=self._headers) as session:
            tried = False
            while True:
                try:
                    socket = await _handshake(session, self.url)
                    tried = True
                    await self._use(socket)
                except HerdrError as error:
                    if not tried or isinstance(error, Unauthorized):
                        self._fail(error)
                        return
                    self._last_error = error.detail
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    self._last_error = str(error) or type(error).__name__
                await asyncio.sleep(self._wait_s())

    def _wait_s(self) -> float:
        asked_s, self._bye_s = self._bye_s, None
        wait_s = self._backoff.next_s() if asked_s is None else self._backoff.after_s(asked_s)
        _log.info("no connection to %s (%s); next try in %.1f s", self.url, self._last_error, wait_s)
        return wait_s

    async def _use(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        self._control.clear()
        self._connected.set()
        for listener in list(self._listeners):
            listener.opened()
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(self._write(socket))
                await self._read(socket)
                writer.cancel()
        finally:
            self._connected.clear()
            if loop.time() - since >= CALM_S:
                self._backoff.reset()
            for listener in list(self._listeners):
                listener.lost(socket.close_code)
            self._last_error = f"the connection was closed with code {socket.close_code}"
            await socket.close()

    async def _write(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        with suppress(ConnectionError, aiohttp.ClientError):  # the reader notices too, and tells everyone
            while True:
                frame = self._next_frame()
                if frame is not None:
                    await socket.send_frame(frame, aiohttp.WSMsgType.TEXT)
                else:
                    self._work.clear()
                    await self._work.wait()

    def _next_frame(self) -> bytes | None:
        if self._control:
            return self._control.popleft()
        if self._bye_s is not None:
            return None  # it would only be cut off: the next socket takes it
        return next((frame for source in self._sources if (frame := source()) is not None), None)

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                async for message in socket:
                    if message.type is aiohttp.WSMsgType.TEXT and self._take(message.data):
                        limit.reschedule(asyncio.get_running_loop().time() + BYE_S)

    def _take(self, text: str) -> bool:
        """Hand one frame to its owner; True for a `bye`."""
        try:
            frame = decode_frame(text)
        except msgspec.DecodeError as error:
            _log.warning("%s sent something that is no frame: %s", self.url, error)
            return False
        if isinstance(frame, Bye):
            self._bye_s = frame.retry_ms / 1000
            return True
        if isinstance(frame, Answer):
            if frame.ref is None:
                _log.warning("the gateway reports: %s", frame)
            elif (handler := self._handlers.get(frame.ref)) is not None:
                handler(frame, len(text))
        return False


async def _handshake(session: aiohttp.ClientSession, url: str) -> aiohttp.ClientWebSocketResponse:
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            socket = await session.ws_connect(
                _endpoint(url),
                protocols=(SUBPROTOCOL,),
                heartbeat=HEARTBEAT_S,
                max_msg_size=FRAME_BYTES_MAX,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
            )
    except aiohttp.WSServerHandshakeError as error:
        if error.status >= 500 or error.status in (408, 425, 429):
            raise
        raise _refusal(url, error.status) from None
    if socket.protocol != SUBPROTOCOL:
        await socket.close()
        raise ConnectionFailed(f"{url} does not speak {SUBPROTOCOL}. Is it a Herdr gateway?")
    return socket


def _endpoint(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if not usable:
        raise ConnectionFailed(f"{url!r} is no address of a gateway; write it like http://127.0.0.1:8787.")
    return url.rstrip("/") + "/v1/connect"


def _refusal(url: str, status: int) -> HerdrError:
    if status in (401, 403):
        return Unauthorized(
            f"The gateway at {url} refuses this client (HTTP {status}): the token is missing, unknown or "
            "lacks a scope. Set HERDR_GATEWAY_TOKEN to one of the gateway's tokens."
        )
    return ConnectionFailed(
        f"{url} answers HTTP {status} where /v1/connect should be. Is it a Herdr gateway?"
    )
