"""A proxy on loopback that holds answers back, as one does that collects them before it passes them on."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

LOOK_S = 0.05  # how often it looks whether it should end


class HoldingProxy:
    """Passes requests on to a port; what is answered comes when the answer is whole.

    `until`: what comes up to this, and with it, goes through at once.
    """

    def __init__(self, port: int, until: bytes) -> None:
        self.port = port
        self.until = until
        self.over = threading.Event()
        self.threads: list[threading.Thread] = []

    def begin(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args)
        self.threads.append(thread)
        thread.start()

    def accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while not self.over.is_set():
                self.begin(self.serve, listener.accept()[0])

    def serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.port)) as upstream:
            upstream.settimeout(LOOK_S)
            self.begin(self.copy, client, upstream)
            with contextlib.suppress(OSError):
                self.hold(client, upstream)
                client.shutdown(socket.SHUT_RDWR)

    def copy(self, client: socket.socket, upstream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := client.recv(65536):
                upstream.sendall(chunk)

    def hold(self, client: socket.socket, upstream: socket.socket) -> None:
        held, passes = b"", self.until != b""
        while not self.over.is_set():
            try:
                chunk = upstream.recv(65536)
            except TimeoutError:
                continue
            held += chunk
            if passes or not chunk:
                client.sendall(held)
                passes = passes and self.until not in held
                held = b""
            if not chunk:
                return


@contextlib.contextmanager
def holding_proxy(port: int, until: bytes = b"") -> Iterator[str]:
    """Run a proxy before a port and yield its address."""
    proxy = HoldingProxy(port, until)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy.begin(proxy.accept, listener)
        address = listener.getsockname()
        try:
            yield f"http://127.0.0.1:{address[1]}"
        finally:
            proxy.over.set()
            socket.create_connection(address).close()  # so that `accept` looks
            for thread in proxy.threads:
                thread.join(5)
